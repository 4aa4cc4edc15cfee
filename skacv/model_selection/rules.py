"""Rules that pick one iteration from a path of estimates.

A rule is ``rule(path, standard_error) -> int``, the row to keep; smaller is
better, NaN (undefined) is worst, and ``standard_error(t)`` is that of row t. Add
one here and list it in ``RULES``. ``rule="blend"`` is none of these: it combines
members (``blending.py``), whose iterates the least picks.
"""

import numpy as np


def place_of_least(values):
    """Where the least of the values is, the earliest of them; NaN comes last."""
    return int(np.argsort(values, kind="stable")[0])  # which sorts NaN to the end


def least(path, standard_error):
    """The row of least estimate; the earliest of them."""
    return place_of_least(path)


def within_one_standard_error(path, standard_error):
    """The earliest row within one standard error of the least estimate."""
    best = place_of_least(path)
    is_within = path <= path[best] + standard_error(best)
    is_within[best] = True  # whether or not its error is defined
    return int(np.argmax(is_within))


RULES = {"min": least, "one_se": within_one_standard_error}
