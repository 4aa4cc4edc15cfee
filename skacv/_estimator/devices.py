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
from ..optim.namespaces import empty, to_device_of
from ..records.descriptors import Devices, is_movable

# The devices of a NumPy view: it has the arrays of an estimator that is elsewhere.
ON_HOST = Devices(None, None)


def devices_of(estimator, X, y):
    """Where fitted arrays of an estimator are: with X, and classes with y, or None."""
    # Fitted arrays of some classes of estimators stay in NumPy.
    if not (getattr(estimator, "_follows_X", False) and is_foreign(X)):
        return None
    of_y = empty((0,), np.float32, y) if is_foreign(y) else None
    return Devices(empty((0,), np.float32, X), of_y)


def converted(estimator, converter):
    """A copy of an estimator with its fitted arrays converted by scikit-learn."""
    copied = copy(estimator)
    example = converter(np.empty(0, np.float32))
    copied._devices = None
    if is_foreign_type(example):
        copied._devices = Devices(example, example)
    copied.record_ = estimator._record_with_rows(converter)
    return copied


def on_device_of(X, y, estimator):
    """A fitted estimator in NumPy, with its fitted arrays on the device of X."""
    devices = devices_of(estimator, X, y)
    if devices is None:
        return estimator
    fitted = copy(estimator)
    fitted._devices = devices
    return fitted


def in_numpy(estimator):
    """An estimator whose fitted arrays are NumPy's: itself, or a view of it."""
    if vars(estimator).get("_devices") is None:
        return estimator
    view = copy(estimator)
    view._devices = ON_HOST
    return view


def of_rows(method: Method) -> Method:
    """A method of rows X, whose result is on the device of X."""

    @wraps(method)
    def follows(self, X, *args, **kwargs):
        devices = vars(self).get("_devices")
        if devices is None and (type(X) is np.ndarray or not is_foreign(X)):
            return method(self, X, *args, **kwargs)
        is_view = devices is not None and devices.X is None
        if is_view or not getattr(self, "_follows_X", False):
            return method(self, X, *args, **kwargs)
        if "record_" in vars(self):
            check_same_namespace(
                X, self, attribute="intercept_", method=method.__name__
            )
        result = method(in_numpy(self), X, *args, **kwargs)
        return _like(result, X) if is_foreign(X) else result

    return follows


def of_record(method: Method) -> Method:
    """A method of the record, whose result is on the device of that."""

    @wraps(method)
    def follows(self, *args, **kwargs):
        devices = vars(self).get("_devices")
        result = method(in_numpy(self), *args, **kwargs)
        if devices is None or devices.X is None:  # a pickled view is one, too
            return result
        if isinstance(result, BaseEstimator):
            result._devices = devices
            return result
        return _like(result, devices.X)

    return follows


def _like(result, array):
    """A result on the device of an array, if it is an array of numbers, or several."""
    if isinstance(result, Iterator):
        return (_like(item, array) for item in result)
    return to_device_of(result, array) if is_movable(result) else result
