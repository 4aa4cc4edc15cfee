"""Designs of arrays: of NumPy, or of another library, perhaps on a device.

X may belong to any namespace of the array API (PyTorch, CuPy, JAX), on any device:
products with it are computed there. Their factors and results (coefficients,
predictors, slopes, inner products) are small relative to X, and are arrays of NumPy.
"""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigvalsh

from .blocks import CACHE_BYTES, LARGE_BYTES, MEMORY_BYTES, blocks, n_per_block, slices
from .design import ROUNDINGS, ROW_BLOCK, ColumnDesign, MatrixDesign, scaled_gram
from .namespaces import (
    as_dtype,
    dtype_of,
    namespace_of,
    part_of,
    rows_in,
    to_device_of,
    to_numpy,
)
from .packed import n_packed, packed_eigenvalues
from .sparse import SparseDesign

__all__ = ["design_of"]

EVERY = slice(None)


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
    check_product_precision(X)
    return DeviceDesign(X, center, row_scale)


class ArrayDesign(MatrixDesign):
    """An array of any namespace, centred and scaled as it is read."""

    _namespace = np

    # Memory of a block of centred rows, in bytes, and its least number of rows.
    # Inner products are computed from centred rows in double precision: if products of
    # X were corrected for the centre instead, large means would cost all digits.
    _block_bytes, _least_rows = MEMORY_BYTES, 1

    def _to_device(self, array):
        """A NumPy array in the namespace of X."""
        return array

    def _to_numpy(self, array):
        """An array of the namespace of X in NumPy."""
        return np.asarray(array)

    def _as_dtype(self, array, dtype):
        """An array of the namespace of X in a precision."""
        return np.asarray(array, dtype)

    def _block_size(self, width):
        """Number of rows in a block, each with ``width`` entries."""
        return max(self._least_rows, n_per_block(8 * width, self._block_bytes))

    def _product_size(self, width):
        """Number of rows in a block whose columns are multiplied with each other."""
        return self._block_size(width)

    def _centered_blocks(self, size=None, columns=EVERY, dtype=np.float64):
        """Yield slices of rows, and these rows centred and scaled, on X's device."""
        for rows in slices(self.shape[0], size or self._block_size(self.shape[1])):
            if self.is_on_device:
                block = part_of(self.X, rows, columns)
            else:
                block = self.X[rows, columns]
            if self.center is not None:
                # The centre is in double precision, and so is the difference.
                block = block - self._to_device(self.center[columns].T)
            if self.row_scale is not None:
                scale = self.row_scale[rows].astype(self.dtype, copy=False)
                block = block * self._to_device(scale)
            # The conversion comes last, so that large means cost no digits.
            yield rows, self._as_dtype(block, dtype)

    def _centered_columns(self, columns):
        if self.center is None:
            return self._as_dtype(self.X[:, columns], self.dtype)
        return self.X[:, columns] - self._to_device(self.center[columns].T)

    def weighted_gram(self, weights):
        total, weights = 0.0, weights.astype(self.dtype, copy=False)
        for rows, block in self._centered_blocks(self._product_size(self.shape[1])):
            total += block.T @ (block * self._to_device(weights[rows]))
        return self._to_numpy(total)

    def squared_row_norms(self):
        norms = np.empty(self.shape[0])
        for rows, block in self._centered_blocks():
            norms[rows] = self._to_numpy(self._namespace.sum(block**2, axis=1))
        return norms

    def squares_t_dot(self, weights):
        total, weights = 0.0, weights.astype(self.dtype, copy=False)
        for rows, block in self._centered_blocks():
            total += (block**2).T @ self._to_device(weights[rows])
        return self._to_numpy(total)

    def mapped_columns(self, factor, center):
        shifted = self._new(self.X, self.shifted(center).center, None)
        X = shifted.selection(np.arange(self.shape[1]), self.storage_dtype).X
        X *= self._to_device(factor.astype(self.storage_dtype)[None])
        return self._new(X, None, self.row_scale)

    def column_sizes(self):
        squares, largest = np.zeros(self.shape[1]), np.zeros(self.shape[1])
        for _, block in self._centered_blocks():
            squares += self._to_numpy(self._namespace.sum(block**2, axis=0))
            size = self._namespace.max(self._namespace.abs(block), axis=0)
            np.maximum(largest, self._to_numpy(size), out=largest)
        return np.sqrt(squares), largest

    def column_of_ones(self, dtype):
        dtype = _lower_precision(dtype, self.storage_dtype)
        ones = self.row_scales().astype(dtype, copy=False)
        design_type = DeviceDesign if self.is_on_device else DenseDesign
        return design_type(self._to_device(ones))

    def is_zero(self):
        # Centred rows are zero if all rows are equal.
        reference = 0.0 if self.center is None else self.X[:1, :]
        for rows in slices(self.shape[0], self._block_size(self.shape[1])):
            if self._namespace.any(self.X[rows, :] != reference):
                return False
        return True


