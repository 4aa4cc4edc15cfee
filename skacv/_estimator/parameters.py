"""Parameters that estimators share: their constraints, and values that users pass."""

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
    "standardize": ["boolean", AUTO],
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
# Further parameters of models with a memory matrix.
RISK_CONSTRAINTS = {
    "risk": [StrOptions({"auto", "exact", "hutchinson"}), TWO_OR_MORE, "boolean"],
    "risk_row_scales": ["boolean"],
    "keep_data": ["boolean"],
}
# Further parameters of models with EigenPro's preconditioner.
EIGENPRO_CONSTRAINTS = {
    "n_components": [AUTO, Interval(Integral, 0, None, closed="left")],
    "subsample_size": [AUTO, ONE_OR_MORE],
}
# The parameter of models whose objective has alpha times a penalty.
ALPHA_CONSTRAINT = {"alpha": [NOT_NEGATIVE, "array-like", StrOptions({"path"})]}


def to_python_scalar(value):
    """The value, as a bool of Python if it is NumPy's, for comparisons by ``is``."""
    # scikit-learn accepts both as booleans, and a grid in an array has NumPy's.
    return bool(value) if isinstance(value, np.bool_) else value


def is_auto(setting):
    """Whether a parameter, which may be an array, is the string "auto"."""
    return isinstance(setting, str) and setting == "auto"


def is_off(setting):
    """Whether a parameter switches an option off."""
    return setting is None or setting is False


def snapshot(values):
    """Parameters by name, with copies of lists and arrays, which a user may change."""
    is_mutable = (list, dict, np.ndarray)
    return {
        name: deepcopy(value) if isinstance(value, is_mutable) else value
        for name, value in values.items()
    }


def are_same(a, b):
    """Whether two dicts have the same names and equal values, arrays entry by entry."""
    return a.keys() == b.keys() and all(_is_same(a[name], b[name]) for name in a)


def _is_same(a, b):
    if a is b:
        return True
    if isinstance(a, dict) and isinstance(b, dict):
        return are_same(a, b)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_is_same, a, b))
    if hasattr(a, "__array__") or hasattr(b, "__array__"):
        return np.array_equal(a, b)
    return bool(a == b)


def copy_parameters(estimator):
    """An estimator of the same class and parameters, which is not fitted."""
    # A subclass may have attributes that its ``__init__`` does not take.
    unfitted = object.__new__(type(estimator))
    for name, value in vars(estimator).items():
        if not (name.startswith("_") or name.endswith("_")):
            vars(unfitted)[name] = value
    return unfitted


def set_parameters(estimator, arguments):
    """Store the ``locals()`` of ``__init__``, each as the attribute of its name."""
    vars(estimator).update(arguments)
    del vars(estimator)["self"]


def takes_coverage(method: Method) -> Method:
    """Decorator of a method with a ``coverage``: an error names it for other names."""

    # Other packages have the probability as ``confidence_level``, or one minus it as
    # ``alpha``.
    @wraps(method)
    def checked(*args, **params):
        for name in ("alpha", "confidence_level"):
            if name in params:
                means = "one minus alpha" if name == "alpha" else "the same number"
                raise TypeError(
                    f"{method.__name__}() has no parameter {name}: use coverage=, "
                    f"{means}."
                )
        return method(*args, **params)

    return checked
