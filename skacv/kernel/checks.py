"""Checks of kernel matrices and kernel functions of users."""

import numpy as np

from ..optim.kernel_matrix import blocks

# A kernel matrix is taken to be one up to this share of its largest entry.
ASYMMETRY = 1e-5
# Eigenvalues may be negative by this share of the largest: rounding.
NEGATIVE = 1e-5


def check_precomputed(matrix):
    """Raise unless a matrix that a user passes as kernel is square and symmetric."""
    n_rows, n_columns = matrix.shape
    if n_rows != n_columns:
        raise ValueError(
            'kernel="precomputed" needs the square kernel matrix of the training '
            f"rows, got one of shape {matrix.shape}."
        )
    largest = max(np.abs(matrix[rows]).max() for rows in _blocks_of(matrix))
    for rows in _blocks_of(matrix):
        if np.abs(matrix[rows] - matrix[:, rows].T).max() > ASYMMETRY * largest:
            raise ValueError(
                'kernel="precomputed" needs a symmetric kernel matrix, but entries '
                "(i, j) and (j, i) differ."
            )


def _blocks_of(matrix):
    return blocks(matrix, matrix.shape[1], matrix.dtype)


def check_kernel(values):
    """Raise unless a square part of a kernel matrix is valid.

    Parameters
    ----------
    values : ndarray of shape (n, n), float64

    Raises
    ------
    ValueError
        If it is not finite, not symmetric, or has negative eigenvalues.
    """
    if not np.isfinite(values).all():
        raise ValueError("kernel must give finite numbers.")
    largest = np.abs(values).max()
    if np.abs(values - values.T).max() > ASYMMETRY * largest:
        raise ValueError("kernel must be symmetric: k(x, z) = k(z, x).")
    shifted = values.copy()
    # The trace bounds the largest eigenvalue, the largest row sum does better.
    shift = NEGATIVE * np.abs(values).sum(axis=1).max()
    shifted[np.diag_indices_from(shifted)] += shift if shift > 0 else 1.0
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        raise ValueError(
            "kernel must be positive semi-definite: its matrix on "
            f"{len(values)} of the training rows has negative eigenvalues."
        ) from None
