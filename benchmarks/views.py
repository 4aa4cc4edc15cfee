"""How do users hand a raw frame to a model that cannot take it as it is?

A view is a function of the task that gives a transformer.
"""

import re

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, TargetEncoder

# Levels of a column that HistGradientBoosting can take.
MOST_LEVELS = 255
DAY = np.timedelta64(1, "D")
EPOCH = np.datetime64("1970-01-01")


def numbers_and_text(frame):
    """Dates as days since 1970 and their parts, booleans as numbers, others as text."""
    import pandas as pd

    columns = {}
    for original, values in frame.items():
        name = re.sub(r"\W+", "_", original)  # libraries take no punctuation
        if pd.api.types.is_datetime64_any_dtype(values):
            columns[f"{name}_days"] = (values - EPOCH) / DAY
            for part in ("year", "month", "day_of_week", "hour"):
                columns[f"{name}_{part}"] = getattr(values.dt, part).astype(float)
        elif pd.api.types.is_numeric_dtype(values):
            columns[name] = values.astype(float)
        else:
            columns[name] = values.map(str, na_action="ignore").astype(object)
    return pd.DataFrame(columns, index=frame.index)


def indicators(task):
    """The recipe of docs/guide/tables.md; levels of a single row are one."""
    encoder = OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=2, sparse_output=False
    )
    columns = make_column_transformer(
        (encoder, make_column_selector(dtype_exclude="number")),
        remainder=SimpleImputer(add_indicator=True),
    )
    return make_pipeline(FunctionTransformer(numbers_and_text), columns)


class Categories(TransformerMixin, BaseEstimator):
    """Text as categories of pandas, those of the training rows; others are missing.

    Columns without any value are left out: HistGradientBoosting does not take them.
    """

    def fit(self, X, y=None):
        import pandas as pd

        frame = numbers_and_text(X).dropna(axis="columns", how="all")
        self.columns_ = list(frame)
        self.dtypes_ = {
            name: pd.CategoricalDtype(sorted(frame[name].dropna().unique()))
            for name in frame.select_dtypes(exclude="number")
        }
        return self

    def transform(self, X):
        frame = numbers_and_text(X)[self.columns_]
        for name, dtype in self.dtypes_.items():
            frame[name] = frame[name].where(frame[name].isin(dtype.categories))
        return frame.astype(self.dtypes_)


def categories(task):
    """Categories of pandas."""
    return Categories()


def with_many_levels(frame):
    """Names of columns with more levels than HistGradientBoosting takes."""
    columns = frame.select_dtypes("category")
    return [name for name in columns if columns[name].nunique() > MOST_LEVELS]


def categories_and_means(task):
    """Categories, and means of y by level where there are more than 255 levels."""
    # Numbers that are whole would be taken for classes.
    kind = "continuous" if task == "regression" else "auto"
    means = make_column_transformer(
        (TargetEncoder(target_type=kind, random_state=0), with_many_levels),
        remainder="passthrough",
        verbose_feature_names_out=False,
    )
    return make_pipeline(Categories(), means.set_output(transform="pandas"))


def text(task):
    """Text with a level for what is missing."""

    def filled(frame):
        frame = numbers_and_text(frame)
        columns = list(frame.select_dtypes(exclude="number"))
        frame[columns] = frame[columns].fillna("missing")
        return frame

    return FunctionTransformer(filled)


class Viewed(BaseEstimator):
    """A model of a view of the frame; ``peer`` gives it for a number of columns."""

    def __init__(self, view, peer):
        self.view = view
        self.peer = peer

    def fit(self, X, y):
        viewed = self.view.fit_transform(X, y)
        self.model_ = self.peer(viewed.shape[1]).fit(viewed, y)
        return self

    def predict(self, X):
        return self.model_.predict(self.view.transform(X))

    def predict_proba(self, X):
        return self.model_.predict_proba(self.view.transform(X))
