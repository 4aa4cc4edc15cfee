"""Fitted attributes that are read from the record of a model."""

import numpy as np

from ..optim.namespaces import to_device_of


class recorded:
    """A fitted attribute: ``read(record)`` of the record that a model holds.

    It may be set, as any attribute of an object, and then is what it was set to.

    Parameters
    ----------
    read : callable
        It returns None, or raises a KeyError, where a record has no such value.
    doc : str
    estimate : str, default=None
        The name of the estimate that has it, for errors to say what switches it on.
    of_target : bool, default=False
        Whether it belongs where y is, not where X is, if these are arrays of another
        library.
    """

    def __init__(self, read, doc, estimate=None, of_target=False):
        self.read, self.__doc__ = read, doc
        self.estimate, self.of_target = estimate, of_target

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, model, owner=None):
        if model is None:
            return self
        record, value = vars(model).get("record_"), None
        if record is not None:
            try:
                value = self.read(record)
            except KeyError:
                pass
        if value is None:
            message = f"{type(model).__name__!r} object has no attribute {self.name!r}"
            reason = model._why_missing(self.name, self.estimate)
            raise AttributeError(f"{message}: {reason}." if reason else message)
        if record is not None and record.devices is not None:
            return record.devices.move(value, self.of_target)
        return value


def is_movable(value):
    """Whether a value is an array of numbers, or a number of NumPy's."""
    return isinstance(value, np.ndarray | np.floating) and value.dtype.kind in "biuf"


class Devices:
    """Where the rows and the targets of a fit are, and its fitted arrays with them.

    Parameters
    ----------
    X, y : array or None
        Empty arrays of another library, on the device of X and of y; None for NumPy.
    """

    def __init__(self, X, y):
        self.X, self.y = X, y

    def move(self, value, of_target=False):
        """A value on the device of X, or of y, if it is an array of numbers."""
        like = self.y if of_target else self.X
        return (
            to_device_of(value, like)
            if is_movable(value) and like is not None
            else value
        )
