"""SHAP values that libraries export, of blends of their trees."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import IterativeRidge, TableEncoder, TrajectoryEarlyStoppingCV
from skacv.inspection import blend_shap_values

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
catboost = pytest.importorskip("catboost")

SMALL = {"learning_rate": 0.2, "max_depth": 3, "n_estimators": 20}


def members():
    return {
        "lightgbm": lightgbm.LGBMRegressor(**SMALL, min_child_samples=5, verbose=-1),
        "xgboost": xgboost.XGBRegressor(**SMALL),
        "catboost": catboost.CatBoostRegressor(**SMALL, verbose=False),
        "ridge": IterativeRidge(0.0),
    }


@pytest.fixture
def data(rng):
    X = rng.standard_normal((90, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.standard_normal(90)
    return X, y


def exported(name, fitted, X):
    """Values and the base value, as the manual of each library has them."""
    if name == "lightgbm":
        return fitted.predict(X, pred_contrib=True)
    if name == "xgboost":
        rows = xgboost.DMatrix(X)
        return fitted.get_booster().predict(rows, pred_contribs=True)
    return fitted.get_feature_importance(catboost.Pool(X), type="ShapValues")


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "catboost"])
def test_a_member_has_those_of_its_library(data, name):
    X, y = data
    pair = [(name, members()[name])]
    model = TrajectoryEarlyStoppingCV(pair, random_state=0).fit(X, y)
    values, base = blend_shap_values(model, X)
    expected = exported(name, model.members_[name].estimator_, X)
    np.testing.assert_allclose(values, expected[:, :-1], rtol=1e-6)
    np.testing.assert_allclose(base, expected[:, -1], rtol=1e-6)


def test_those_of_a_blend_add_up_to_its_predictions(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(
        list(members().items()), rule="blend", random_state=0
    ).fit(X, y)
    values, base = blend_shap_values(model, X, background=X)
    np.testing.assert_allclose(
        base + values.sum(axis=1), model.predict(X), atol=1e-4 * y.std()
    )
    total = 0.0
    for name, weight in model.weights_.items():
        if weight > 0 and name != "ridge":
            fitted = model.members_[name].estimator_
            total = total + weight * exported(name, fitted, X)
    ridge = model.members_["ridge"]
    linear = ridge.coef_ * (X - X.mean(axis=0)) * model.weights_["ridge"]
    np.testing.assert_allclose(values, total[:, :-1] + linear, rtol=1e-5, atol=1e-6)
    # In pipelines, too.
    scaled = make_pipeline(StandardScaler(), members()["lightgbm"])
    model = TrajectoryEarlyStoppingCV([("scaled", scaled)], random_state=0).fit(X, y)
    values, base = blend_shap_values(model, X)
    np.testing.assert_allclose(base + values.sum(axis=1), model.predict(X))


def test_categories_are_one_column_for_every_library(data, rng):
    X, y = data
    table = pd.DataFrame(X, columns=list("abcd"))
    table.insert(1, "word", rng.choice(["red", "green", "blue"], 90))
    table.loc[::9, "c"] = np.nan
    y = y + 2 * (table["word"] == "red")
    model = TrajectoryEarlyStoppingCV(
        list(members().items()),
        rule="blend",
        encoder=TableEncoder(),
        random_state=0,
    ).fit(table, y)
    values, base = blend_shap_values(model, table, background=table)
    assert values.shape == table.shape
    np.testing.assert_allclose(
        base + values.sum(axis=1), model.predict(table), atol=1e-4 * y.std()
    )
    # The word, and the first column, matter most.
    largest = np.abs(values).mean(axis=0).argsort()[::-1]
    assert set(table.columns[largest[:2]]) <= {"a", "word", "b"}
    is_red = (table["word"] == "red").to_numpy()
    assert values[is_red, 1].min() > values[~is_red, 1].max()


def test_several_targets_have_values_each(data):
    X, y = data
    Y = np.column_stack([y, X[:, 3] - y])
    single = xgboost.XGBRegressor(**SMALL)
    model = TrajectoryEarlyStoppingCV([("trees", single)], random_state=0).fit(X, Y)
    values, base = blend_shap_values(model, X)
    assert values.shape == (90, 2, 4)
    np.testing.assert_allclose(
        base + values.sum(axis=2), model.predict(X), atol=1e-4 * Y.std()
    )
    # It exports none of trees whose leaves are vectors.
    several = xgboost.XGBRegressor(**SMALL, multi_strategy="multi_output_tree")
    model = TrajectoryEarlyStoppingCV([("trees", several)], random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="lack the member 'trees', and its library"):
        blend_shap_values(model, X)
