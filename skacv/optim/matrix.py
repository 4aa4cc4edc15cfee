"""Base classes of designs in memory, and of a matrix, lazily centred and scaled."""

from abc import abstractmethod

import numpy as np

from .design import ColumnDesign
from .namespaces import dtype_of, rows_in

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

        All columns, if that is no less than their precision, are the design itself.
        """
        if len(index) == self.shape[1] and np.can_cast(self.storage_dtype, dtype):
            return self
        return self.selection(index, dtype)

    def part(self, rows, columns):
        """The design of some rows and, of them, some columns."""
        return self.rows(rows).columns(columns, self.dtype)

    @abstractmethod
    def selection(self, index, dtype):
        """A separate design of the columns in ``index``.

        Its entries are ``dtype``, or the precision of the entries if that is less.
        """


class MatrixDesign(InMemoryDesign):
    """The matrix ``diag(row_scale) (X - 1 center')``, never formed.

    Centring and scaling are applied to the results of products, so that a
    dense X is not copied and a sparse X is not densified.

    Products, means and inner products are summed up in double precision, also if X is
    in single precision: then blocks of X are converted, never all of it.

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

    dtype = np.dtype(np.float64)

    @property
    def storage_dtype(self):
        """The precision of the entries of X."""
        return dtype_of(self.X)

    @property
    def n_stored(self):
        """Number of entries that a product with X goes through."""
        return self.X.size

    def centered(self, weights):
        """The same matrix, centred by the weighted mean of its rows instead.

        What is left of constant columns is no more than one rounding.

        Parameters
        ----------
        weights : ndarray of shape (n_rows, 1)
            Their sum is one.
        """
        weights = weights.astype(np.float64)
        center = self._weighted_sum(weights) / weights.sum()
        return self._of(self.X, center, self.row_scale)

    def gram(self, dtype=np.float64):
        """Inner products of the columns, dense, (n_columns, n_columns)."""
        gram = self.weighted_gram(np.ones((self.shape[0], 1)))
        return gram.astype(dtype, copy=False)

    @abstractmethod
    def squares_t_dot(self, weights):
        """Weighted sums of the squares of all entries of a column.

        Shapes: weights (n_rows, k); returned (n_columns, k).
        """

    @abstractmethod
    def mapped_columns(self, factor, center):
        """The design whose columns are factor (column - center), a new array.

        Shapes: factor, center (n_columns,).
        """

    def shifted(self, center):
        """The same with ``center``, (n_columns,), subtracted from its columns."""
        total = center[:, None] + (0 if self.center is None else self.center)
        return self._of(self.X, total if total.any() else None, self.row_scale)

    @abstractmethod
    def _times(self, coef):
        """X coef, a new array in the precision of the more precise of both."""

    @abstractmethod
    def _transpose_times(self, slopes):
        """X' slopes, a new array in the precision of the more precise of both."""

    @abstractmethod
    def _weighted_sum(self, weights):
        """X' weights, (n_columns, 1), of weights in double precision."""

    def dot(self, coef):
        """The product with ``coef``, (n_columns, k) -> (n_rows, k)."""
        product = self._times(coef)
        if self.center is not None:
            product -= self._rest_of_center(coef.dtype).T @ coef
        if self.row_scale is not None:
            product *= self.row_scale
        return product

    def t_dot(self, slopes):
        """The product of the transpose with slopes, (n_rows, k) -> (n_columns, k)."""
        if self.row_scale is not None:
            slopes = slopes * self.row_scale.astype(slopes.dtype, copy=False)
        product = self._transpose_times(slopes)
        if self.center is not None:
            product -= self._rest_of_center(slopes.dtype) * slopes.sum(axis=0)
        return product

    def _rest_of_center(self, dtype):
        """What products with vectors of a precision have not subtracted of the centre.

        Shapes: returned (n_columns, 1).
        """
        return self.center

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
