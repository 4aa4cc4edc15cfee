"""XGBoost, LightGBM and CatBoost for several outputs and labels, against their fits."""

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor

from skacv import Staged, TrajectoryEarlyStoppingCV

from .cases import booster, by_hand, table

CASES = {
    "XGBoost": ("XGBRegressor", {}, None),
    "XGBoost's trees of outputs": (
        "XGBRegressor",
        {"multi_strategy": "multi_output_tree", "colsample_bytree": 1.0},
        None,
    ),
    "CatBoost": (
        "CatBoostRegressor",
        {"loss_function": "MultiRMSE", "boosting_type": "Plain"},
        None,
    ),
    "XGBoost for each": ("XGBRegressor", {}, MultiOutputRegressor),
    "LightGBM for each": ("LGBMRegressor", {}, MultiOutputRegressor),
    "CatBoost for each": ("CatBoostRegressor", {}, MultiOutputRegressor),
    "XGBoost, labels": ("XGBClassifier", {}, None),
    "XGBoost for each label": ("XGBClassifier", {}, MultiOutputClassifier),
    "LightGBM for each label": ("LGBMClassifier", {}, MultiOutputClassifier),
    "CatBoost for each label": ("CatBoostClassifier", {}, MultiOutputClassifier),
}


def drawn(case):
    name, settings, outer = CASES[case]
    inner = booster(name, 5, **settings)
    estimator = inner if outer is None else outer(inner)
    X, Y = table("two outputs")
    if is_classifier(estimator):
        Y = (Y > np.median(Y, axis=0)).astype(int)
    return estimator, X, Y


def response(estimator, X):
    """Predictions, or the probability of each label, as a matrix."""
    if not is_classifier(estimator):
        return estimator.predict(X)
    probabilities = estimator.predict_proba(X)
    if isinstance(probabilities, list):
        return np.stack([each[:, 1] for each in probabilities], axis=1)
    return probabilities


@pytest.mark.parametrize("case", CASES)
def test_stages_are_those_of_the_library(case):
    estimator, X, Y = drawn(case)
    model = Staged(estimator, cv=3).fit(X, Y)
    path, rows = np.asarray(model.cv_prediction_path_), np.hstack(model.cv_indices_)
    for judged in model.cv_indices_:
        fitted = np.setdiff1d(np.arange(len(Y)), judged)
        for t in (1, 3, 5):
            expected = response(by_hand(estimator, t, X, Y, fitted), X[judged])
            actual = path[t, np.isin(rows, judged)]
            np.testing.assert_allclose(actual, expected, rtol=1e-12)
    for t in (1, 3, 5):
        expected, stage = by_hand(estimator, t, X, Y, rows), model.at_iteration(t)
        np.testing.assert_allclose(response(stage, X), response(expected, X))
        np.testing.assert_array_equal(stage.predict(X), expected.predict(X))


@pytest.mark.filterwarnings("ignore:The chosen iterate")
@pytest.mark.parametrize("case", CASES)
def test_they_are_blended_with_forests(case):
    estimator, X, Y = drawn(case)
    X = np.nan_to_num(X)
    forest = ExtraTreesClassifier if is_classifier(estimator) else ExtraTreesRegressor
    members = [("boosted", estimator), ("forest", forest(5, max_depth=3))]
    model = TrajectoryEarlyStoppingCV(members, rule="blend", random_state=0, cv=3)
    model.fit(X, Y)
    expected = sum(
        weight * response(model.members_[name], X)
        for name, weight in model.weights_.items()
    )
    np.testing.assert_allclose(response(model, X), expected)
    assert model.best_score_ <= min(model.results_["best_score"]) + 1e-9


@pytest.mark.parametrize("case", [case for case in CASES if "label" not in case])
def test_targets_that_rows_lack(case):
    """Each is fitted to the rows that have it, as if it were alone."""
    estimator, X, Y = drawn(case)
    Y = Y.copy()
    Y[::4, 0] = Y[1::5, 1] = np.nan
    # Folds that each target has the same of: every row is in that of its number.
    number = np.arange(len(Y)) % 3
    cv = [(np.flatnonzero(number != k), np.flatnonzero(number == k)) for k in range(3)]
    model = TrajectoryEarlyStoppingCV(estimator, cv=cv, random_state=0).fit(X, Y)
    for target, one in zip(Y.T, model.estimators_):
        rows = np.flatnonzero(~np.isnan(target))
        folds = number[rows]
        cv = [
            (np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(3)
        ]
        alone = TrajectoryEarlyStoppingCV(estimator, cv=cv, random_state=0)
        alone.fit(X[rows], target[rows])
        np.testing.assert_allclose(one.path_, alone.path_, rtol=1e-6)
        np.testing.assert_allclose(one.predict(X), alone.predict(X), rtol=1e-6)
    assert model.predict(X).shape == Y.shape
    assert model.predict_interval(X).shape == (*Y.shape, 2)
