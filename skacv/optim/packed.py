"""Eigenvalues of a symmetric matrix whose upper triangle is stored."""

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal
from scipy.linalg.blas import dspmv, dspr2


def n_packed(size):
    """Number of entries in a triangle with its diagonal."""
    return size * (size + 1) // 2


def packed_eigenvalues(triangle, size):
    """Eigenvalues in increasing order, from Householder's tridiagonal form.

    Shapes: triangle (n_packed(size),), which is overwritten."""
    off_diagonal = np.zeros(max(size - 1, 0))
    for j in range(size - 1, 0, -1):
        column = triangle[n_packed(j) : n_packed(j) + j]
        last = column[-1]
        beta = -np.copysign(np.linalg.norm(column), last)
        off_diagonal[j - 1] = beta
        if not np.any(column[:-1]):
            off_diagonal[j - 1] = last
            continue
        v = column / (last - beta)
        v[-1] = 1.0
        tau, leading = (beta - last) / beta, triangle[: n_packed(j)]
        w = dspmv(j, tau, leading, v)
        w -= (0.5 * tau * (w @ v)) * v
        dspr2(j, -1.0, v, w, leading, overwrite_ap=True)
    diagonal = triangle[n_packed(np.arange(1, size + 1)) - 1]
    return eigvalsh_tridiagonal(diagonal, off_diagonal)
