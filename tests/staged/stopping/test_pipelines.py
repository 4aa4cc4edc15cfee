"""Pipelines and tables with categories and missing values."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from skacv import TrajectoryEarlyStoppingCV

from .cases import boosted


@pytest.fixture
def table(rng):
    n_rows = 90
    X = pd.DataFrame(
        {
            "size": rng.standard_normal(n_rows),
            "age": rng.uniform(1, 9, n_rows),
            "kind": rng.choice(["a", "b", "c"], n_rows),
            "grade": pd.Categorical(rng.choice(["low", "mid", "top"], n_rows)),
        },
        index=rng.permutation(n_rows) + 100,
    )
    X.loc[X.index[::7], "age"] = np.nan
    X.loc[X.index[::11], "grade"] = np.nan
    X.loc[X.index[3], "kind"] = "rare"  # which most folds are not fitted to
    y = X["size"] + 2.0 * (X["kind"] == "b") + 0.2 * rng.standard_normal(n_rows)
    return X, y.rename("price")


def encoded(last):
    unknown = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
    encoder = make_column_transformer(
        (SimpleImputer(strategy="median"), ["size", "age"]),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["kind"]),
        (OrdinalEncoder(encoded_missing_value=-2, **unknown), ["grade"]),
    )
    return make_pipeline(encoder, last)


def test_a_pipeline_with_its_own_imputer_and_encoders(table):
    X, y = table
    pipe = encoded(GradientBoostingRegressor(n_estimators=12, random_state=0))
    model = TrajectoryEarlyStoppingCV(pipe).fit(X, y)
    chosen = model.estimator_
    errors = np.empty((12, len(y)))
    for judged in chosen.cv_indices_:
        fitted = np.setdiff1d(np.arange(len(y)), judged)
        grown = clone(pipe).fit(X.iloc[fitted], y.iloc[fitted])
        rows = grown[0].transform(X.iloc[judged])
        staged = np.array(list(grown[-1].staged_predict(rows)))
        errors[:, judged] = (staged - y.to_numpy()[judged]) ** 2
    np.testing.assert_allclose(model.path_[1:], errors.mean(axis=1))
    best = 1 + errors.mean(axis=1).argmin()
    assert model.best_params_ == {"gradientboostingregressor__n_estimators": best}
    refit = clone(pipe).set_params(gradientboostingregressor__n_estimators=best)
    np.testing.assert_array_equal(model.predict(X), refit.fit(X, y).predict(X))
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    assert model.predict_interval(X).shape == (90, 2)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_grid_reaches_the_steps_of_a_pipeline(table):
    X, y = table
    pipe = encoded(boosted(max_iter=8))
    name = "columntransformer__simpleimputer__strategy"
    model = TrajectoryEarlyStoppingCV(
        pipe, param_grid={name: ["mean", "median"]}, cv=KFold(3)
    ).fit(X, y)
    assert set(model.best_params_) == {name, "histgradientboostingregressor__max_iter"}
    assert len(model.results_["params"]) == 2


def test_as_the_last_step_of_a_pipeline(data):
    X, y = data
    X[::9, 1] = np.nan
    stopping = TrajectoryEarlyStoppingCV(GradientBoostingRegressor(n_estimators=8))
    pipe = make_pipeline(
        SimpleImputer(), stopping.set_params(estimator__random_state=0)
    )
    found = pipe.fit(X, y).predict(X)
    imputed = SimpleImputer().fit_transform(X)
    np.testing.assert_array_equal(
        found, clone(stopping).fit(imputed, y).predict(imputed)
    )


def test_frames_with_categories_and_missing_values(table):
    X, y = table
    X = X.assign(kind=X["kind"].astype("category"))
    trees = boosted(categorical_features="from_dtype", max_iter=10)
    model = TrajectoryEarlyStoppingCV(trees).fit(X, y)
    refit = clone(trees).set_params(max_iter=model.best_iter_).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), refit.predict(X))
    assert model.path_[model.best_iter_] < 0.5 * model.path_[0]
