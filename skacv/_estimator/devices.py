"""Fitted arrays and predictions on the device of X, from methods that work in NumPy.

X may be an array of another namespace, on another device (scikit-learn's
``array_api_dispatch``). A fit leaves it there and works on all that is small in NumPy.
Results are converted once, here: fitted arrays follow X, and so do predictions.
Methods of a fitted estimator read its NumPy view, a copy with the arrays in NumPy.
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
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


def convert_to(estimator, converter):
    """A copy of an estimator with its fitted arrays converted by scikit-learn."""
    copied = copy(estimator)
    example = converter(np.empty(0, np.float32))
    devices = Devices(example, example) if is_foreign_type(example) else None
    record = estimator._record_with_rows(converter)
    copied.record_ = replace(record, devices=devices)
    return copied


def move_to_device_of(X, y, estimator):
    """A fitted estimator in NumPy, with its fitted arrays on the device of X."""
    devices = devices_of(estimator, X, y)
    return estimator if devices is None else _move_to(estimator, devices)


def convert_to_numpy(estimator):
    """An estimator whose fitted arrays are NumPy's: itself, or a view of it."""
    if _devices_of_record(estimator) is None:
        return estimator
    return _move_to(estimator, ON_HOST)


def _devices_of_record(estimator):
    """Where the fitted arrays of an estimator are; None for NumPy."""
    record = vars(estimator).get("record_")
    return None if record is None else record.devices


def _move_to(estimator, devices):
    """A copy whose fitted arrays are read elsewhere."""
    moved = copy(estimator)
    moved.record_ = replace(estimator.record_, devices=devices)
    return moved


def of_rows(method: Method) -> Method:
    """A method of rows X, whose result is on the device of X."""

    @wraps(method)
    def follows(self, X, *args, **kwargs):
        devices = _devices_of_record(self)
        if devices is None and (type(X) is np.ndarray or not is_foreign(X)):
            return method(self, X, *args, **kwargs)
        is_view = devices is not None and devices.X is None
        if is_view or not getattr(self, "_follows_X", False):
            return method(self, X, *args, **kwargs)
        if "record_" in vars(self):
            check_same_namespace(
                X, self, attribute="intercept_", method=method.__name__
            )
        result = method(convert_to_numpy(self), X, *args, **kwargs)
        return _move_beside(result, X) if is_foreign(X) else result

    return follows


def of_record(method: Method) -> Method:
    """A method of the record, whose result is on the device of that."""

    @wraps(method)
    def follows(self, *args, **kwargs):
        devices = _devices_of_record(self)
        result = method(convert_to_numpy(self), *args, **kwargs)
        if devices is None or devices.X is None:  # a pickled view is one, too
            return result
        if isinstance(result, BaseEstimator):
            return _move_to(result, devices)
        return _move_beside(result, devices.X)

    return follows


def _move_beside(result, array):
    """A result on the device of an array, if it is an array of numbers, or several."""
    if isinstance(result, Iterator):
        return (_move_beside(item, array) for item in result)
    return to_device_of(result, array) if is_movable(result) else result
