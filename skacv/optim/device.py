"""DeviceDesign: a matrix that stays on its device, lazily centred and scaled.

X is an array of any namespace of the array API (PyTorch, CuPy, JAX) on any device.
Products with it are taken there. What goes in and comes out (coefficients, predictors,
slopes, inner products) is NumPy: it is small beside X, and all else runs as it does.
"""

import numpy as np

from .dense import ArrayDesign
from .design import scaled_gram
from .matrix import slices
from .namespaces import as_dtype, dtype_of, here, rows_in, there

# Entries of X that are copied, centred and scaled, at a time.
BLOCK_ENTRIES = 1 << 26
# Rows and columns of the product that is looked at, and how far off it may be, in units
# of the precision that X claims.
LOOKED_AT, ROUNDINGS = 64, 256


class DeviceDesign(ArrayDesign):
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
    def dtype(self):
        return dtype_of(self.X)

    @property
    def n_stored(self):
        return self.shape[0] * self.shape[1]

    def _there(self, array):
        """A NumPy array on the device."""
        return there(array, self.X)

    def _check_digits(self):
        """Raise where factors are rounded before they are multiplied, as by TF32."""
        n_rows, n_columns = (min(LOOKED_AT, size) for size in self.shape)
        some = self.X[:n_rows, :n_columns]
        known, found = here(some).astype(np.float64), here(some @ some.T)
        size = np.abs(known) @ np.abs(known).T
        tolerance = ROUNDINGS * np.finfo(self.dtype).eps * size
        if (np.abs(found - known @ known.T) > tolerance).any():
            raise ValueError(
                f"Matrix products of {self.dtype} on this device have fewer digits: "
                "turn off its reduced precision (TF32), which leads to other iterates."
            )

    def _times(self, coef):
        coef = self._there(coef.astype(self.dtype, copy=False))
        return here(self.X @ coef)

    def _transpose_times(self, slopes):
        slopes = self._there(slopes.astype(self.dtype, copy=False))
        return here(self.X.T @ slopes)

    def _weighted_sum(self, weights):
        total = 0.0
        for rows in slices(self.shape[0], self._block_size()):
            block = as_dtype(self.X[rows, :], np.float64)
            total = total + block.T @ self._there(weights[rows])
        return here(total)

    def _block_size(self):
        return BLOCK_ENTRIES // self.shape[1]

    def outer_gram(self):
        """Inner products of the rows, dense, (n_rows, n_rows)."""
        total = 0.0
        for columns in slices(self.shape[1], BLOCK_ENTRIES // self.shape[0]):
            block = self.X[:, columns]
            if self.center is not None:
                block = block - self._there(self.center[columns].T)
            total = total + block @ block.T
        return scaled_gram(here(total), self.row_scale)

    def rows(self, index):
        """The design of the rows in ``index``."""
        scale = None if self.row_scale is None else self.row_scale[index]
        if not isinstance(index, slice):  # of which no copy is made
            index = np.arange(self.shape[0])[index]
        return DeviceDesign(rows_in(self.X, index), self.center, scale)

    def selection(self, index, dtype):
        """A separate design of the columns in ``index``, as ``dtype``."""
        blocks = [block for _, block in self._arrays(columns=index, dtype=dtype)]
        return DeviceDesign(self._namespace.concat(blocks, axis=0))

    def dense_columns(self, index, dtype):
        """The columns in ``index`` as a NumPy array."""
        return here(self.selection(index, dtype).X)

    def beside(self, other):
        """The columns of this selection and of ``other``, of the same rows."""
        return DeviceDesign(self._namespace.concat([self.X, other.X], axis=1))

    def ones_selected(self, dtype):
        """A column of ones, scaled like the rows, to append to a selection."""
        return DeviceDesign(self._there(self.row_scales().astype(dtype, copy=False)))
