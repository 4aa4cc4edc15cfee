"""Columns made of codes by several transformers, side by side, and means of y."""

from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import KFold

from ..._estimator.data.checks import copies_of, validate_weights
from ..._estimator.delegation import weights_for
from ..._estimator.parameters import set_parameters
from ...tables.one_hot import make_distinct

# Folds of training rows for weighted means of y.
FOLDS = KFold(5, shuffle=True, random_state=0)


class Parts(TransformerMixin, BaseEstimator):
    """Some of the codes by each of several transformers, which see weights of rows.

    That is scikit-learn's ``ColumnTransformer``, which passes weights on only where
    metadata are routed.

    Parameters
    ----------
    parts : list of (transformer or "passthrough", list of int)
        Transformers, and the columns that each of them sees.

    Attributes
    ----------
    transformers_ : list
        The fitted ones.
    """

    __metadata_request__fit = {"sample_weight": True}

    def __init__(self, parts):
        set_parameters(self, locals())

    def fit(self, X, y=None, sample_weight=None):
        """Fit all transformers."""
        self.fit_transform(X, y, sample_weight)
        return self

    def fit_transform(self, X, y=None, sample_weight=None):
        """Fit all transformers, and transform the same rows."""
        self.transformers_, columns = [], []
        for transformer, indices in self.parts:
            part = X[:, indices]
            if transformer != "passthrough":
                transformer = clone(transformer).set_output(transform="default")
                weights = weights_for(transformer, sample_weight)
                part = transformer.fit_transform(part, y, **weights)
            self.transformers_.append(transformer)
            columns.append(part)
        return np.hstack(columns)

    def transform(self, X):
        """The columns of some rows.

        Shapes: X (n_samples, n_codes); returned (n_samples, n_columns).
        """
        columns = []
        for transformer, (_, indices) in zip(self.transformers_, self.parts):
            part = X[:, indices]
            is_as_passed = transformer == "passthrough"
            columns.append(part if is_as_passed else transformer.transform(part))
        return np.hstack(columns)

    def get_feature_names_out(self, input_features):
        """Names of the columns, all different."""
        names = []
        for transformer, (_, indices) in zip(self.transformers_, self.parts):
            part = np.array(input_features, dtype=object)[indices]
            if transformer != "passthrough":
                part = transformer.get_feature_names_out(part)
            names += list(part)
        return np.array(make_distinct(names), dtype=object)


class TargetMeans(TransformerMixin, BaseEstimator):
    """Means of y by level, of rows that may have weights.

    Those of scikit-learn's ``TargetEncoder``: a mean is shrunk towards that of all
    rows, the more the fewer rows have the level, and training rows have the means of
    other folds of them. It takes no weights. With weights m_l, m and v_l, v, the means
    and variances of y in level l and in all rows, are weighted, and the mean is

        s m_l + (1 - s) m,    s = v n_l / (v n_l + v_l),

    where n_l is the number of rows that have the level, or of their copies where
    weights are such numbers.

    Parameters
    ----------
    encoder : TargetEncoder
        What makes the means where all weights are the same, and is given those of
        uneven weights.

    Attributes
    ----------
    encoder_ : TargetEncoder
        The fitted one.
    """

    __metadata_request__fit = {"sample_weight": True}

    def __init__(self, encoder):
        set_parameters(self, locals())

    def fit(self, X, y, sample_weight=None):
        """Compute the means of all rows."""
        weights = validate_weights(sample_weight, len(X))
        self.encoder_ = encoder = clone(self.encoder).fit(X, y)
        if (weights != weights[0]).any():
            levelled = Levelled.of(encoder, X, y, weights)
            means, mean = levelled.means(slice(None))
            encoder.encodings_ = [column for part in means for column in part.T]
            encoder.target_mean_ = mean if len(mean) > 1 else mean[0]
        return self

    def fit_transform(self, X, y, sample_weight=None):
        """Compute the means of all rows; each row has those of the other folds."""
        weights = validate_weights(sample_weight, len(X))
        if (weights == weights[0]).all():
            self.encoder_ = clone(self.encoder)
            return self.encoder_.fit_transform(X, y)
        encoded = np.empty_like(self.fit(X, y, weights).transform(X))
        levelled = Levelled.of(self.encoder_, X, y, weights)
        for fitted, held_out in FOLDS.split(X):
            means, _ = levelled.means(fitted)
            levels = levelled.levels[:, held_out]
            encoded[held_out] = np.hstack([m[level] for m, level in zip(means, levels)])
        return encoded

    def transform(self, X):
        """The means of the levels of some rows.

        Shapes: X (n_samples, n_codes); returned (n_samples, n_codes or more).
        """
        return self.encoder_.transform(X)

    def get_feature_names_out(self, input_features=None):
        """Names of the columns, by those of the codes."""
        return self.encoder_.get_feature_names_out(input_features)


class Levelled(NamedTuple):
    """Rows of categories with targets, weights, and numbers of copies.

    Shapes: levels (n_columns, n_rows), target (n_rows, n_outputs).
    """

    levels: np.ndarray
    # The number of levels of each column.
    sizes: list
    target: np.ndarray
    weights: np.ndarray
    copies: np.ndarray

    @classmethod
    def of(cls, encoder, X, y, weights):
        """Rows as a TargetEncoder, fitted to them, has them."""
        levels = [  # a missing value is the last
            np.searchsorted(values, column)
            for values, column in zip(encoder.categories_, X.T)
        ]
        target = np.asarray(y)
        if encoder.classes_ is not None:
            target = np.searchsorted(encoder.classes_, target)
            if len(encoder.classes_) > 2:
                target = np.eye(len(encoder.classes_))[target]
        target = target.reshape(len(X), -1).astype(np.float64)
        copies = np.zeros(len(X))
        copies[weights > 0] = copies_of(weights[weights > 0])
        sizes = list(map(len, encoder.categories_))
        return cls(np.array(levels), sizes, target, weights, copies)

    def means(self, rows):
        """The shrunk means of each column by the levels of some rows, and the mean.

        Shapes: returned n_columns times (n_levels, n_outputs), (n_outputs,).
        """
        target, weights, copies = (part[rows] for part in self[2:])
        mean = np.average(target, axis=0, weights=weights)
        variance = np.average((target - mean) ** 2, axis=0, weights=weights)
        shrunk = []
        for level, size in zip(self.levels[:, rows], self.sizes):
            sums = np.bincount(level, weights, size)
            counts = np.bincount(level, copies, size)
            of_column = np.empty((size, target.shape[1]))
            for k, values in enumerate(target.T):
                with np.errstate(divide="ignore", invalid="ignore"):
                    means = np.bincount(level, weights * values, size) / sums
                    squares = weights * (values - means[level]) ** 2
                    share = variance[k] * counts
                    share /= share + np.bincount(level, squares, size) / sums
                    values = share * means + (1 - share) * mean[k]
                of_column[:, k] = np.where(np.isnan(share), mean[k], values)
            shrunk.append(of_column)
        return shrunk, mean
