"""Dask collections: recognised, and passed on to :mod:`skacv.dask`.

That layer is imported when the first collection comes, and nothing here imports Dask.
"""

from functools import wraps
from importlib import import_module

from .._typing import Method


def is_collection(array):
    """Whether an array is a Dask array, dataframe or series, which is not in memory."""
    # Their classes have the method as well.
    return not isinstance(array, type) and hasattr(array, "__dask_graph__")


def import_dask_layer(module):
    """A module of the layer that works on collections."""
    return import_module(f"skacv.dask.{module}")


def block_by_block(method: Method) -> Method:
    """A method that predicts the rows of X, those of a collection block by block."""

    @wraps(method)
    def predict(self, X, **params):
        if is_collection(X) and not any(value is not None for value in params.values()):
            return import_dask_layer("predictions").map_blocks(self, method.__name__, X)
        return method(self, X, **params)

    return predict


def staged_block_by_block(method: Method) -> Method:
    """A method that predicts the rows of X with every iterate, block by block."""

    @wraps(method)
    def predict(self, X):
        if not is_collection(X):
            yield from method(self, X)
            return
        name = method.__name__.removeprefix("staged_")
        for t in self.recorded_iterations():
            yield getattr(self.at_iteration(t), name)(X)

    return predict
