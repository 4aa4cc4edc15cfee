"""Base classes of designs in memory, and of a matrix, lazily centred and scaled."""

from abc import abstractmethod

import numpy as np

from .design import ColumnDesign
from .namespaces import rows_in

# Rows handled at a time where a whole matrix would be a second one.
ROW_BLOCK = 128


class InMemoryDesign(ColumnDesign):
    """A design whose rows are a single block, of which columns can be selected."""

    is_matrix = True

    def blocks(self):
        """All rows: they are in memory."""
        yield slice(0, self.shape[0]), self

    def columns(self, index, dtype):
        """The design of the columns in ``index``, increasing, as ``dtype``.

        All columns as they are, are the design itself.
        """
        if len(index) == self.shape[1] and dtype == self.dtype:
            return self
        return self.selection(index, dtype)

    def part(self, rows, columns):
        """The design of some rows and, of them, some columns."""
        return self.rows(rows).columns(columns, self.dtype)

    @abstractmethod
    def selection(self, index, dtype):
        """A separate design of the columns in ``index``, as ``dtype``."""


class MatrixDesign(InMemoryDesign):
    """The matrix ``diag(row_scale) (X - 1 center')``, never formed.

    Centring and scaling are applied to the results of products, so that a
    dense X is not copied and a sparse X is not densified.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_columns), float32 or float64
    center : ndarray of shape (n_columns, 1), optional
        Subtracted from every row.
    row_scale : ndarray of shape (n_rows, 1), optional
        Multiplies the (centred) rows.
    """

    def __init__(self, X, center=None, row_scale=None):
        self.X = X
        self.center = center
        self.row_scale = row_scale

    def _of(self, X, center, row_scale):
        """A design of this kind."""
        return type(self)(X, center, row_scale)

    @property
    def shape(self):
        return self.X.shape

    @property
    def dtype(self):
        return self.X.dtype

    @property
    def n_stored(self):
        """Number of entries that a product with X goes through."""
        return self.X.size

    def centered(self, weights):
        """The same matrix, centred by the weighted mean of its rows instead.

        Summed up in double precision: what is left of constant columns is then
        no more than one rounding.

        Parameters
        ----------
        weights : ndarray of shape (n_rows, 1)
            Their sum is one.
        """
        weights = weights.astype(np.float64)
        center = self._weighted_sum(weights) / weights.sum()
        return self._of(self.X, center.astype(self.dtype), self.row_scale)

    def gram(self):
        """Inner products of the columns, dense, (n_columns, n_columns)."""
        return self.weighted_gram(np.ones((self.shape[0], 1), self.dtype))

    @abstractmethod
    def squares_t_dot(self, weights):
        """Weighted sums of the squares of all entries of a column.

        Shapes: weights (n_rows, k); returned (n_columns, k).
        """

    def mapped_columns(self, factor, center):
        """The design whose columns are factor (column - center), a new array.

        Shapes: factor, center (n_columns,).
        """
        total = center[:, None] + (0 if self.center is None else self.center)
        center = (factor[:, None] * total).astype(self.dtype) if total.any() else None
        return self._of(self._scaled_columns(factor), center, self.row_scale)

    @abstractmethod
    def _scaled_columns(self, factor):
        """X with every column times a number, a new array."""

    def _times(self, coef):
        """X coef, a new array."""
        return self.X @ coef

    def _transpose_times(self, slopes):
        """X' slopes, a new array."""
        return self.X.T @ slopes

    def _weighted_sum(self, weights):
        """X' weights, (n_columns, 1), in double precision."""
        return self.X.T @ weights

    def dot(self, coef):
        """The product with ``coef``, (n_columns, k) -> (n_rows, k)."""
        product = self._times(coef)
        if self.center is not None:
            product -= self.center.T @ coef
        if self.row_scale is not None:
            product *= self.row_scale
        return product

    def t_dot(self, slopes):
        """The product of the transpose with slopes, (n_rows, k) -> (n_columns, k)."""
        if self.row_scale is not None:
            slopes = slopes * self.row_scale
        product = self._transpose_times(slopes)
        if self.center is not None:
            product -= self.center * slopes.sum(axis=0)
        return product

    def row_scales(self):
        """Factors of the rows, (n_rows, 1)."""
        if self.row_scale is not None:
            return self.row_scale
        return np.ones((self.shape[0], 1), self.dtype)

    def rows(self, index):
        """The design of the rows in ``index``."""
        scale = None if self.row_scale is None else self.row_scale[index]
        return self._of(rows_in(self.X, index), self.center, scale)

    def scaled_rows(self, row_scale):
        """The same design with its rows multiplied by ``row_scale``, (n_rows, 1)."""
        if self.row_scale is not None:
            row_scale = row_scale * self.row_scale
        row_scale = row_scale.astype(self.dtype, copy=False)
        return self._of(self.X, self.center, row_scale)

    @abstractmethod
    def beside(self, other):
        """The columns of this selection and of ``other``, of the same rows."""

    @abstractmethod
    def ones_selected(self, dtype):
        """A column of ones, scaled like the rows, to append to a selection."""


def slices(n_rows, size):
    """Consecutive slices of ``size`` rows, at least one; the last may be shorter."""
    size = max(1, int(size))
    return [slice(a, min(a + size, n_rows)) for a in range(0, n_rows, size)]
