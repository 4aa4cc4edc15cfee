"""Predictions for the rows of a Dask collection, block by block."""

from copy import copy

import dask.array as da
import numpy as np
from dask import delayed

from .rows import delayed_rows


def mapped(estimator, method, X):
    """The result of a method of a fitted estimator, block by block.

    Parameters
    ----------
    method : str
        It takes X alone, and gives an array with a row for each of its rows.
    X : dask array or dataframe of shape (n_samples, n_features)

    Returns
    -------
    dask array of shape (n_samples, ...)
        In the blocks of X; nothing is computed yet.
    """
    example = getattr(estimator, method)(_example(X))
    light = copy(estimator).drop_record(intervals=False)
    apply = getattr(delayed(light), method)
    sizes = X.chunks[0] if hasattr(X, "chunks") else (np.nan,) * X.npartitions
    parts = [
        da.from_delayed(
            apply(block, pure=True), (size, *example.shape[1:]), example.dtype
        )
        for size, block in zip(sizes, delayed_rows(X))
    ]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def _example(X):
    """One row like those of X, to find the shape and dtype of predictions."""
    if not hasattr(X, "columns"):
        return np.zeros((1, X.shape[1]), X.dtype)
    # A row of numbers, of the columns that X has.
    return X.head(1, npartitions=-1)
