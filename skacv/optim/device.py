"""DeviceDesign: a matrix that stays on its device, lazily centred and scaled.

X is an array of any namespace of the array API (PyTorch, CuPy, JAX) on any device.
Products with it are taken there. What goes in and comes out (coefficients, predictors,
slopes, inner products) is NumPy: it is small beside X, and all else runs as it does.
"""

import numpy as np

from .dense import ArrayDesign
from .design import scaled_gram
from .matrix import slices
from .namespaces import as_dtype, dtype_of, here, there

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

    @property
    def dtype(self):
        return dtype_of(self.X)

    @property
    def n_stored(self):
        return self.shape[0] * self.shape[1]

    def _times(self, coef):
        return here(self.X @ there(coef.astype(self.dtype, copy=False), self.X))

    def _transpose_times(self, slopes):
        return here(self.X.T @ there(slopes.astype(self.dtype, copy=False), self.X))

    def _weighted_sum(self, weights):
        total = 0.0
        for rows in slices(self.shape[0], self._block_size()):
            block = as_dtype(self.X[rows, :], np.float64)
            total += block.T @ there(weights[rows], self.X)
        return here(total)

    def _block_size(self):
        return BLOCK_ENTRIES // max(self.shape[1], 1)

    def outer_gram(self):
        """Inner products of the rows, dense, (n_rows, n_rows)."""
        total = 0.0
        for columns in slices(self.shape[1], BLOCK_ENTRIES // max(self.shape[0], 1)):
            block = self._centered_columns(columns)
            total += block @ block.T
        return scaled_gram(here(total), self.row_scale)

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
        ones = self.row_scales().astype(dtype, copy=False)
        return DeviceDesign(there(ones, self.X))


def check_digits(X):
    """Raise where factors are rounded before they are multiplied, as by TF32.

    Raises
    ------
    ValueError
        If products on the device of an array have fewer digits than it has.
    """
    n_rows, n_columns = (min(LOOKED_AT, size) for size in X.shape)
    some = X[:n_rows, :n_columns]
    known, found = here(some).astype(np.float64), here(some @ some.T)
    size, dtype = np.abs(known) @ np.abs(known).T, dtype_of(X)
    tolerance = ROUNDINGS * np.finfo(dtype).eps * size
    if (np.abs(found - known @ known.T) > tolerance).any():
        raise ValueError(
            f"Matrix products of {dtype} on this device have fewer digits: "
            "turn off its reduced precision (TF32), which leads to other iterates."
        )
