"""Columns of codes, for models that take neither categories nor missing values."""

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from .._estimator.parameters import set_parameters

NUMBERS, CATEGORIES = "numbers", "categories"


class OneHotCodes(TransformerMixin, BaseEstimator):
    """Numbers of codes: medians and indicators, and a column for each level.

    Parameters
    ----------
    columns : list of CodedColumn
    min_frequency, max_levels, drop
        As in ``TableEncoder``.
    """

    def __init__(self, columns, min_frequency, max_levels, drop):
        set_parameters(self, locals())

    def fit(self, X, y=None):
        """Find medians and rare levels; y is not used."""
        numbers, categories = parted(self.columns)
        # Of a column that has no value in the rows of a fold, the median is zero.
        imputer = SimpleImputer(
            strategy="median", add_indicator=True, keep_empty_features=True
        )
        encoder = OneHotEncoder(
            min_frequency=self.min_frequency,
            max_categories=self.max_levels,
            drop=self.drop,
            handle_unknown="infrequent_if_exist",
            sparse_output=False,
        )
        parts = (NUMBERS, imputer, numbers), (CATEGORIES, encoder, categories)
        transformer = ColumnTransformer([part for part in parts if part[2]])
        # Whatever scikit-learn is configured to return elsewhere, models take arrays.
        self.transformer_ = transformer.set_output(transform="default").fit(X)
        return self

    def transform(self, X):
        """The columns of some rows.

        Shapes: X (n_samples, n_codes); returned (n_samples, n_columns).
        """
        return self.transformer_.transform(X)

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
        numbers, categories = parted(self.columns)
        parts = self.transformer_.named_transformers_
        labels = [names[place] for place in numbers]
        if numbers:
            missing = parts[NUMBERS].indicator_.features_
            labels += [f"{labels[place]}_missing" for place in missing]
        if categories:
            encoder = parts[CATEGORIES]
            for place, codes in enumerate(_codes_out(encoder)):
                column = self.columns[categories[place]]
                labels += [
                    f"{names[categories[place]]}_{_label(code, column.levels)}"
                    for code in codes
                ]
        return np.array(distinct(labels), dtype=object)


def _codes_out(encoder):
    """For each category, the codes of its columns; None is of rare levels together."""
    nothing = [None] * len(encoder.categories_)
    together = getattr(encoder, "infrequent_categories_", nothing)
    dropped = nothing if encoder.drop_idx_ is None else encoder.drop_idx_
    for codes, rare, place in zip(encoder.categories_, together, dropped):
        rare = np.array([] if rare is None else rare)
        is_rare = np.isin(codes, rare) | (np.isnan(codes) & np.isnan(rare).any())
        columns = [*codes[~is_rare], *[None] * bool(is_rare.any())]
        if place is not None:
            # The place is one among all levels, and a rare one stands for its column.
            gone = None if is_rare[place] else codes[place]
            columns = [code for code in columns if not _is_code(code, gone)]
        yield columns


def _is_code(code, other):
    """Whether two codes are the same, where None and NaN are codes too."""
    if code is None or other is None:
        return code is other
    return code == other or (np.isnan(code) and np.isnan(other))


def _label(code, levels):
    """What a column of a level is called."""
    if code is None:
        return "infrequent"
    return "missing" if np.isnan(code) else levels[int(code)]


def parted(columns):
    """Places of the columns that are numbers, and of those that are categories.

    Parameters
    ----------
    columns : list of CodedColumn
    """
    numbers = [place for place, column in enumerate(columns) if column.levels is None]
    return numbers, sorted({*range(len(columns))} - {*numbers})


def distinct(names):
    """The names, with an underscore after those that have been there before."""
    taken = set()
    for place, name in enumerate(names):
        while name in taken:
            name += "_"
        taken.add(name)
        names[place] = name
    return names
