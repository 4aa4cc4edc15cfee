"""XGBoost, LightGBM and CatBoost take the categories of a table as they are."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone

from skacv import Staged, TableEncoder
from skacv.model_selection.defaults.views import choose_view
from tests.staged.boosters.cases import PLAIN, booster
from tests.tables.frames import TABLES

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
        choose_view(Staged(member), encoder)


@pytest.mark.parametrize("levels", [["a=1", "b=2"], ["=", "=="], ["a\nb=c=d", "e"]])
def test_names_of_categories_of_lightgbm(levels, rng):
    """A model without splits is a constant, however its categories are named."""
    lightgbm = pytest.importorskip("lightgbm")
    X = pd.DataFrame({"x": rng.standard_normal(60)})
    X["level"] = pd.Categorical(rng.choice(levels, 60))
    y = X["x"] + (X["level"] == levels[0])
    for least in (5, 1000):
        settings = {"n_estimators": 5, "min_child_samples": least, "verbose": -1}
        trees = lightgbm.LGBMRegressor(**settings)
        model = pickle.loads(pickle.dumps(Staged(trees, cv=3).fit(X, y)))
        expected = np.full(60, y.mean())
        if least == 5:
            # The same without such names.
            codes = pd.Categorical.from_codes(X["level"].cat.codes, ["p", "q"])
            expected = clone(trees).fit(X.assign(level=codes), y)
            expected = expected.predict(X.assign(level=codes))
        np.testing.assert_allclose(model.predict(X), expected)


@pytest.mark.parametrize("name", PLAIN)
def test_frames_that_would_end_the_interpreter(name, rng):
    pl = pytest.importorskip("polars")
    numbers = {"x": rng.standard_normal(30), "flag": np.arange(30) % 2 == 0}
    y = numbers["x"] + numbers["flag"]
    model = Staged(booster(name, 3), cv=3).fit(pl.DataFrame(numbers), y)
    others = {
        "Date": pl.Series(range(30)).cast(pl.Date),
        "Struct": pl.Series([{"a": 1}] * 30),
        "List": pl.Series([[1, 2]] * 30),
        "Array": pl.Series([[1, 2]] * 30, dtype=pl.Array(pl.Int64, 2)),
    }
    if not name.startswith("Cat"):  # which takes texts
        others["String"] = pl.Series(["a"] * 30)
    for kind, column in others.items():
        X = pl.DataFrame({**numbers, "of": column})
        with pytest.raises(TypeError, match=f"Column 'of' of X holds {kind}"):
            Staged(booster(name, 3), cv=3).fit(X, y)
        with pytest.raises(TypeError, match=f"Column 'flag' of X holds {kind}"):
            model.predict(pl.DataFrame({"x": numbers["x"], "flag": column}))


@pytest.mark.parametrize("name", PLAIN)
def test_tables_of_arrow(name, rng):
    pa = pytest.importorskip("pyarrow")
    X = pd.DataFrame(rng.standard_normal((30, 2)), columns=["a", "b"])
    model = Staged(booster(name, 3), cv=3)
    expected = clone(model).fit(X, X["a"]).predict(X)
    table = pa.Table.from_pandas(X)
    found = model.fit(table, X["a"])
    np.testing.assert_array_equal(found.predict(table), expected)
    assert list(found.feature_names_in_) == ["a", "b"]
