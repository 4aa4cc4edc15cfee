"""The design of an array: NumPy's, or one that stays on its device.

An array of any namespace of the array API (PyTorch, CuPy, JAX) may be on any device.
Products with it are taken there. What goes in and comes out (coefficients, predictors,
slopes, inner products) is NumPy: it is small beside X, and all else runs as it does.
"""

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy import sparse

from .blocks import slices
from .design import ROW_BLOCK, ColumnDesign, MatrixDesign, scaled_gram
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

# More rows where they are short, as long as they keep to so many entries.
BLOCK_ENTRIES = 1 << 16
# A product of two blocks takes so many multiplications, so that threads are worth
# their while, as long as a block keeps to so many entries.
PRODUCT_MULTIPLICATIONS = 1 << 28
PRODUCT_ENTRIES = 1 << 20
# Rows of a Gram matrix that are added up at a time.
STRIP = 256
# Columns of an inner product of which one triangle is kept, at a time; and matrices of
# so few bytes are kept whole.
PACKED_STRIP, FEW_BYTES = 32, 1 << 22
# Some libraries take half the time for products of so few multiplications, where a few
# vectors (bytes of a row of them) meet so many rows at least.
SMALL_PRODUCT, SMALL_ROW = 1_000_000, 48
LEAST_ROWS = 32
# Products with an array in single precision convert so many columns, at least so many
# rows of them, at a time.
TILE_COLUMNS, TILE_ROWS = 2048, 32
# Entries of an array on a device that are copied, centred and scaled, at a time.
DEVICE_ENTRIES = 1 << 26
# Rows and columns of the product that is looked at, and how far off it may be, in units
# of the precision that X claims.
LOOKED_AT, ROUNDINGS = 64, 256
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
    check_digits(X)
    return DeviceDesign(X, center, row_scale)


class ArrayDesign(MatrixDesign):
    """An array of any namespace, lazily centred and scaled.

    Inner products are taken of the rows as they are meant, a block at a time, in double
    precision. To subtract what the centre adds from those of X would cancel all digits
    where means are large.
    """

    @property
    def _namespace(self):
        return namespace_of(self.X)

    @abstractmethod
    def _block_size(self, width):
        """Rows of a block with so many entries each."""

    def _product_size(self, width):
        """The same for inner products of all columns of the block."""
        return self._block_size(width)

    def _arrays(self, size=None, columns=EVERY, dtype=np.float64):
        """Rows as they are meant, where X is, so many at a time, in a precision.

        Yields
        ------
        rows : slice
        block : array
        """
        for rows in slices(self.shape[0], size or self._block_size(self.shape[1])):
            block = part_of(self.X, rows, columns)
            if self.center is not None:
                # In double precision, as the centre.
                block = block - to_device_of(self.center[columns].T, self.X)
            if self.row_scale is not None:
                scale = self.row_scale[rows].astype(self.dtype, copy=False)
                block = block * to_device_of(scale, self.X)
            # Last: large means that are taken off cost no digits.
            yield rows, as_dtype(block, dtype)

    def _centered_columns(self, columns):
        """The columns in a slice, centred and without their scale, where X is."""
        if self.center is None:
            return as_dtype(self.X[:, columns], self.dtype)
        return self.X[:, columns] - to_device_of(self.center[columns].T, self.X)

    def weighted_gram(self, weights):
        """The design' diag(weights) design, dense, (n_columns, n_columns)."""
        total, weights = 0.0, weights.astype(self.dtype, copy=False)
        for rows, block in self._arrays(self._product_size(self.shape[1])):
            total += block.T @ (block * to_device_of(weights[rows], self.X))
        return to_numpy(total)

    def squared_row_norms(self):
        """Squared Euclidean norm of every row, (n_rows,)."""
        sums = [self._namespace.sum(block**2, axis=1) for _, block in self._arrays()]
        return np.concatenate([to_numpy(each) for each in sums])

    def squares_t_dot(self, weights):
        """Weighted sums of the squares of all entries of a column, (n_columns, k)."""
        total, weights = 0.0, weights.astype(self.dtype, copy=False)
        for rows, block in self._arrays():
            total += (block**2).T @ to_device_of(weights[rows], self.X)
        return to_numpy(total)

    def mapped_columns(self, factor, center):
        """The design whose columns are factor (column - center), a new array.

        Shapes: factor, center (n_columns,).
        """
        moved = self._of(self.X, self.shifted(center).center, None)
        X = moved.selection(np.arange(self.shape[1]), self.storage_dtype).X
        X *= to_device_of(factor.astype(self.storage_dtype)[None], self.X)
        return self._of(X, None, self.row_scale)

    def column_sizes(self):
        """Euclidean norm and largest absolute entry of every column."""
        squares, largest = np.zeros(self.shape[1]), np.zeros(self.shape[1])
        for _, block in self._arrays():
            squares += to_numpy(self._namespace.sum(block**2, axis=0))
            size = self._namespace.max(self._namespace.abs(block), axis=0)
            np.maximum(largest, to_numpy(size), out=largest)
        return np.sqrt(squares), largest

    def is_zero(self):
        """Whether all entries are zero; centred, whether all columns are constant."""
        first = 0.0 if self.center is None else self.X[:1, :]
        return not any(
            bool(self._namespace.any(self.X[rows, :] != first))
            for rows in slices(self.shape[0], self._block_size(self.shape[1]))
        )


