"""SparseDesign: a CSR matrix, lazily centred and scaled."""

import numpy as np
from scipy import sparse

from .design import scaled_gram
from .matrix import ROW_BLOCK, MatrixDesign, slices


class SparseDesign(MatrixDesign):
    """A CSR matrix, lazily centred and scaled: it is never made dense.

    Parameters
    ----------
    X : CSR matrix of shape (n_rows, n_columns), float32 or float64
    center, row_scale : ndarray or None
        As in :class:`MatrixDesign`.
    """

    def _with_squares(self, weights):
        """Weights of the rows, times the squares of their scales."""
        return weights if self.row_scale is None else weights * self.row_scale**2

    def weighted_gram(self, weights):
        """The design' diag(weights) design, dense, (n_columns, n_columns)."""
        weights = self._with_squares(weights)
        product = (self.X.T @ self.X.multiply(weights).tocsr()).toarray()
        if self.center is not None:
            # With c for the centre: X'WX - c (X'w)' - (X'w - sum(w) c) c'
            total = self.X.T @ weights
            rest = total - weights.sum() * self.center
            _subtract_outer(product, self.center, total)
            _subtract_outer(product, rest, self.center)
        return product

    def outer_gram(self):
        """Inner products of the rows, dense, (n_rows, n_rows)."""
        product = (self.X @ self.X.T).toarray()
        if self.center is not None:
            shift = self.X @ self.center
            product -= shift.T
            product -= shift - (self.center**2).sum()
        return scaled_gram(product, self.row_scale)

    def squared_row_norms(self):
        """Squared Euclidean norm of every row, (n_rows,)."""
        norms = np.asarray(self.X.multiply(self.X).sum(axis=1)).reshape(-1, 1)
        if self.center is not None:
            norms = norms - 2 * (self.X @ self.center) + (self.center**2).sum()
        return self._with_squares(norms).ravel()

    def squares_t_dot(self, weights):
        """Weighted sums of the squares of all entries of a column, (n_columns, k)."""
        weights = self._with_squares(weights)
        found = self.X.multiply(self.X).T @ weights
        if self.center is not None:
            found -= 2 * self.center * (self.X.T @ weights)
            found += self.center**2 * weights.sum(axis=0)
        return found

    def _scaled_columns(self, factor):
        X = self.X.copy()
        X.data *= factor[X.indices].astype(self.dtype)
        return X

    def column_sizes(self):
        """Upper bounds of the norm and of the largest absolute entry of every column.

        The centre is added to the entries.
        """
        X, scale = self.X, self.row_scales()
        if self.row_scale is not None:
            X = X.multiply(scale).tocsr()
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=0)).ravel())
        largest = np.asarray(abs(X).max(axis=0).toarray()).ravel()
        if self.center is not None:
            size = np.abs(self.center[:, 0])
            norms = norms + size * np.linalg.norm(scale)
            largest = largest + size * scale.max()
        return norms, largest

    def is_zero(self):
        """Whether all entries are zero; centred, whether all columns are constant."""
        if self.center is None:
            return not self.X.data.any()
        return (self.X.max(axis=0) - self.X.min(axis=0)).nnz == 0

    def selection(self, index, dtype):
        """A separate design of the columns in ``index``, as ``dtype``."""
        center = None if self.center is None else self.center[index].astype(dtype)
        scale = None if self.row_scale is None else self.row_scale.astype(dtype)
        return SparseDesign(self.X[:, index].astype(dtype, copy=False), center, scale)

    def dense_columns(self, index, dtype):
        """The columns in ``index`` as an array, centred and scaled in its place."""
        # To take columns out of all rows at once is much faster.
        selection = self.X[:, index].astype(dtype, copy=False).toarray()
        if self.center is not None:
            selection -= self.center[index].T
        if self.row_scale is not None:
            selection *= self.row_scale
        return selection

    def beside(self, other):
        """The columns of this selection and of ``other``, of the same rows."""
        center = None
        if self.center is not None:
            center = np.concatenate([self.center, other.center])
        X = sparse.hstack([self.X, other.X], format="csr")
        return SparseDesign(X, center, self.row_scale)

    def ones_selected(self, dtype):
        """A column of ones, scaled like the rows, to append to a selection."""
        center = None if self.center is None else np.zeros((1, 1), dtype)
        X = sparse.csr_matrix(np.ones((self.shape[0], 1), dtype))
        return SparseDesign(X, center, self.row_scale)


def _subtract_outer(product, left, right):
    """product -= left right', without a second matrix of that size."""
    for rows in slices(len(product), ROW_BLOCK):
        product[rows] -= left[rows] @ right.T
