"""The design of a CSR matrix, which is centred and scaled as it is read."""

import numpy as np
from scipy import sparse

from .blocks import CACHE_BYTES, slices
from .design import ROW_BLOCK, MatrixDesign, scaled_gram


class SparseDesign(MatrixDesign):
    """A CSR matrix X, centred and scaled as it is read, which is never made dense."""

    def _blocks(self):
        """Yield slices of rows, and these rows of X in double precision."""
        n_rows, n_columns = self.shape
        if self.X.dtype == self.dtype:
            yield slice(0, n_rows), self.X
            return
        # A block has at least as many entries as a sum over its rows.
        n_entries = max(CACHE_BYTES // 8, n_columns)
        size = n_rows * n_entries // max(self.X.nnz, 1)
        for rows in slices(n_rows, size):
            yield rows, self.X[rows].astype(self.dtype)

    def _times(self, coef):
        if self.X.dtype == coef.dtype:
            return self.X @ coef
        product = np.concatenate([block @ coef for _, block in self._blocks()])
        return product.astype(np.result_type(self.X, coef), copy=False)

    def _transpose_times(self, slopes):
        if self.X.dtype == slopes.dtype:
            return self.X.T @ slopes
        product = sum(block.T @ slopes[rows] for rows, block in self._blocks())
        return product.astype(np.result_type(self.X, slopes), copy=False)

    def _weighted_sum(self, weights):
        return self._transpose_times(weights)

    def _with_squares(self, weights):
        return weights if self.row_scale is None else weights * self.row_scale**2

    def weighted_gram(self, weights):
        weights = self._with_squares(weights)
        product = sum(
            (block.T @ block.multiply(weights[rows]).tocsr()).toarray()
            for rows, block in self._blocks()
        )
        if self.center is not None:
            # With c for the centre: X'WX - c (X'w)' - (X'w - sum(w) c) c'
            total = self._transpose_times(weights)
            rest = total - weights.sum() * self.center
            _subtract_outer(product, self.center, total)
            _subtract_outer(product, rest, self.center)
        return product

    def outer_gram(self):
        columns = self.X.T.astype(self.dtype, copy=False)
        product = np.concatenate(
            [(block @ columns).toarray() for _, block in self._blocks()]
        )
        if self.center is not None:
            shift = self._times(self.center)
            product -= shift.T
            product -= shift - (self.center**2).sum()
        return scaled_gram(product, self.row_scale)

    def squared_row_norms(self):
        norms = np.concatenate(
            [block.multiply(block).sum(axis=1) for _, block in self._blocks()]
        )
        norms = np.asarray(norms).reshape(-1, 1)
        if self.center is not None:
            norms = norms - 2 * self._times(self.center) + (self.center**2).sum()
        return self._with_squares(norms).ravel()

    def squares_t_dot(self, weights):
        weights = self._with_squares(weights)
        sums = sum(
            block.multiply(block).T @ weights[rows] for rows, block in self._blocks()
        )
        if self.center is not None:
            sums -= 2 * self.center * self._transpose_times(weights)
            sums += self.center**2 * weights.sum(axis=0)
        return sums

    def mapped_columns(self, factor, center):
        X, center = self.X.copy(), self.shifted(center).center
        X.data *= factor[X.indices].astype(X.dtype)
        center = None if center is None else factor[:, None] * center
        return self._new(X, center, self.row_scale)

    def column_sizes(self):
        scale = self.row_scales()
        norms, largest = np.zeros(self.shape[1]), np.zeros(self.shape[1])
        for rows, block in self._blocks():
            if self.row_scale is not None:
                block = block.multiply(scale[rows]).tocsr()
            norms += np.asarray(block.multiply(block).sum(axis=0)).ravel()
            size = np.asarray(abs(block).max(axis=0).toarray()).ravel()
            np.maximum(largest, size, out=largest)
        norms = np.sqrt(norms)
        if self.center is not None:
            size = np.abs(self.center[:, 0])
            norms = norms + size * np.linalg.norm(scale)
            largest = largest + size * scale.max()
        return norms, largest

    def is_zero(self):
        if self.center is None:
            return not self.X.data.any()
        return (self.X.max(axis=0) - self.X.min(axis=0)).nnz == 0

    def selection(self, index, dtype):
        center = None if self.center is None else self.center[index]
        X = self.X[:, index]
        if dtype != self.dtype:
            X = X.astype(dtype, copy=False)
        return SparseDesign(X, center, self.row_scale)

    def dense_columns(self, index, dtype):
        # All rows at once, since blocks of rows would be much slower.
        selection = self.X[:, index].astype(self.dtype, copy=False).toarray()
        if self.center is not None:
            selection -= self.center[index].T
        if self.row_scale is not None:
            selection *= self.row_scale
        return selection.astype(dtype, copy=False)

    def joined_with(self, selection):
        center = None
        if self.center is not None:
            center = np.concatenate([self.center, selection.center])
        X = sparse.hstack([self.X, selection.X], format="csr")
        return SparseDesign(X, center, self.row_scale)

    def column_of_ones(self, dtype):
        center = None if self.center is None else np.zeros((1, 1), dtype)
        X = sparse.csr_matrix(np.ones((self.shape[0], 1), self.storage_dtype))
        return SparseDesign(X, center, self.row_scale)


def _subtract_outer(product, left, right):
    """product -= left right', without a second matrix of that size."""
    for rows in slices(len(product), ROW_BLOCK):
        product[rows] -= left[rows] @ right.T
