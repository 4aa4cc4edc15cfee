"""Fitted arrays and predictions on the device of X, from methods that work in NumPy.

X may be an array of another namespace, on another device (scikit-learn's
``array_api_dispatch``). A fit leaves it there and works on all that is small in NumPy.
What comes out is moved once, here: fitted arrays follow X, and so do predictions.
Methods of a fitted estimator read its twin, whose record is in NumPy.
"""

from collections.abc import Iterator
from copy import copy
from functools import wraps

import numpy as np
from sklearn.base import BaseEstimator

from .._compat import check_same_namespace, is_foreign, is_foreign_type
from .._typing import Method
from ..optim.namespaces import to_device_of, to_numpy

# Fitted arrays of coefficients: where they are, X was.
COEFFICIENTS = "coef_", "dual_coef_"
# Fitted arrays that methods read where they are, as they were passed.
READ_IN_PLACE = frozenset({"X_fit_"})


def converted(estimator, converter):
    """A copy of an estimator with its fitted arrays moved by scikit-learn.

    Parameters
    ----------
    converter : callable
        ``converter(array)`` is the array where it is to be.

    Returns
    -------
    estimator of the same class
    """
    found = copy(in_numpy(estimator))

    def place(name, value):
        return converter(np.asarray(value))

    for name in READ_IN_PLACE:
        if is_foreign_type(vars(found).get(name)):
            vars(found)[name] = converter(vars(found)[name])
    vars(found).update(placed(vars(found), place))
    return found


def attributes_on_device_of(X, y, estimator, attributes):
    """Fitted attributes in the namespace and on the device of X, classes in those of y.

    Parameters
    ----------
    estimator : estimator
        Those of some stay in NumPy.
    attributes : dict
        Arrays in NumPy, numbers and anything else.
    """
    follows = _can_follow(estimator) and is_foreign(X)

    def place(name, value):
        like = y if name == "classes_" else X
        return to_device_of(value, like) if follows and is_foreign(like) else value

    return placed(attributes, place)


def on_device_of(X, y, estimator):
    """A fitted estimator whose record is in NumPy, its fitted arrays where X is."""
    if not (_can_follow(estimator) and is_foreign(X)):
        return estimator
    fitted = copy(estimator)
    vars(fitted).update(attributes_on_device_of(X, y, estimator, vars(estimator)))
    return fitted


def placed(attributes, place):
    """Fitted attributes whose arrays are moved, and what they were in NumPy.

    Parameters
    ----------
    place : callable
        ``place(name, value)`` is an array of NumPy where it is to be.
    """
    moved = {
        name: place(name, value)
        for name, value in attributes.items()
        if is_fitted(name) and is_movable(value)
    }
    pairs = {
        name: (array, attributes[name])
        for name, array in moved.items()
        if array is not attributes[name]
    }
    return {**attributes, **moved, "_copies": pairs, "_is_twin": False}


def in_numpy(estimator):
    """An estimator whose fitted arrays are NumPy's: itself, or its twin."""
    moved = _moved(estimator)
    if not moved:
        return estimator
    twin, copies = copy(estimator), vars(estimator).get("_copies", {})
    for name, array in moved.items():
        # As it was, if it still is the one that was moved.
        former, found = copies.get(name, (None, None))
        vars(twin)[name] = found if former is array else to_numpy(array)
    twin._is_twin = True
    return twin


def of_rows(method: Method) -> Method:
    """A method of rows X, whose result is where X is."""

    @wraps(method)
    def follows(self, X, *args, **kwargs):
        if _is_twin(self) or not _can_follow(self):
            return method(self, X, *args, **kwargs)
        if name := _coefficients(self):
            check_same_namespace(X, self, attribute=name, method=method.__name__)
        found = method(in_numpy(self), X, *args, **kwargs)
        return _like(found, X) if is_foreign(X) else found

    return follows


def of_record(method: Method) -> Method:
    """A method of the record, whose result is where that is."""

    @wraps(method)
    def follows(self, *args, **kwargs):
        twin = in_numpy(self)
        found = method(twin, *args, **kwargs)
        if twin is self:
            return found
        if isinstance(found, BaseEstimator):
            return _moved_as(self, found, twin)
        return _like(found, vars(self)[_coefficients(self)])

    return follows


def is_movable(value):
    """Whether a fitted attribute is an array of numbers, or a number of NumPy's."""
    return isinstance(value, np.ndarray | np.floating) and value.dtype.kind in "biuf"


def is_fitted(name):
    """Whether an attribute of that name comes of a fit, and is no parameter."""
    return name.endswith("_") or name.startswith("_")


def _can_follow(estimator):
    """Whether fitted arrays of an estimator, of whosever class, may be where X is."""
    return getattr(estimator, "_follows_X", False)


def _is_twin(estimator):
    """Whether an estimator is one whose fitted arrays are NumPy's for a method."""
    return vars(estimator).get("_is_twin", False)


def _coefficients(estimator):
    """The name of its fitted coefficients; None before a fit."""
    return next((name for name in COEFFICIENTS if name in vars(estimator)), None)


def _moved(estimator):
    """Fitted arrays that are not NumPy's, by their names."""
    if not _can_follow(estimator) or _is_twin(estimator):
        return {}
    coefficients = _coefficients(estimator)
    if coefficients is None or not is_foreign_type(vars(estimator)[coefficients]):
        return {}  # others are where these are
    return {
        name: value
        for name, value in vars(estimator).items()
        if is_fitted(name) and is_foreign_type(value) and name not in READ_IN_PLACE
    }


def _moved_as(estimator, found, twin):
    """An estimator that comes of a twin, its arrays where those of the original are."""
    moved = _moved(estimator)

    def place(name, value):
        if name not in moved:
            return value
        is_same = value is vars(twin)[name]
        return moved[name] if is_same else to_device_of(value, moved[name])

    vars(found).update(placed(vars(found), place))
    return found


def _like(found, array):
    """A result where an array is, if it is an array of numbers, or several."""
    if isinstance(found, Iterator):
        return (_like(each, array) for each in found)
    return to_device_of(found, array) if is_movable(found) else found
