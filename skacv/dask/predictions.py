"""Predictions for the rows of a Dask collection, block by block."""

import dask.array as da
import numpy as np
from dask import delayed

from .rows import delay_rows


def map_blocks(estimator, method, X):
    """A method of a fitted estimator as a Dask array, which has the blocks of X.

    Shapes: X (n_samples, n_features); returned (n_samples, ...).
    """
    example = getattr(estimator, method)(_example(X))
    light = estimator.drop_record(intervals=False)
    apply = getattr(delayed(light), method)
    sizes = X.chunks[0] if hasattr(X, "chunks") else (np.nan,) * X.npartitions
    parts = [
        da.from_delayed(
            apply(block, pure=True), (size, *example.shape[1:]), example.dtype
        )
        for size, block in zip(sizes, delay_rows(X))
    ]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def _example(X):
    """One row like those of X, for the shape and dtype of predictions."""
    if not hasattr(X, "columns"):
        return np.zeros((1, X.shape[1]), X.dtype)
    # A row of numbers, of the columns that X has.
    return X.head(1, npartitions=-1)
