"""Rules that pick one iteration from a path of estimates.

A rule is ``rule(paths, standard_error)``, with paths (..., n_iterates), and returns the
place to keep in each path; smaller is better, NaN (undefined) is worst, and
``standard_error(places)`` has the standard errors at such places. Add a rule here and
list it in ``RULES``. ``rule="blend"`` is none of these: it combines
members (``blending.py``), whose iterates the least picks.
"""

import numpy as np


def place_of_least(values):
    """Where the least value of every path is, the earliest of equals; NaN is worst."""
    return np.argmax(values == np.fmin.reduce(values, axis=-1, keepdims=True), axis=-1)


def least(paths, standard_error):
    """The place of the least estimate, the earliest of equals."""
    return place_of_least(paths)


def within_one_standard_error(paths, standard_error):
    """The earliest place within one standard error of the least estimate."""
    best = place_of_least(paths)
    largest = np.fmin.reduce(paths, axis=-1) + standard_error(best)
    first = np.argmax(paths <= largest[..., None], axis=-1)
    # If the error is undefined, no place is within it.
    return np.where(np.isnan(largest), best, first)


RULES = {"min": least, "one_se": within_one_standard_error}