class DenseDesign(ArrayDesign):
    """An array in NumPy, lazily centred and scaled.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns), float32 or float64
    center, row_scale : ndarray or None
        As in :class:`MatrixDesign`.
    """

    # From the left: BLAS takes half the time where a few vectors lie side by side.
    def _times(self, coef):
        if self._goes_by_tiles(coef.dtype):
            found = np.zeros((coef.shape[1], len(self.X)), coef.dtype)
            for rows, columns, tile in self._tiles(coef.dtype):
                found[:, rows] += coef[columns].T @ tile.T
            return found.T
        parts = _small_products(self.X, coef)
        if parts is None:
            return (coef.T @ self.X.T).T
        found = np.empty((coef.shape[1], len(self.X)), self.X.dtype)
        for rows in parts:
            np.matmul(coef.T, self.X[rows].T, out=found[:, rows])
        return found.T

    def _transpose_times(self, slopes):
        if self._goes_by_tiles(slopes.dtype):
            found = np.zeros((slopes.shape[1], self.shape[1]), slopes.dtype)
            for rows, columns, tile in self._tiles(slopes.dtype):
                found[:, columns] += slopes[rows].T @ tile
            return found.T
        parts = _small_products(self.X, slopes)
        if parts is None or self.X.dtype != np.float32:
            # A matmul of few results would hold up the other threads of Python.
            return np.dot(slopes.T, self.X).T
        return sum(np.dot(slopes[rows].T, self.X[rows]) for rows in parts).T

    def _goes_by_tiles(self, dtype):
        """Whether products in a precision take X in parts that are converted to it.

        Those of single precision are centred, so that large means cancel no digits.
        """
        is_single = self.X.dtype == np.float32
        return is_single and (dtype != np.float32 or self.center is not None)

    def _rest_of_center(self, dtype):
        if not (self._goes_by_tiles(dtype) and dtype == np.float32):
            return self.center
        return self.center - self.center.astype(np.float32)

    def _tiles(self, dtype):
        """X in a precision, in parts that stay in cache.

        Yields
        ------
        rows, columns : slice
        tile : ndarray
        """
        n_rows, n_columns = self.shape
        width, center = min(max(n_columns, 1), TILE_COLUMNS), None
        if dtype == np.float32:
            center = self.center[:, 0].astype(dtype)
        for rows in slices(n_rows, max(TILE_ROWS, BLOCK_ENTRIES // width)):
            for columns in slices(n_columns, width):
                tile = self.X[rows, columns]
                if center is None:
                    tile = tile.astype(dtype)
                else:
                    tile = tile - center[columns]
                yield rows, columns, tile

    def _weighted_sum(self, weights):
        # Without a copy of X in double precision.
        return sum(
            self.X[rows].astype(np.float64, copy=False).T @ weights[rows]
            for rows in slices(self.shape[0], ROW_BLOCK)
        )

    def _block_size(self, width):
        """Rows of a block that stays in cache."""
        return max(ROW_BLOCK, BLOCK_ENTRIES // max(width, 1))

    def _product_size(self, width):
        width = max(width, 1)
        size = min(PRODUCT_MULTIPLICATIONS // width**2, PRODUCT_ENTRIES // width)
        return max(ROW_BLOCK, size)

    def gram(self, dtype=np.float64):
        """Inner products of the columns, dense, (n_columns, n_columns)."""
        parts = self._arrays(self._product_size(self.shape[1]), dtype=dtype)
        blocks = (block.T for _, block in parts)
        return _sum_of_squares(blocks, self.shape[1], dtype)

    def outer_gram(self):
        """Inner products of the rows, dense, (n_rows, n_rows)."""
        parts = slices(self.shape[1], self._product_size(self.shape[0]))
        blocks = (self._centered_columns(columns) for columns in parts)
        product = _sum_of_squares(blocks, self.shape[0], self.dtype)
        return scaled_gram(product, self.row_scale)

    def weighted_grams(self, weights):
        """:meth:`weighted_gram` for weights (n_rows, k): (k, n_columns, n_columns).

        In one product, where rows side by side stay in cache.
        """
        n_columns, n_weights = self.shape[1], weights.shape[1]
        found = np.zeros((n_columns, n_weights, n_columns), self.dtype)
        for rows, block in self._arrays(self._block_size(n_columns * n_weights)):
            scaled = weights[rows, :, None] * block[:, None]
            found += (block.T @ scaled.reshape(len(block), -1)).reshape(found.shape)
        return found.transpose(1, 0, 2)

    def spectrum(self):
        """Eigenvalues of (design' design) / n_rows, as of any design."""
        size = min(self.shape)
        if size**2 * self.dtype.itemsize <= max(self.n_bytes, FEW_BYTES):
            return super().spectrum()
        # X in single precision leaves no room for both triangles.
        values = packed_eigenvalues(self._packed_gram(size), size)
        return np.clip(values / self.shape[0], 0.0, None)

    def _packed_gram(self, size):
        """The upper triangle of :meth:`smaller_gram`, column after column."""
        triangle = np.empty(n_packed(size))
        for strip in slices(size, PACKED_STRIP):
            product = 0.0
            if self.side == "columns":
                for _, block in self._arrays(TILE_ROWS, slice(strip.stop)):
                    product = product + block.T @ block[:, strip]
            else:
                part = self.rows(slice(strip.stop))
                for columns in slices(self.shape[1], TILE_ROWS):
                    block = part._centered_columns(columns)
                    product = product + block @ block[strip].T
                if self.row_scale is not None:
                    product *= part.row_scale
                    product *= part.row_scale[strip].T
            for j in range(strip.start, strip.stop):
                column = product[: j + 1, j - strip.start]
                triangle[n_packed(j) : n_packed(j + 1)] = column
        return triangle

    def part(self, rows, columns):
        """The design of some rows and, of them, some columns: one copy."""
        center = None if self.center is None else self.center[columns]
        scale = None if self.row_scale is None else self.row_scale[rows]
        return self._of(part_of(self.X, rows, columns), center, scale)

    def selection(self, index, dtype):
        """A separate design of the columns in ``index``.

        Its entries are ``dtype``, or the precision of X if that is less. It is a copy
        in any case, so centre and scale are applied to it.
        """
        dtype = _less_precise(dtype, self.storage_dtype)
        return DenseDesign(self.dense_columns(index, dtype))

    def dense_columns(self, index, dtype):
        """The columns in ``index`` as an array, a block of rows at a time."""
        selection = np.empty((self.shape[0], len(index)), dtype)
        size = min(ROW_BLOCK, BLOCK_ENTRIES // max(len(index), 1))
        for rows in slices(self.shape[0], size):
            block = np.take(self.X[rows], index, axis=1).astype(self.dtype, copy=False)
            if self.center is not None:
                block -= self.center[index].T
            if self.row_scale is not None:
                block *= self.row_scale[rows]
            selection[rows] = block
        return selection

    def beside(self, other):
        """The columns of this selection and of ``other``, of the same rows."""
        return DenseDesign(np.concatenate([self.X, other.X], axis=1))

    def ones_selected(self, dtype):
        """A column of ones, scaled like the rows, to append to a selection."""
        dtype = _less_precise(dtype, self.storage_dtype)
        return DenseDesign(self.row_scales().astype(dtype, copy=False))


class DeviceDesign(ArrayDesign):
    """A matrix on a device, lazily centred and scaled.

    Parameters
    ----------
    X : array of shape (n_rows, n_columns), float32 or float64
        Array of a namespace that array-api-compat knows.
    center, row_scale : ndarray or None
        As in :class:`MatrixDesign`.
    """

    is_on_device = True

    @property
    def n_stored(self):
        return self.shape[0] * self.shape[1]

    def _times(self, coef):
        moved = to_device_of(coef.astype(self.dtype, copy=False), self.X)
        found = np.concatenate([to_numpy(block @ moved) for _, block in self._stored()])
        return found.astype(np.result_type(self.storage_dtype, coef), copy=False)

    def _transpose_times(self, slopes):
        found = self._weighted_sum(slopes.astype(self.dtype, copy=False))
        return found.astype(np.result_type(self.storage_dtype, slopes), copy=False)

    def _weighted_sum(self, weights):
        blocks = self._stored()
        return to_numpy(
            sum(block.T @ to_device_of(weights[rows], self.X) for rows, block in blocks)
        )

    def _stored(self):
        """Rows of X in double precision, as they are, so many at a time."""
        for rows in slices(self.shape[0], self._block_size(self.shape[1])):
            yield rows, as_dtype(rows_in(self.X, rows), self.dtype)

    def _block_size(self, width):
        return DEVICE_ENTRIES // max(width, 1)

    def outer_gram(self):
        """Inner products of the rows, dense, (n_rows, n_rows)."""
        total = 0.0
        for columns in slices(self.shape[1], self._block_size(self.shape[0])):
            block = self._centered_columns(columns)
            total += block @ block.T
        return scaled_gram(to_numpy(total), self.row_scale)

    def selection(self, index, dtype):
        """A separate design of the columns in ``index``, as in memory."""
        dtype = _less_precise(dtype, self.storage_dtype)
        return DeviceDesign(self._selected(index, dtype))

    def dense_columns(self, index, dtype):
        """The columns in ``index`` as a NumPy array."""
        return to_numpy(self._selected(index, dtype))

    def _selected(self, index, dtype):
        """The columns in ``index``, centred and scaled, where X is."""
        blocks = [block for _, block in self._arrays(columns=index, dtype=dtype)]
        return self._namespace.concat(blocks, axis=0)

    def beside(self, other):
        """The columns of this selection and of ``other``, of the same rows."""
        return DeviceDesign(self._namespace.concat([self.X, other.X], axis=1))

    def ones_selected(self, dtype):
        """A column of ones, scaled like the rows, to append to a selection."""
        dtype = _less_precise(dtype, self.storage_dtype)
        return DeviceDesign(to_device_of(self.row_scales().astype(dtype), self.X))


def _less_precise(dtype, other):
    """The dtype of fewer digits of two."""
    return min(np.dtype(dtype), np.dtype(other), key=lambda each: each.itemsize)


def _sum_of_squares(blocks, side, dtype):
    """The sum of ``block @ block.T`` over blocks with so many rows.

    By NumPy: another BLAS in the same process would compete for the cores.
    """
    product = np.zeros((side, side), dtype)
    strips = slices(side, STRIP)
    for block in blocks:
        for rows in strips:
            product[rows, rows.start :] += block[rows] @ block[rows.start :].T
    for rows in strips:  # the lower triangle from the upper one
        product[rows.stop :, rows] = product[rows, rows.stop :].T
    return product


def _small_products(X, vectors):
    """Slices of rows whose products with a few vectors are small ones, or None.

    None where these would be too few rows, or all of them are one small product.
    """
    n_rows, n_vectors = len(X), vectors.shape[1]
    is_alike = vectors.dtype == X.dtype and X.flags.c_contiguous
    if not (is_alike and 1 < n_vectors <= SMALL_ROW // X.itemsize):
        return None
    size = SMALL_PRODUCT // (max(1, X.shape[1]) * n_vectors)
    return slices(n_rows, size) if LEAST_ROWS <= size < n_rows else None


def check_digits(X):
    """Raise where factors are rounded before they are multiplied, as by TF32.

    Raises
    ------
    ValueError
        If products on the device of an array have fewer digits than it has.
    """
    n_rows, n_columns = (min(LOOKED_AT, size) for size in X.shape)
    some = X[:n_rows, :n_columns]
    known, found = to_numpy(some).astype(np.float64), to_numpy(some @ some.T)
    size, dtype = np.abs(known) @ np.abs(known).T, dtype_of(X)
    tolerance = ROUNDINGS * np.finfo(dtype).eps * size
    if (np.abs(found - known @ known.T) > tolerance).any():
        raise ValueError(
            f"Matrix products of {dtype} on this device have fewer digits: "
            "turn off its reduced precision (TF32), which leads to other iterates."
        )
