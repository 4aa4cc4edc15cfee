"""Fitted arrays and predictions on the device of X, from methods that work in NumPy.

X may be an array of another namespace, on another device (scikit-learn's
``array_api_dispatch``). A fit leaves it there and works on all that is small in NumPy.
Results are converted once, here: fitted arrays follow X, and so do predictions.
Methods of a fitted estimator read its NumPy view, a copy with the arrays in NumPy.
"""

from collections.abc import Iterator
from copy import copy
from functools import wraps

import numpy as np
from sklearn.base import BaseEstimator

from .._compat import check_same_namespace, is_foreign, is_foreign_type
from .._typing import Method
from ..optim.namespaces import to_device_of, to_numpy

# Fitted arrays of coefficients: their device is that of X.
COEFFICIENTS = "coef_", "dual_coef_"
# Fitted arrays that methods read on their device, as they were passed.
READ_ON_DEVICE = frozenset({"X_fit_"})


def converted(estimator, converter):
    """A copy of an estimator with its fitted arrays converted by scikit-learn."""
    copied = copy(in_numpy(estimator))
    fitted = vars(copied)
    for name in READ_ON_DEVICE:
        if is_foreign_type(fitted.get(name)):
            fitted[name] = converter(fitted[name])
    fitted.update(mapped(fitted, lambda name, value: converter(np.asarray(value))))
    return copied


def attributes_on_device_of(X, y, estimator, attributes):
    """Fitted attributes on the device of X and in its namespace, classes as y."""
    # Attributes of some classes of estimators stay in NumPy.
    follows = _can_follow(estimator) and is_foreign(X)

    def convert(name, value):
        like = y if name == "classes_" else X
        return to_device_of(value, like) if follows and is_foreign(like) else value

    return mapped(attributes, convert)


def on_device_of(X, y, estimator):
    """A fitted estimator in NumPy, with its fitted arrays on the device of X."""
    if not (_can_follow(estimator) and is_foreign(X)):
        return estimator
    fitted = copy(estimator)
    vars(fitted).update(attributes_on_device_of(X, y, estimator, vars(estimator)))
    return fitted


def mapped(attributes, convert):
    """Fitted attributes with arrays ``convert(name, array)``, and those in NumPy."""
    arrays = {
        name: convert(name, value)
        for name, value in attributes.items()
        if _is_fitted(name) and is_movable(value)
    }
    pairs = {
        name: (array, attributes[name])
        for name, array in arrays.items()
        if array is not attributes[name]
    }
    return {**attributes, **arrays, "_host_arrays": pairs, "_is_numpy_view": False}


def in_numpy(estimator):
    """An estimator whose fitted arrays are NumPy's: itself, or its NumPy view."""
    fitted = vars(estimator)
    if type(fitted.get("coef_", fitted.get("dual_coef_"))) is np.ndarray:
        return estimator  # all arrays are on the device of the coefficients
    on_device = _device_arrays(estimator)
    if not on_device:
        return estimator
    view, pairs = copy(estimator), vars(estimator).get("_host_arrays", {})
    for name, array in on_device.items():
        # The array of the fit, if the attribute still is the one converted from it.
        original, host_array = pairs.get(name, (None, None))
        vars(view)[name] = host_array if original is array else to_numpy(array)
    view._is_numpy_view = True
    return view


def of_rows(method: Method) -> Method:
    """A method of rows X, whose result is on the device of X."""

    @wraps(method)
    def follows(self, X, *args, **kwargs):
        fitted = vars(self)
        coef = fitted.get("coef_", fitted.get("dual_coef_"))
        if type(X) is np.ndarray and type(coef) is np.ndarray:
            return method(self, X, *args, **kwargs)
        if fitted.get("_is_numpy_view") or not _can_follow(self):
            return method(self, X, *args, **kwargs)
        if name := _coefficients(self):
            check_same_namespace(X, self, attribute=name, method=method.__name__)
        result = method(in_numpy(self), X, *args, **kwargs)
        return _like(result, X) if is_foreign(X) else result

    return follows


def of_record(method: Method) -> Method:
    """A method of the record, whose result is on the device of that."""

    @wraps(method)
    def follows(self, *args, **kwargs):
        view = in_numpy(self)
        result = method(view, *args, **kwargs)
        if view is self:
            return result
        if isinstance(result, BaseEstimator):
            return _on_device_as(self, result, view)
        return _like(result, vars(self)[_coefficients(self)])

    return follows


def is_movable(value):
    """Whether a fitted attribute is an array of numbers, or a number of NumPy's."""
    return isinstance(value, np.ndarray | np.floating) and value.dtype.kind in "biuf"


def _is_fitted(name):
    return name.endswith("_") or name.startswith("_")


def _can_follow(estimator):
    """Whether fitted arrays of any estimator may be on the device of X."""
    return getattr(estimator, "_follows_X", False)


def _coefficients(estimator):
    """The name of its fitted coefficients; None before a fit."""
    return next((name for name in COEFFICIENTS if name in vars(estimator)), None)


def _device_arrays(estimator):
    """Fitted arrays that are not NumPy's, by their names."""
    fitted = vars(estimator)
    coef = fitted.get("coef_", fitted.get("dual_coef_"))
    if not is_foreign_type(coef):
        return {}
    if not _can_follow(estimator) or fitted.get("_is_numpy_view"):
        return {}
    return {
        name: value
        for name, value in fitted.items()
        if _is_fitted(name) and is_foreign_type(value) and name not in READ_ON_DEVICE
    }


def _on_device_as(estimator, result, view):
    """An estimator made from a NumPy view, its arrays on the device of the original."""
    on_device = _device_arrays(estimator)

    def convert(name, value):
        if name not in on_device:
            return value
        array = on_device[name]
        return array if value is vars(view)[name] else to_device_of(value, array)

    vars(result).update(mapped(vars(result), convert))
    return result


def _like(result, array):
    """A result on the device of an array, if it is an array of numbers, or several."""
    if isinstance(result, Iterator):
        return (_like(item, array) for item in result)
    return to_device_of(result, array) if is_movable(result) else result
