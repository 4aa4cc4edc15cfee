"""Rules that pick one iteration from a path of estimates.

A rule is ``rule(path, standard_error) -> int``, the row to keep; smaller is
better, and ``standard_error(t)`` is that of row t. Add one here and list it in
``RULES``.
"""

import numpy as np


def least(path, standard_error):
    """The row of least estimate; the earliest of them."""
    return int(np.argmin(path))


def within_one_standard_error(path, standard_error):
    """The earliest row within one standard error of the least estimate."""
    best = int(np.argmin(path))
    return int(np.argmax(path <= path[best] + standard_error(best)))


RULES = {"min": least, "one_se": within_one_standard_error}
