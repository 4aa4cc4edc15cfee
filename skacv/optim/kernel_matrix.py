"""The kernel matrix of the training rows: kept, or computed in blocks again."""

import numpy as np

# A block is a few arrays of this size while it is computed, kept in the cache.
BLOCK_BYTES = 1 << 22
EVERY = slice(None)


class KernelMatrix:
    """The kernel between all training rows.

    It is kept if it takes at most ``budget`` bytes. Else its entries are computed
    whenever they are asked for, a block of rows at a time.

    Parameters
    ----------
    kernel : callable
        ``kernel(X, Z)`` is an array of shape (n, m) for n and m rows;
        ``kernel.diagonal(X)`` has shape (n,).
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)
    dtype : dtype
        Precision of the entries.
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
        """Rows and columns of the matrix, (n_index, n_index); not to be written to."""
        if self.values is not None:
            return self._part(index, index)
        X = self._data(index)
        return self.kernel(X, X)

    def square_product(self, rows):
        """How to multiply with the part of the matrix between some rows.

        Parameters
        ----------
        rows : slice or ndarray of int

        Returns
        -------
        callable
            It takes an array of shape (n, n_outputs), for n rows.
        """
        n_rows = len(np.arange(len(self))[rows])
        if self.values is None and n_rows**2 * self.dtype.itemsize > self.budget:
            X = self._data(rows)
            return lambda coef: product(self.kernel, X, X, coef, self.map)
        part = self.square(rows)
        return lambda coef: part @ coef.astype(self.dtype, copy=False)

    def dot(self, columns, coef, rows=EVERY):
        """Product of some columns of the matrix with (n_columns, n_outputs).

        Returns
        -------
        ndarray of shape (n_rows, n_outputs)
            Values at ``rows``.
        """
        coef = coef.astype(self.dtype, copy=False)
        if self.values is None:
            X, Z = self._data(rows), self._data(columns)
            return product(self.kernel, X, Z, coef, self.map)
        if is_every(rows):  # entries of the symmetric matrix as they lie in memory
            return self.values[columns].T @ coef
        return self._part(rows, columns) @ coef

    def _part(self, rows, columns):
        """Part of the kept matrix: a view where both are slices, else one copy."""
        if isinstance(rows, slice) or isinstance(columns, slice):
            return self.values[rows, columns]
        return self.values[np.ix_(rows, columns)]

    def _data(self, rows):
        """The training rows, without a copy of all."""
        return self.X if is_every(rows) else self.X[rows]

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


def is_every(rows):
    """Whether an index is the slice of all rows."""
    return isinstance(rows, slice) and rows == EVERY


def as_slice(index):
    """An index as a slice, where its rows follow each other: no copy is made then."""
    if isinstance(index, slice) or len(index) == 0 or (np.diff(index) != 1).any():
        return index
    return slice(int(index[0]), int(index[-1]) + 1)


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
