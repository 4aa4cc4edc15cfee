"""Parameters that estimators share: what they may be, and what users pass for them."""

from copy import deepcopy
from functools import wraps
from numbers import Integral, Real

import numpy as np

from .._compat import Interval, StrOptions
from .._typing import Method

AUTO = StrOptions({"auto"})
POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
ONE_OR_MORE = Interval(Integral, 1, None, closed="left")
TWO_OR_MORE = Interval(Integral, 2, None, closed="left")
# Parameters that all estimators have.
RUN_CONSTRAINTS = {
    "fit_intercept": ["boolean"],
    "standardize": ["boolean"],
    "max_iter": [ONE_OR_MORE],
    "tol": [NOT_NEGATIVE],
    "step_size": [POSITIVE, AUTO],
    "loo": [AUTO, TWO_OR_MORE, "boolean"],
    "cv": ["cv_object"],
    "warm_start": ["boolean"],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}
# And those with a memory matrix.
RISK_CONSTRAINTS = {
    "risk": [StrOptions({"auto", "exact", "hutchinson"}), TWO_OR_MORE, "boolean"],
    "risk_row_scales": ["boolean"],
    "keep_data": ["boolean"],
}
# And those with EigenPro's preconditioner.
EIGENPRO_CONSTRAINTS = {
    "n_components": [AUTO, Interval(Integral, 0, None, closed="left")],
    "subsample_size": [AUTO, ONE_OR_MORE],
}
# And those whose objective has alpha times a penalty.
ALPHA_CONSTRAINT = {"alpha": [NOT_NEGATIVE, "array-like", StrOptions({"path"})]}


def to_python_scalar(value):
    """The value, a Python bool where it is NumPy's: for ``is True`` and ``== "auto"``.

    scikit-learn takes both as booleans, and a grid in an array has NumPy's.
    """
    return bool(value) if isinstance(value, np.bool_) else value


def is_auto(setting):
    """Whether a parameter, which may be an array, is the string "auto"."""
    return isinstance(setting, str) and setting == "auto"


def is_off(setting):
    """Whether a parameter switches an option off."""
    return setting is None or setting is False


def snapshot(values):
    """Parameters by name, with copies of lists and arrays, which may be changed later.

    Returns
    -------
    dict
    """
    is_mutable = (list, dict, np.ndarray)
    return {
        name: deepcopy(value) if isinstance(value, is_mutable) else value
        for name, value in values.items()
    }


def are_same(values, others):
    """Whether two dicts have the same names and equal values, arrays entry by entry."""
    return values.keys() == others.keys() and all(
        _is_same(value, others[name]) for name, value in values.items()
    )


def _is_same(value, other):
    """Whether two values are equal; NumPy's arrays entry by entry."""
    if value is other:
        return True
    if isinstance(value, dict) and isinstance(other, dict):
        return are_same(value, other)
    if isinstance(value, list | tuple) and isinstance(other, list | tuple):
        return len(value) == len(other) and all(map(_is_same, value, other))
    if hasattr(value, "__array__") or hasattr(other, "__array__"):
        return np.array_equal(value, other)
    return bool(value == other)


def keeps_data(estimator):
    """``keep_data``, where there is that parameter."""
    return getattr(estimator, "keep_data", False)


def set_parameters(estimator, arguments):
    """Keep the arguments of ``__init__``, each as the attribute of its name.

    Parameters
    ----------
    arguments : dict
        The ``locals()`` of ``__init__``.
    """
    vars(estimator).update({k: v for k, v in arguments.items() if k != "self"})


def takes_coverage(method: Method) -> Method:
    """Decorator of a method with a ``coverage``: an error says so to other names.

    Other packages have the probability as ``confidence_level``, or one minus it as
    ``alpha``.
    """

    @wraps(method)
    def checked(*args, **params):
        for name in ("alpha", "confidence_level"):
            if name in params:
                means = "one minus alpha" if name == "alpha" else "the same number"
                raise TypeError(
                    f"{method.__name__}() takes no {name}: write coverage=, {means}."
                )
        return method(*args, **params)

    return checked
