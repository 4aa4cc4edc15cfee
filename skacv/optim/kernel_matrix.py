"""The kernel matrix of the training rows, stored or computed block by block."""

import numpy as np

from .blocks import LARGE_BYTES, MEMORY_BYTES, blocks
from .namespaces import (
    empty,
    free_bytes,
    namespace_of,
    part_of,
    rows_in,
    to_device_of,
    to_numpy,
)

EVERY = slice(None)


class KernelMatrix:
    """The kernel between all training rows, stored if it fits in ``budget`` bytes.

    If it does not, every product computes the entries again, block by block. X and the
    matrix may be on a device; factors and results of products are arrays of NumPy.

    Shapes: X (n_rows, n_features); diagonal (n_rows,); values (n_rows, n_rows)."""

    def __init__(self, kernel, X, dtype, budget, map=map):
        self.kernel = kernel
        self.X = X
        self.dtype = np.dtype(dtype)
        self.budget = budget
        self.map = map
        self.diagonal = np.asarray(kernel.diagonal(X), dtype=np.float64)
        if not np.isfinite(self.diagonal).all():
            raise ValueError("kernel must return finite numbers.")
        fits = len(self) ** 2 * self.dtype.itemsize <= budget
        self.values = self._computed() if fits else None

    def __len__(self):
        return self.X.shape[0]

    def square(self, index):
        """The matrix between rows, (n_index, n_index), which must not be written to."""
        return to_numpy(self._square(index))

    def _square(self, index):
        if self.values is not None:
            return part_of(self.values, index, index)
        X = self._data(index)
        return self.kernel(X, X)

    def square_product(self, rows):
        """A function that multiplies with the square matrix between some rows."""
        n_rows = len(np.arange(len(self))[rows])
        if self.values is None and n_rows**2 * self.dtype.itemsize > self.budget:
            X = self._data(rows)
            return lambda coef: kernel_product(self.kernel, X, X, coef, self.map)
        part = self._square(rows)

        def multiply(coef):
            return to_numpy(
                part @ to_device_of(coef.astype(self.dtype, copy=False), part)
            )

        return multiply

    def dot(self, columns, coef, rows=EVERY):
        """Product (n_rows, k) of rows and columns with coefficients (n_columns, k)."""
        coef = coef.astype(self.dtype, copy=False)
        if self.values is None:
            X, Z = self._data(rows), self._data(columns)
            return kernel_product(self.kernel, X, Z, coef, self.map)
        coef = to_device_of(coef, self.values)
        if is_every(rows):  # rows of the symmetric matrix, which are contiguous
            return to_numpy(part_of(self.values, columns, EVERY).T @ coef)
        return to_numpy(part_of(self.values, rows, columns) @ coef)

    def _data(self, rows):
        return self.X if is_every(rows) else rows_in(self.X, rows)

    def _computed(self):
        """The matrix between all rows, exactly symmetric."""
        X, namespace = self.X, namespace_of(self.X)
        matrix = empty((len(self), len(self)), self.dtype, X)
        diagonal = to_device_of(self.diagonal.astype(self.dtype), X)

        def fill(rows):
            matrix[rows, : rows.stop] = self.kernel(X[rows, :], X[: rows.stop, :])
            # By rounding, a product may differ from its transpose.
            below = namespace.tril(matrix[rows, rows], k=-1)
            matrix[rows, rows] = below + below.T
            matrix[: rows.start, rows] = matrix[rows, : rows.start].T

        list(self.map(fill, row_blocks(X, len(self), self.dtype)))
        # A view of the diagonal.
        namespace.reshape(matrix, (-1,))[:: len(self) + 1] = diagonal
        return matrix


def is_every(rows):
    return isinstance(rows, slice) and rows == EVERY


def as_slice(index):
    """A slice if the rows of an index are consecutive: slicing makes no copy."""
    if isinstance(index, slice) or len(index) == 0 or (np.diff(index) != 1).any():
        return index
    return slice(int(index[0]), int(index[-1]) + 1)


def row_blocks(X, width, dtype):
    """Slices of rows for computing a kernel of ``width`` columns."""
    # A block and a few arrays of its size fit in the processor's cache. A GPU needs
    # larger blocks, up to a share of its free memory.
    free = free_bytes(X)
    budget = LARGE_BYTES // 4 if free is None else min(free // 16, MEMORY_BYTES)
    return blocks(X.shape[0], np.dtype(dtype).itemsize * width, budget)


def kernel_product(kernel, X, Z, coef, map=map):
    """Product (n, k) of the kernel of n rows X and m rows Z with ``coef`` (m, k)."""
    product = np.zeros((X.shape[0], coef.shape[1]), coef.dtype)
    if not coef.size:
        return product
    device_vectors = to_device_of(coef, Z)

    def fill(rows):
        product[rows] = to_numpy(kernel(X[rows, :], Z) @ device_vectors)

    list(map(fill, row_blocks(X, len(coef), coef.dtype)))
    return product
