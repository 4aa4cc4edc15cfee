"""The design of the data that a user passes."""

from scipy import sparse

from .dense import DenseDesign
from .sparse import SparseDesign


def design_of(X, center=None, row_scale=None):
    """The design of an array or of a CSR matrix.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_columns), float32 or float64
    center : ndarray of shape (n_columns, 1), optional
        Subtracted from every row. The weighted mean:
        ``design_of(X).centered(weights)``.
    row_scale : ndarray of shape (n_rows, 1), optional
        Multiplies the (centred) rows.

    Returns
    -------
    DenseDesign or SparseDesign
    """
    kind = SparseDesign if sparse.issparse(X) else DenseDesign
    return kind(X, center, row_scale)
