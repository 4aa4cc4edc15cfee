"""Columns of codes, for models that take neither categories nor missing values."""

import warnings

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .._estimator.data.checks import copies_of, rows_that_count
from .._estimator.parameters import set_parameters

# Names of the columns of rows that miss the value, or have a rare level.
MISSING, RARE = "missing", "infrequent"


class OneHotCodes(TransformerMixin, BaseEstimator):
    """Numbers of codes: medians and indicators, and a column for each level.

    What scikit-learn's encoder makes of each code is looked up: for single rows that
    takes a fraction of the time of its ``transform``.

    Parameters
    ----------
    columns : list of CodedColumn
    min_frequency, max_levels, drop
        As in ``TableEncoder``.
    scaled : bool, default=False
        Whether numbers get unit size. Levels and indicators stay as they are.

    Attributes
    ----------
    imputer_ : SimpleImputer or None
        None without numbers.
    scaler_ : StandardScaler or None
        None if numbers are not scaled.
    encoders_ : list of OneHotEncoder
        One for each category.
    tables_ : list of ndarray of shape (2 + n_levels, n_columns)
        What each encoder makes of missing values, unseen levels and the codes.
    """

    __metadata_request__fit = {"sample_weight": True}

    def __init__(
        self, columns, min_frequency=None, max_levels=None, drop=None, scaled=False
    ):
        set_parameters(self, locals())

    def fit(self, X, y=None, sample_weight=None):
        """Compute medians and rare levels; y is not used."""
        numbers, categories = numbers_and_categories(self.columns)
        rows, weights = rows_that_count(sample_weight, len(X))
        X = X if len(rows) == len(X) else X[rows]
        copies = np.ones(len(X)) if weights is None else copies_of(weights)
        self.imputer_ = self.scaler_ = None
        self.encoders_, self.tables_ = [], []
        # Transformers return arrays, whatever scikit-learn is configured to return.
        if numbers:
            # A column without a value in the rows of a fold has the median zero.
            imputer = SimpleImputer(
                strategy="median", add_indicator=True, keep_empty_features=True
            ).set_output(transform="default")
            imputer.fit(X[:, numbers])
            if weights is not None:
                imputer.statistics_ = weighted_medians(X[:, numbers], weights)
            filled = imputer.transform(X[:, numbers])[:, : len(numbers)]
            self.imputer_ = imputer
            if self.scaled:
                self.scaler_ = StandardScaler().fit(filled, sample_weight=weights)
        for index in categories:
            occurring, rank = np.unique(X[:, index], return_inverse=True)
            counts = np.bincount(rank, copies)
            is_rare = are_rare(counts, self.min_frequency, self.max_levels)
            encoder = OneHotEncoder(
                min_frequency=2 if is_rare.any() else None,
                drop=self.drop,
                handle_unknown="infrequent_if_exist",
                sparse_output=False,
            ).set_output(transform="default")
            codes = np.array([np.nan, -1.0, *range(len(self.columns[index].levels))])
            # It counts no weights: rare levels once, and all others twice.
            self.encoders_.append(
                encoder.fit(np.repeat(occurring, 2 - is_rare)[:, None])
            )
            with warnings.catch_warnings(action="ignore"):  # of the unseen level
                self.tables_.append(encoder.transform(codes[:, None]))
        return self

    def transform(self, X):
        """The columns of some rows.

        Shapes: X (n_samples, n_codes); returned (n_samples, n_columns).
        """
        numbers, categories = numbers_and_categories(self.columns)
        parts = []
        if numbers:
            values = X[:, numbers]
            is_missing = np.isnan(values)
            medians = self.imputer_.statistics_.astype(X.dtype)
            values = np.where(is_missing, medians, values)
            if self.scaler_ is not None:
                values = (values - self.scaler_.mean_) / self.scaler_.scale_
            parts = [values, is_missing[:, self.imputer_.indicator_.features_]]
        for index, table in zip(categories, self.tables_):
            codes = X[:, index]
            rows = np.where(np.isnan(codes), 0, codes + 2).astype(np.intp)
            parts.append(table[rows])
        return np.hstack(parts)

    def get_feature_names_out(self, input_features=None):
        """Names of the columns, all different: levels, not their codes.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the codes; None takes those of ``columns``.
        """
        names = input_features
        if names is None:
            names = [column.name for column in self.columns]
        numbers, categories = numbers_and_categories(self.columns)
        names_out = [names[index] for index in numbers]
        if numbers:
            missing = self.imputer_.indicator_.features_
            names_out += [f"{names_out[k]}_{MISSING}" for k in missing]
        for index, table in zip(categories, self.tables_):
            labels = [MISSING, RARE, *self.columns[index].levels]
            # Rare levels share the column of unseen levels, if there is one.
            order = [1, *range(2, len(labels)), 0]
            firsts = [next(row for row in order if column[row]) for column in table.T]
            names_out += [f"{names[index]}_{labels[row]}" for row in firsts]
        return np.array(make_distinct(names_out), dtype=object)


def weighted_medians(X, weights):
    """Medians of columns, of known values by their weights; zero without a value.

    Of two values with half of the weight on either side it is the mean, as where rows
    are repeated. Shapes: X (n, p), weights (n,), returned (p,).
    """
    medians = np.zeros(X.shape[1])
    for k, column in enumerate(X.T):
        rows = np.flatnonzero(~np.isnan(column))
        if not rows.size:
            continue
        order = rows[np.argsort(column[rows], kind="stable")]
        sums = np.cumsum(weights[order])
        # Sums of the same weights in other units are rounded otherwise.
        half, rounding = sums[-1] / 2, 1e-12 * sums[-1]
        middle = np.searchsorted(sums, [half - rounding, half + rounding])
        medians[k] = column[order[middle]].mean()
    return medians


def are_rare(counts, min_frequency, max_levels):
    """Which levels are rare, as scikit-learn's OneHotEncoder has them, (n_levels,)."""
    least = min_frequency or 0
    is_rare = counts < (least * counts.sum() if least < 1 else least)
    # One column is for rare levels, also those of rows to come.
    if max_levels is not None and len(counts) - is_rare.sum() + 1 > max_levels:
        # The rarest, and of equally rare levels the first.
        n_rare = len(counts) - (max_levels - 1)
        is_rare[np.argsort(counts, kind="stable")[:n_rare]] = True
    return is_rare


def numbers_and_categories(columns):
    """Indices of the CodedColumns that are numbers, and that are categories."""
    numbers = [k for k, column in enumerate(columns) if column.levels is None]
    return numbers, sorted({*range(len(columns))} - {*numbers})


def make_distinct(names):
    """The names, all different: a repeated name gets underscores at its end."""
    former = set()
    for index, name in enumerate(names):
        while name in former:
            name += "_"
        former.add(name)
        names[index] = name
    return names
