"""The kernel matrix of the training rows: kept, or computed in blocks again."""

import numpy as np

# A block is a few arrays of this size while it is computed, kept in the cache.
BLOCK_BYTES = 1 << 22
# A kernel matrix is taken to be one up to this share of its largest entry.
ASYMMETRY = 1e-5
# Eigenvalues may be negative by this share of the largest: rounding.
NEGATIVE = 1e-5


class KernelMatrix:
    """The kernel between all training rows.

    It is kept if it takes at most ``budget`` bytes. Else its entries are computed
    whenever they are asked for, a block of rows at a time.

    Parameters
    ----------
    kernel : callable
        See :mod:`skacv.kernel.kernels`.
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)
    dtype : dtype
        Of the entries.
    budget : float
        In bytes.
    map : callable
        ``map(function, blocks)``; blocks are independent of each other.

    Attributes
    ----------
    diagonal : ndarray of shape (n_rows,), float64
    values : ndarray of shape (n_rows, n_rows) or None
        The matrix, if it is kept.
    """

    def __init__(self, kernel, X, dtype, budget, map=map):
        self.kernel = kernel
        self.X = X
        self.dtype = np.dtype(dtype)
        self.budget = budget
        self.map = map
        self.diagonal = np.asarray(kernel.diagonal(X), dtype=np.float64)
        if not np.isfinite(self.diagonal).all():
            raise ValueError("kernel must give finite numbers.")
        fits = len(self) ** 2 * self.dtype.itemsize <= budget
        self.values = self._computed() if fits else None

    def __len__(self):
        return self.X.shape[0]

    def square(self, index):
        """Rows and columns of the matrix, (n_index, n_index), in double precision."""
        X = self.X[index]
        return np.asarray(self.kernel(X, X), dtype=np.float64)

    def square_product(self, rows):
        """How to multiply with the part of the matrix between some rows.

        Parameters
        ----------
        rows : slice

        Returns
        -------
        callable
            Of an array of shape (n, n_outputs), for n rows in the slice.
        """
        n_bytes = (rows.stop - rows.start) ** 2 * self.dtype.itemsize
        if self.values is not None:
            part = self.values[rows, rows]
        elif n_bytes <= self.budget:
            part = self.kernel(self.X[rows], self.X[rows])
        else:
            X = self.X[rows]
            return lambda coef: product(self.kernel, X, X, coef, self.map)
        return lambda coef: part @ coef.astype(self.dtype)

    def dot(self, columns, coef):
        """Product of some columns of the matrix with (n_columns, n_outputs).

        Returns
        -------
        ndarray of shape (n_rows, n_outputs)
        """
        coef = coef.astype(self.dtype)
        if self.values is not None:
            return self.values[columns].T @ coef
        return product(self.kernel, self.X, self.X[columns], coef, self.map)

    def _computed(self):
        """The whole matrix; what is below the diagonal is mirrored."""
        matrix = np.empty((len(self), len(self)), self.dtype)

        def fill(rows):
            matrix[rows, : rows.stop] = self.kernel(self.X[rows], self.X[: rows.stop])
            # Products may differ from their transpose by rounding.
            below = np.tril(matrix[rows, rows], -1)
            matrix[rows, rows] = below + below.T
            matrix[: rows.start, rows] = matrix[rows, : rows.start].T

        list(self.map(fill, blocks(len(self), len(self), self.dtype)))
        np.fill_diagonal(matrix, self.diagonal)
        return matrix


def blocks(n_rows, width, dtype):
    """Slices of rows that are computed at a time, next to so many columns."""
    size = max(1, BLOCK_BYTES // (np.dtype(dtype).itemsize * max(width, 1)))
    return [slice(a, min(a + size, n_rows)) for a in range(0, n_rows, size)]


def product(kernel, X, Z, coef, map=map):
    """Product of the kernel of two sets of rows with coefficients, in blocks.

    Parameters
    ----------
    kernel : callable
    X, Z : rows, (n, d) and (m, d)
    coef : ndarray of shape (m, n_outputs)

    Returns
    -------
    ndarray of shape (n, n_outputs)
    """
    found = np.zeros((X.shape[0], coef.shape[1]), coef.dtype)
    if not coef.size:
        return found

    def fill(rows):
        found[rows] = kernel(X[rows], Z) @ coef

    list(map(fill, blocks(X.shape[0], len(coef), coef.dtype)))
    return found


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
    return blocks(*matrix.shape, matrix.dtype)


def check_kernel(values):
    """Raise unless a square part of a kernel matrix can be that of a kernel.

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
