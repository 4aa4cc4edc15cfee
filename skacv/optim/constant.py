"""WithConstant: the columns of a matrix and a last one of ones, which is not stored."""

import numpy as np

from .design import InMemoryDesign


class WithConstant(InMemoryDesign):
    """A design and a last column of ones, of which no copy of X is made.

    The last coefficient is an intercept. Rows are scaled with their ones, and centring
    leaves these as they are.

    Shapes: features (n_rows, n_columns - 1).
    """

    def __init__(self, features):
        self.features = features
        self.shape = features.shape[0], features.shape[1] + 1
        self.dtype, self.is_on_device = features.dtype, features.is_on_device

    @property
    def storage_dtype(self):
        """The precision of the entries of X."""
        return self.features.storage_dtype

    @property
    def n_stored(self):
        """Number of entries that a product goes through."""
        return self.features.n_stored + self.shape[0]

    def dot(self, coef):
        """The product with ``coef``, (n_columns, k) -> (n_rows, k)."""
        product = self.features.dot(coef[:-1])
        scale = self.features.row_scale
        product += coef[-1] if scale is None else scale * coef[-1]
        return product

    def t_dot(self, slopes):
        """The product of the transpose with slopes, (n_rows, k) -> (n_columns, k)."""
        scale = self.features.row_scale
        total = slopes.sum(axis=0) if scale is None else scale[:, 0] @ slopes
        return _stacked(self.features.t_dot(slopes), total[None])

    def rows(self, index):
        """The design of the rows in ``index``."""
        return WithConstant(self.features.rows(index))

    def scaled_rows(self, row_scale):
        """The same rows multiplied by ``row_scale``, (n_rows, 1)."""
        return WithConstant(self.features.scaled_rows(row_scale))

    def centered(self, weights):
        """The features centred by the weighted mean of their rows; ones stay ones."""
        return WithConstant(self.features.centered(weights))

    def shifted(self, center):
        """The same with ``center`` subtracted from its columns; zero for the last."""
        return WithConstant(self.features.shifted(center[:-1]))

    def mapped_columns(self, factor, center):
        """The design whose columns are factor (column - center), a new array.

        Parameters
        ----------
        factor, center : ndarray of shape (n_columns,)
            One and zero for the last.
        """
        return WithConstant(self.features.mapped_columns(factor[:-1], center[:-1]))

    def gram(self, dtype=np.float64):
        """Inner products of the columns, dense, (n_columns, n_columns)."""
        ones = np.ones((self.shape[0], 1), dtype)
        return self._bordered(self.features.gram(dtype)[None], ones)[0]

    def weighted_gram(self, weights):
        """The design' diag(weights) design, dense, (n_columns, n_columns)."""
        return self._bordered(self.features.weighted_gram(weights)[None], weights)[0]

    def weighted_grams(self, weights):
        """:meth:`weighted_gram` for weights (n_rows, k): (k, n_columns, n_columns)."""
        return self._bordered(self.features.weighted_grams(weights), weights)

    def _bordered(self, inner, weights):
        """Gram matrices for weights (n_rows, k), from those of the features."""
        ones, n = self.features.row_scales(), inner.shape[1]
        found = np.empty((len(inner), n + 1, n + 1), inner.dtype)
        found[:, :n, :n], found[:, n, n] = inner, (ones**2).T @ weights
        found[:, :n, n] = found[:, n, :n] = self.features.t_dot(weights * ones).T
        return found

    def outer_gram(self):
        """Inner products of the rows, dense, (n_rows, n_rows)."""
        ones = self.features.row_scales()
        return self.features.outer_gram() + ones * ones.T

    def squared_row_norms(self):
        """Squared Euclidean norm of every row, (n_rows,)."""
        return self.features.squared_row_norms() + self.features.row_scales()[:, 0] ** 2

    def squares_t_dot(self, weights):
        """Weighted sums of the squares of all entries of a column, (n_columns, k)."""
        total = (self.features.row_scales() ** 2).T @ weights
        return _stacked(self.features.squares_t_dot(weights), total)

    def column_sizes(self):
        """Euclidean norm and largest absolute entry of every column."""
        norms, largest = self.features.column_sizes()
        ones = np.abs(self.features.row_scales())
        return np.append(norms, np.linalg.norm(ones)), np.append(largest, ones.max())

    def is_zero(self):
        """Whether all entries are zero: ones are not."""
        return False

    def selection(self, index, dtype):
        """A separate design of the columns in ``index``, as ``dtype``."""
        features, has_last = self._split(index)
        found = self.features.selection(features, dtype)
        if not has_last:
            return found
        return found.beside(self.features.ones_selected(dtype))

    def dense_columns(self, index, dtype):
        """The columns in ``index`` as an array, (n_rows, n)."""
        features, has_last = self._split(index)
        found = self.features.dense_columns(features, dtype)
        if not has_last:
            return found
        return np.hstack([found, self.features.row_scales().astype(dtype, copy=False)])

    def _split(self, index):
        """Which features are in an increasing ``index``, and whether the ones are."""
        has_last = bool(len(index)) and index[-1] == self.shape[1] - 1
        return (index[:-1] if has_last else index), has_last


def _stacked(upper, lower):
    """One array below the other, with the columns of the first side by side."""
    found = np.empty((len(upper) + len(lower), upper.shape[1]), upper.dtype, order="F")
    found[: len(upper)], found[len(upper) :] = upper, lower
    return found
