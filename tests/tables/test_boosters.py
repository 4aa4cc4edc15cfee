"""XGBoost, LightGBM and CatBoost take the categories of a table as they are."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context

from skacv import Staged, TableEncoder
from skacv.tables.views import view_for
from tests.staged.boosters.cases import PLAIN, booster

from .frames import TABLES
from .test_views import Encoded, streets, target

CITY = ["city", "street"]


def as_the_library_has_them(X, name):
    """A frame with categories, as users of the library pass them."""
    if name.startswith("Cat"):  # which has texts for them
        texts = X[CITY].astype(object)
        return X.assign(**texts.where(texts.notna(), "missing"))
    levels = {column: sorted(set(streets()[column].dropna())) for column in CITY}
    known = {column: X[column].where(X[column].isin(levels[column])) for column in CITY}
    return X.assign(
        **{column: pd.Categorical(known[column], levels[column]) for column in CITY}
    )


SETTINGS = {
    "XGBRegressor": {"enable_categorical": True},
    "LGBMRegressor": {},
    "CatBoostRegressor": {"cat_features": CITY},
}


@pytest.mark.parametrize("name", PLAIN)
def test_categories_are_those_of_a_frame(name):
    X = streets()
    y = target(X)
    model = Encoded(Staged(booster(name)), X).fit(X, y)
    with config_context(transform_output="pandas"):
        again = Encoded(Staged(booster(name)), X).fit(X, y).predict(X)
    np.testing.assert_array_equal(again, model.predict(X))
    by_hand = booster(name, **SETTINGS[name]).fit(as_the_library_has_them(X, name), y)
    new = X[:30].copy()
    new.loc[0, CITY] = "never seen"
    new.loc[1, "street"] = None
    new.loc[2, "age"] = np.nan
    expected = by_hand.predict(as_the_library_has_them(new, name))
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:X (does not have|has) .*feature names")
@pytest.mark.parametrize("name", PLAIN)
def test_tables(name):
    for table in TABLES.values():
        table = table()
        model = Encoded(Staged(booster(name, 3), cv=3), table.X).fit(table.X, table.y)
        predicted = model.predict(table.X)
        assert np.isfinite(predicted).all()
        for how, X in table.same.items():
            np.testing.assert_array_equal(model.predict(X), predicted, err_msg=how)


@pytest.mark.parametrize("name", PLAIN)
def test_settings_of_columns_are_of_x(name):
    encoder = TableEncoder().fit(streets())
    key = {"XGB": "feature_types", "LGB": "categorical_feature", "Cat": "cat_features"}
    member = booster(name, **{key[name[:3]]: ["c", "c", "q", "q"]})
    with pytest.raises(ValueError, match=f"leave {key[name[:3]]} out"):
        view_for(Staged(member), encoder)
