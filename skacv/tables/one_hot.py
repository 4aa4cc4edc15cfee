"""Columns of codes, for models that take neither categories nor missing values."""

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

NUMBERS, CATEGORIES = "numbers", "categories"


def one_hot(columns, min_frequency, max_levels):
    """A transformer of codes: medians and indicators, and a column for each level.

    Parameters
    ----------
    columns : list of CodedColumn
    min_frequency, max_levels
        As in ``TableEncoder``.

    Returns
    -------
    ColumnTransformer
        Not fitted.
    """
    numbers, categories = parted(columns)
    # Of a column that has no value in the rows of a fold, the median is zero.
    imputer = SimpleImputer(
        strategy="median", add_indicator=True, keep_empty_features=True
    )
    encoder = OneHotEncoder(
        min_frequency=min_frequency,
        max_categories=max_levels,
        handle_unknown="infrequent_if_exist",
        sparse_output=False,
    )
    parts = (NUMBERS, imputer, numbers), (CATEGORIES, encoder, categories)
    transformer = ColumnTransformer([part for part in parts if part[2]])
    # Whatever scikit-learn is configured to return elsewhere, models take arrays.
    return transformer.set_output(transform="default")


def parted(columns):
    """Places of the columns that are numbers, and of those that are categories.

    Parameters
    ----------
    columns : list of CodedColumn
    """
    numbers = [place for place, column in enumerate(columns) if column.levels is None]
    return numbers, sorted({*range(len(columns))} - {*numbers})


def one_hot_names(transformer, columns):
    """Names of the columns that a fitted :func:`one_hot` returns, all different.

    Parameters
    ----------
    transformer : ColumnTransformer
    columns : list of CodedColumn

    Returns
    -------
    list of str
    """
    numbers, categories = parted(columns)
    names = [columns[place].name for place in numbers]
    if numbers:
        indicator = transformer.named_transformers_[NUMBERS].indicator_
        names += [f"{names[place]}_missing" for place in indicator.features_]
    if categories:
        encoder = transformer.named_transformers_[CATEGORIES]
        together = getattr(encoder, "infrequent_categories_", [None] * len(categories))
        for place, codes, rare in zip(categories, encoder.categories_, together):
            name, levels, _ = columns[place]
            rare = np.array([] if rare is None else rare)
            is_rare = np.isin(codes, rare) | (np.isnan(codes) & np.isnan(rare).any())
            labels = [
                "missing" if np.isnan(code) else levels[int(code)]
                for code in codes[~is_rare]
            ]
            labels += ["infrequent"] * bool(is_rare.any())
            names += [f"{name}_{label}" for label in labels]
    return distinct(names)


def distinct(names):
    """The names, with an underscore after those that have been there before."""
    taken = set()
    for place, name in enumerate(names):
        while name in taken:
            name += "_"
        taken.add(name)
        names[place] = name
    return names
