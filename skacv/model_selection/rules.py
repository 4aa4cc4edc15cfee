"""Rules that pick one iteration from a path of estimates.

A rule is ``rule(path, se_path) -> int``, the row to keep; smaller is better.
Add one here and list it in ``RULES``.
"""

import numpy as np


def least(path, se_path):
    """The row of least estimate; the earliest of them."""
    return int(np.argmin(path))


def within_one_standard_error(path, se_path):
    """The earliest row within one standard error of the least estimate."""
    best = np.argmin(path)
    return int(np.argmax(path <= path[best] + se_path[best]))


RULES = {"min": least, "one_se": within_one_standard_error}
