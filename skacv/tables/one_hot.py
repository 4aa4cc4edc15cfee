"""Columns of codes, for models that take neither categories nor missing values."""

import warnings

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

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

    def __init__(
        self, columns, min_frequency=None, max_levels=None, drop=None, scaled=False
    ):
        set_parameters(self, locals())

    def fit(self, X, y=None):
        """Compute medians and rare levels; y is not used."""
        numbers, categories = numbers_and_categories(self.columns)
        self.imputer_ = self.scaler_ = None
        self.encoders_, self.tables_ = [], []
        # Transformers return arrays, whatever scikit-learn is configured to return.
        if numbers:
            # A column without a value in the rows of a fold has the median zero.
            imputer = SimpleImputer(
                strategy="median", add_indicator=True, keep_empty_features=True
            ).set_output(transform="default")
            filled = imputer.fit_transform(X[:, numbers])[:, : len(numbers)]
            self.imputer_ = imputer
            self.scaler_ = StandardScaler().fit(filled) if self.scaled else None
        for index in categories:
            encoder = OneHotEncoder(
                min_frequency=self.min_frequency,
                max_categories=self.max_levels,
                drop=self.drop,
                handle_unknown="infrequent_if_exist",
                sparse_output=False,
            ).set_output(transform="default")
            codes = np.array([np.nan, -1.0, *range(len(self.columns[index].levels))])
            self.encoders_.append(encoder.fit(X[:, [index]]))
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
        return np.array(distinct(names_out), dtype=object)


def numbers_and_categories(columns):
    """Indices of the CodedColumns that are numbers, and that are categories."""
    numbers = [k for k, column in enumerate(columns) if column.levels is None]
    return numbers, sorted({*range(len(columns))} - {*numbers})


def distinct(names):
    """The names, all different: a repeated name gets underscores at its end."""
    former = set()
    for index, name in enumerate(names):
        while name in former:
            name += "_"
        former.add(name)
        names[index] = name
    return names
