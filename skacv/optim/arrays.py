"""The design of the data that a user passes."""

from typing import Any

import numpy as np
from scipy import sparse

from .dense import DenseDesign
from .design import ColumnDesign
from .device import DeviceDesign, check_digits
from .sparse import SparseDesign

__all__ = ["design_of"]


def design_of(
    X: Any, center: np.ndarray | None = None, row_scale: np.ndarray | None = None
) -> ColumnDesign:
    """The design of an array or of a CSR matrix.

    Parameters
    ----------
    X : ndarray, CSR matrix or array on a device, (n_rows, n_columns)
        float32 or float64.
    center : ndarray of shape (n_columns, 1), optional
        Subtracted from every row. The weighted mean:
        ``design_of(X).centered(weights)``.
    row_scale : ndarray of shape (n_rows, 1), optional
        Multiplies the (centred) rows.

    Returns
    -------
    DenseDesign, SparseDesign or DeviceDesign
    """
    if sparse.issparse(X):
        return SparseDesign(X, center, row_scale)
    if isinstance(X, np.ndarray):
        return DenseDesign(X, center, row_scale)
    check_digits(X)
    return DeviceDesign(X, center, row_scale)
