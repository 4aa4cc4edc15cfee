"""Data as Dask collections and in memory; fits of both, compared."""

import dask.array as da
import numpy as np
from sklearn.base import clone

# What a run on workers has to have as a run in memory.
PATHS = (
    "coef_path_",
    "intercept_path_",
    "objective_path_",
    "train_path_",
    "cv_path_",
    "cv_fold_path_",
)
CHUNKS = 70


def blocks(array, size=CHUNKS):
    """An array in blocks of rows; of columns too, which are brought together."""
    chunks = (size, 7) if array.ndim > 1 else size
    return da.from_array(array, chunks=chunks)


def switched_off(estimator):
    """The estimator without estimates from single rows."""
    return clone(estimator).set_params(risk=False, loo=False)


def assert_same_run(found, expected, rtol):
    """All that both have recorded, relative to the largest entry of each."""
    assert found.n_iter_ == expected.n_iter_
    names = [name for name in PATHS if hasattr(expected, name)]
    assert len(names) >= 4
    for name in names:
        own, other = getattr(found, name), getattr(expected, name)
        scale = np.abs(other).max()
        np.testing.assert_allclose(own, other, rtol=0, atol=rtol * scale, err_msg=name)
