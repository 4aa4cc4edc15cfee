"""A design with a last column of ones, which is not stored."""

import numpy as np

from .design import InMemoryDesign


class WithConstant(InMemoryDesign):
    """The columns ``features`` and a column of ones, whose coefficient is an intercept.

    X is not copied. The ones are scaled like the rows, but not centred.

    Shapes: features (n_rows, n_columns - 1)."""

    def __init__(self, features):
        self.features = features
        self.shape = features.shape[0], features.shape[1] + 1
        self.dtype, self.is_on_device = features.dtype, features.is_on_device

    @property
    def storage_dtype(self):
        return self.features.storage_dtype

    @property
    def n_stored(self):
        return self.features.n_stored + self.shape[0]

    def dot(self, coef):
        product = self.features.dot(coef[:-1])
        scale = self.features.row_scale
        product += coef[-1] if scale is None else scale * coef[-1]
        return product

    def t_dot(self, slopes):
        scale = self.features.row_scale
        total = slopes.sum(axis=0) if scale is None else scale[:, 0] @ slopes
        return _stacked(self.features.t_dot(slopes), total[None])

    def squared_norm(self, coef, predictor):
        # The norm is that of the function without its constant.
        return self.features.squared_norm(coef[:-1], predictor)

    def rows(self, index):
        return WithConstant(self.features.rows(index))

    def scaled_rows(self, row_scale):
        return WithConstant(self.features.scaled_rows(row_scale))

    def centered(self, weights):
        return WithConstant(self.features.centered(weights))

    def shifted(self, center):
        return WithConstant(self.features.shifted(center[:-1]))

    def mapped_columns(self, factor, center):
        return WithConstant(self.features.mapped_columns(factor[:-1], center[:-1]))

    def gram(self, dtype=np.float64):
        ones = np.ones((self.shape[0], 1), dtype)
        return self._bordered(self.features.gram(dtype)[None], ones)[0]

    def weighted_gram(self, weights):
        return self._bordered(self.features.weighted_gram(weights)[None], weights)[0]

    def weighted_grams(self, weights):
        return self._bordered(self.features.weighted_grams(weights), weights)

    def _bordered(self, feature_grams, weights):
        """Gram matrices for weights (n_rows, k), from the features' matrices."""
        ones, n = self.features.row_scales(), feature_grams.shape[1]
        grams = np.empty((len(feature_grams), n + 1, n + 1), feature_grams.dtype)
        grams[:, :n, :n], grams[:, n, n] = feature_grams, (ones**2).T @ weights
        grams[:, :n, n] = grams[:, n, :n] = self.features.t_dot(weights * ones).T
        return grams

    def outer_gram(self):
        ones = self.features.row_scales()
        return self.features.outer_gram() + ones * ones.T

    def squared_row_norms(self):
        return self.features.squared_row_norms() + self.features.row_scales()[:, 0] ** 2

    def squares_t_dot(self, weights):
        total = (self.features.row_scales() ** 2).T @ weights
        return _stacked(self.features.squares_t_dot(weights), total)

    def column_sizes(self):
        norms, largest = self.features.column_sizes()
        ones = np.abs(self.features.row_scales())
        return np.append(norms, np.linalg.norm(ones)), np.append(largest, ones.max())

    def is_zero(self):
        return False

    def selection(self, index, dtype):
        features, has_last = self._split(index)
        selection = self.features.selection(features, dtype)
        if not has_last:
            return selection
        return selection.joined_with(self.features.column_of_ones(dtype))

    def dense_columns(self, index, dtype):
        features, has_last = self._split(index)
        columns = self.features.dense_columns(features, dtype)
        if not has_last:
            return columns
        return np.hstack(
            [columns, self.features.row_scales().astype(dtype, copy=False)]
        )

    def _split(self, index):
        has_last = bool(len(index)) and index[-1] == self.shape[1] - 1
        return (index[:-1] if has_last else index), has_last


def _stacked(upper, lower):
    stacked = np.empty(
        (len(upper) + len(lower), upper.shape[1]), upper.dtype, order="F"
    )
    stacked[: len(upper)], stacked[len(upper) :] = upper, lower
    return stacked
