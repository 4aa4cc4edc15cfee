"""DeviceDesign: a matrix that stays on its device, lazily centred and scaled.

X is an array of any namespace of the array API (PyTorch, CuPy, JAX) on any device.
Products with it are taken there. What goes in and comes out (coefficients, predictors,
slopes, inner products) is NumPy: it is small beside X, and all else runs as it does.
"""

import numpy as np

from .design import scaled_gram
from .matrix import MatrixDesign, slices
from .namespaces import as_dtype, dtype_of, here, namespace_of, picked, rows_in, there

# Entries of X that are copied, centred and scaled, at a time.
BLOCK_ENTRIES = 1 << 26
# Rows and columns of the product that is looked at, and how far off it may be, in units
# of the precision that X claims.
LOOKED_AT, ROUNDINGS = 64, 256


class DeviceDesign(MatrixDesign):
    """A matrix on a device, lazily centred and scaled.

    Parameters
    ----------
    X : array of shape (n_rows, n_columns), float32 or float64
        Array of a namespace that array-api-compat knows.
    center, row_scale : ndarray or None
        As in :class:`MatrixDesign`.
    """

    is_away = True

    @classmethod
    def of(cls, X, center=None, row_scale=None):
        """The design of an array, whose products have been looked at.

        Raises
        ------
        ValueError
            If products on its device have fewer digits than it has.
        """
        design = cls(X, center, row_scale)
        design._check_digits()
        return design

    @property
    def _namespace(self):
        return namespace_of(self.X)

    @property
    def dtype(self):
        return dtype_of(self.X)

    @property
    def n_stored(self):
        return self.shape[0] * self.shape[1]

    def _there(self, array):
        """A NumPy array on the device."""
        return there(array, self.X)

    def _here(self, array):
        """An array of the device, copied to NumPy."""
        return here(array)

    def _check_digits(self):
        """Raise where factors are rounded before they are multiplied, as by TF32."""
        n_rows, n_columns = (min(LOOKED_AT, size) for size in self.shape)
        some = self.X[:n_rows, :n_columns]
        here = self._here(some).astype(np.float64)
        found = self._here(some @ self._namespace.matrix_transpose(some))
        size = np.abs(here) @ np.abs(here).T
        tolerance = ROUNDINGS * np.finfo(self.dtype).eps * size
        if (np.abs(found - here @ here.T) > tolerance).any():
            raise ValueError(
                f"Matrix products of {self.dtype} on this device have fewer digits: "
                "turn off its reduced precision (TF32), which leads to other iterates."
            )

    def _times(self, coef):
        coef = self._there(coef.astype(self.dtype, copy=False))
        return self._here(self.X @ coef)

    def _transpose_times(self, slopes):
        slopes = self._there(slopes.astype(self.dtype, copy=False))
        return self._here(self._namespace.matrix_transpose(self.X) @ slopes)

    def _weighted_sum(self, weights):
        total = 0.0
        for rows in self._slices():
            block = as_dtype(self.X[rows, :], np.float64)
            share = self._there(weights[rows].astype(np.float64))
            total = total + self._namespace.matrix_transpose(block) @ share
        return self._here(total)

    def _slices(self):
        return within(self.shape[0], BLOCK_ENTRIES // self.shape[1])

    def _arrays(self, columns=None, dtype=None):
        """Rows as they are meant, on the device, so many at a time, in a precision.

        Yields
        ------
        rows : slice
        block : array
        """
        center, dtype = self.center, self.dtype if dtype is None else dtype
        for rows in self._slices():
            block = self.X[rows, :]
            if columns is not None:
                block = picked(block, columns, axis=1)
            block = as_dtype(block, dtype)
            if center is not None:
                own = center if columns is None else center[columns]
                block = block - self._there(own.T.astype(dtype))
            if self.row_scale is not None:
                block = block * self._there(self.row_scale[rows].astype(dtype))
            yield rows, block

    def gram(self):
        """Inner products of the columns, dense, (n_columns, n_columns)."""
        return self.weighted_gram(np.ones((self.shape[0], 1), self.dtype))

    def weighted_gram(self, weights):
        """The design' diag(weights) design, dense, (n_columns, n_columns)."""
        total, transposed = 0.0, self._namespace.matrix_transpose
        for rows, block in self._arrays():
            weighted = block * self._there(weights[rows].astype(self.dtype))
            total = total + transposed(block) @ weighted
        return self._here(total)

    def outer_gram(self):
        """Inner products of the rows, dense, (n_rows, n_rows)."""
        total = 0.0
        for columns in within(self.shape[1], BLOCK_ENTRIES // self.shape[0]):
            block = self.X[:, columns]
            if self.center is not None:
                block = block - self._there(self.center[columns].T)
            total = total + block @ self._namespace.matrix_transpose(block)
        return scaled_gram(self._here(total), self.row_scale)

    def squared_row_norms(self):
        """Squared Euclidean norm of every row, (n_rows,)."""
        sums = [self._namespace.sum(block**2, axis=1) for _, block in self._arrays()]
        return np.concatenate([self._here(each) for each in sums])

    def squares_t_dot(self, weights):
        """Weighted sums of the squares of all entries of a column, (n_columns, k)."""
        total, transposed = 0.0, self._namespace.matrix_transpose
        for rows, block in self._arrays():
            share = self._there(weights[rows].astype(self.dtype))
            total = total + transposed(block**2) @ share
        return self._here(total)

    def _scaled_columns(self, factor):
        return self.X * self._there(factor.astype(self.dtype)[None])

    def column_sizes(self):
        """Euclidean norm and largest absolute entry of every column."""
        squares, largest = np.zeros(self.shape[1]), np.zeros(self.shape[1])
        for _, block in self._arrays():
            squares += self._here(self._namespace.sum(block**2, axis=0))
            size = self._namespace.max(self._namespace.abs(block), axis=0)
            np.maximum(largest, self._here(size), out=largest)
        return np.sqrt(squares), largest

    def is_zero(self):
        """Whether all entries are zero; centred, whether all columns are constant."""
        first = 0.0 if self.center is None else self.X[:1, :]
        return not any(
            bool(self._namespace.any(self.X[rows, :] != first))
            for rows in self._slices()
        )

    def rows(self, index):
        """The design of the rows in ``index``."""
        scale = None if self.row_scale is None else self.row_scale[index]
        if not isinstance(index, slice):  # of which no copy is made
            index = np.arange(self.shape[0])[index]
        return DeviceDesign(rows_in(self.X, index), self.center, scale)

    def selection(self, index, dtype):
        """A separate design of the columns in ``index``, as ``dtype``."""
        blocks = [block for _, block in self._arrays(index, dtype)]
        return DeviceDesign(self._namespace.concat(blocks, axis=0))

    def dense_columns(self, index, dtype):
        """The columns in ``index`` as a NumPy array."""
        return self._here(self.selection(index, dtype).X)

    def beside(self, other):
        """The columns of this selection and of ``other``, of the same rows."""
        return DeviceDesign(self._namespace.concat([self.X, other.X], axis=1))

    def ones_selected(self, dtype):
        """A column of ones, scaled like the rows, to append to a selection."""
        return DeviceDesign(self._there(self.row_scales().astype(dtype, copy=False)))


def within(n, size):
    """Slices of ``size`` entries, at least one, that end with the array."""
    return [slice(s.start, min(s.stop, n)) for s in slices(n, max(1, size))]