class DenseDesign(ArrayDesign):
    """A NumPy array X (n_rows, n_columns), centred and scaled as it is read."""

    _block_bytes, _least_rows = CACHE_BYTES, ROW_BLOCK

    # Vectors multiply from the left: BLAS takes half the time for a few of them.
    def _times(self, coef):
        if self.X.dtype == np.float32 and self._needs_tiles(coef.dtype):
            product = np.zeros((coef.shape[1], len(self.X)), coef.dtype)
            for rows, columns, tile in self._tiles(coef.dtype):
                product[:, rows] += coef[columns].T @ tile.T
            return product.T
        row_slices = None if coef.shape[1] == 1 else _row_slices(self.X, coef)
        if row_slices is None:
            return (coef.T @ self.X.T).T
        product = np.empty((coef.shape[1], len(self.X)), self.X.dtype)
        for rows in row_slices:
            np.matmul(coef.T, self.X[rows].T, out=product[:, rows])
        return product.T

    def _transpose_times(self, slopes):
        if self.X.dtype == np.float32 and self._needs_tiles(slopes.dtype):
            product = np.zeros((slopes.shape[1], self.shape[1]), slopes.dtype)
            for rows, columns, tile in self._tiles(slopes.dtype):
                product[:, columns] += slopes[rows].T @ tile
            return product.T
        row_slices = None if slopes.shape[1] == 1 else _row_slices(self.X, slopes)
        if row_slices is None or self.X.dtype != np.float32:
            # A matmul of few results would hold up the other threads of Python.
            return np.dot(slopes.T, self.X).T
        return sum(np.dot(slopes[rows].T, self.X[rows]) for rows in row_slices).T

    def _needs_tiles(self, dtype):
        """Whether X in single precision is converted, or centred, before a product."""
        # Tiles are: a converted or centred copy of X would be as large as X.
        return dtype != np.float32 or self.center is not None

    def _residual_center(self, dtype):
        if self.X.dtype == dtype == np.float32:
            # Tiles are centred in single precision: the rounding of the centre is left.
            return self.center - self.center.astype(np.float32)
        return self.center

    def _tiles(self, dtype):
        """Yield slices of rows and of columns, and this part of X, in ``dtype``."""
        n_rows, n_columns = self.shape
        # Tiles are narrow enough to have ROW_BLOCK rows or more.
        width, center = min(max(n_columns, 1), n_per_block(8 * ROW_BLOCK)), None
        if dtype == np.float32:
            center = self.center[:, 0].astype(dtype)
        for rows in blocks(n_rows, 8 * width):
            for columns in slices(n_columns, width):
                tile = self.X[rows, columns]
                if center is None:
                    tile = tile.astype(dtype)
                else:
                    tile = tile - center[columns]
                yield rows, columns, tile

    def _weighted_sum(self, weights):
        # Few rows at a time, since a copy of X in double precision may not fit.
        total = 0.0
        for rows in slices(self.shape[0], ROW_BLOCK):
            total += self.X[rows].astype(np.float64, copy=False).T @ weights[rows]
        return total

    def _product_size(self, width):
        # BLAS gains from threads in products of some 2**28 multiplications.
        n_for_threads = 2**28 // max(width, 1) ** 2
        n_in_memory = n_per_block(8 * width, LARGE_BYTES // 2)
        return max(ROW_BLOCK, min(n_for_threads, n_in_memory))

    def gram(self, dtype=np.float64):
        parts = self._centered_blocks(self._product_size(self.shape[1]), dtype=dtype)
        return _sum_of_squares(parts, self.shape[1], dtype)

    def outer_gram(self):
        size = self._product_size(self.shape[0])
        parts = (
            (columns, self._centered_columns(columns).T)
            for columns in slices(self.shape[1], size)
        )
        product = _sum_of_squares(parts, self.shape[0], self.dtype)
        return scaled_gram(product, self.row_scale)

    def weighted_grams(self, weights):
        n_columns, n_weights = self.shape[1], weights.shape[1]
        grams = np.zeros((n_columns, n_weights, n_columns), self.dtype)
        for rows, block in self._centered_blocks(
            self._block_size(n_columns * n_weights)
        ):
            scaled = weights[rows, :, None] * block[:, None]
            grams += (block.T @ scaled.reshape(len(block), -1)).reshape(grams.shape)
        return grams.transpose(1, 0, 2)

    def spectrum(self):
        size = min(self.shape)
        if size**2 * self.dtype.itemsize <= max(self.X.nbytes, LARGE_BYTES // 4):
            # In place: the matrix may be as large as X.
            gram = self.smaller_gram().T
            values = eigvalsh(gram, overwrite_a=True, check_finite=False)
        else:  # X in single precision leaves no room for both triangles
            values = packed_eigenvalues(self._packed_gram(size), size)
        return np.clip(values / self.shape[0], 0.0, None)

    def _packed_gram(self, size):
        """Upper triangle of :meth:`smaller_gram`, column by column."""
        # Strips are narrow: X and the triangle leave little memory for them.
        triangle, width = np.empty(n_packed(size)), ROW_BLOCK // 4
        for strip in slices(size, width):
            product = np.zeros((strip.stop, strip.stop - strip.start))
            if self.side == "columns":
                for _, block in self._centered_blocks(width, slice(strip.stop)):
                    product += block.T @ block[:, strip]
            else:
                part = self.rows(slice(strip.stop))
                for columns in slices(self.shape[1], width):
                    block = part._centered_columns(columns)
                    product += block @ block[strip].T
                if self.row_scale is not None:
                    product *= part.row_scale
                    product *= part.row_scale[strip].T
            for j in range(strip.start, strip.stop):
                column = product[: j + 1, j - strip.start]
                triangle[n_packed(j) : n_packed(j + 1)] = column
        return triangle

    def part(self, rows, columns):
        center = None if self.center is None else self.center[columns]
        scale = None if self.row_scale is None else self.row_scale[rows]
        return self._new(part_of(self.X, rows, columns), center, scale)

    def selection(self, index, dtype):
        dtype = _lower_precision(dtype, self.storage_dtype)
        return DenseDesign(self.dense_columns(index, dtype))

    def dense_columns(self, index, dtype):
        selection = np.empty((self.shape[0], len(index)), dtype)
        # Few rows at a time: the selection may be as large as X already.
        size = min(ROW_BLOCK, n_per_block(32 * len(index)))
        for rows in slices(self.shape[0], size):
            block = np.take(self.X[rows], index, axis=1).astype(self.dtype, copy=False)
            if self.center is not None:
                block -= self.center[index].T
            if self.row_scale is not None:
                block *= self.row_scale[rows]
            selection[rows] = block
        return selection

    def joined_with(self, selection):
        return DenseDesign(np.concatenate([self.X, selection.X], axis=1))


class DeviceDesign(ArrayDesign):
    """An array X (n_rows, n_columns) on a device, centred and scaled as it is read."""

    is_on_device = True

    def __init__(self, X, center=None, row_scale=None):
        super().__init__(X, center, row_scale)
        self.storage_dtype, self.n_stored = dtype_of(X), X.shape[0] * X.shape[1]

    @property
    def _namespace(self):
        return namespace_of(self.X)

    def _to_device(self, array):
        return to_device_of(array, self.X)

    def _to_numpy(self, array):
        return to_numpy(array)

    def _as_dtype(self, array, dtype):
        return as_dtype(array, dtype)

    def rows(self, index):
        scale = None if self.row_scale is None else self.row_scale[index]
        return self._new(rows_in(self.X, index), self.center, scale)

    def _times(self, coef):
        device_coef = to_device_of(coef.astype(self.dtype, copy=False), self.X)
        product = np.concatenate(
            [to_numpy(block @ device_coef) for _, block in self._row_blocks()]
        )
        return product.astype(np.result_type(self.storage_dtype, coef), copy=False)

    def _transpose_times(self, slopes):
        product = self._weighted_sum(slopes.astype(self.dtype, copy=False))
        return product.astype(np.result_type(self.storage_dtype, slopes), copy=False)

    def _weighted_sum(self, weights):
        blocks = self._row_blocks()
        return to_numpy(
            sum(block.T @ to_device_of(weights[rows], self.X) for rows, block in blocks)
        )

    def _row_blocks(self):
        """Yield slices of rows, and these rows of X in double precision."""
        for rows in slices(self.shape[0], self._block_size(self.shape[1])):
            yield rows, as_dtype(rows_in(self.X, rows), self.dtype)

    def outer_gram(self):
        total = 0.0
        for columns in slices(self.shape[1], self._block_size(self.shape[0])):
            block = self._centered_columns(columns)
            total += block @ block.T
        return scaled_gram(to_numpy(total), self.row_scale)

    def selection(self, index, dtype):
        dtype = _lower_precision(dtype, self.storage_dtype)
        return DeviceDesign(self._select(index, dtype))

    def dense_columns(self, index, dtype):
        return to_numpy(self._select(index, dtype))

    def _select(self, index, dtype):
        blocks = [
            block for _, block in self._centered_blocks(columns=index, dtype=dtype)
        ]
        return self._namespace.concat(blocks, axis=0)

    def joined_with(self, selection):
        return DeviceDesign(self._namespace.concat([self.X, selection.X], axis=1))


def _lower_precision(dtype, storage_dtype):
    """The dtype of fewer bytes."""
    dtype, storage_dtype = np.dtype(dtype), np.dtype(storage_dtype)
    return dtype if dtype.itemsize <= storage_dtype.itemsize else storage_dtype


def _sum_of_squares(parts, side, dtype):
    """The sum of ``block.T @ block`` over pairs (_, block) of ``side`` columns."""
    product = np.zeros((side, side), dtype)
    strips = slices(side, ROW_BLOCK)
    for _, block in parts:
        for strip in strips:
            product[strip, strip.start :] += block[:, strip].T @ block[:, strip.start :]
    for strip in strips:  # copy the upper triangle to the lower one
        product[strip.stop :, strip] = product[strip, strip.stop :].T
    return product


def _row_slices(X, vectors, most=1_000_000, most_bytes=48, least_rows=32):
    """Slices of rows for small products with 2 or more vectors; None where no gain."""
    n_rows, n_vectors = len(X), vectors.shape[1]
    needs_no_copy = vectors.dtype == X.dtype and X.flags.c_contiguous
    if not (needs_no_copy and 1 < n_vectors <= most_bytes // X.itemsize):
        return None
    size = most // (max(1, X.shape[1]) * n_vectors)
    return slices(n_rows, size) if least_rows <= size < n_rows else None


def check_product_precision(X, size=64):
    """Raise if a device rounds factors before it multiplies them, as TF32 does."""
    n_rows, n_columns = (min(size, n) for n in X.shape)
    part = X[:n_rows, :n_columns]
    exact, product = to_numpy(part).astype(np.float64), to_numpy(part @ part.T)
    size, dtype = np.abs(exact) @ np.abs(exact).T, dtype_of(X)
    tolerance = ROUNDINGS * np.finfo(dtype).eps * size
    if (np.abs(product - exact @ exact.T) > tolerance).any():
        raise ValueError(
            f"Matrix products of {dtype} on this device have fewer digits: "
            "turn off its reduced precision (TF32), which leads to other iterates."
        )
