"""Parameters that are a switch, a word or a number, as users pass them."""

import numpy as np


def plain(value):
    """The value, a Python bool where it is NumPy's: for ``is True`` and ``== "auto"``.

    scikit-learn takes both as booleans, and a grid in an array has NumPy's.
    """
    return bool(value) if isinstance(value, np.bool_) else value
