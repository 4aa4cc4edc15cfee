"""Folds that are fitted to far fewer rows than the model raise a warning, once."""

import re
import warnings

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_score,
)

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    SelfStoppingRegressor,
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)
from skacv.exceptions import SmallTrainingSetsWarning

TREES = HistGradientBoostingRegressor(max_iter=4, min_samples_leaf=3, random_state=0)
LASSO = TrajectoryLasso("path", max_iter=2)
MODELS = {
    "lasso": TrajectoryLasso(0.1, max_iter=4),
    "ridge": IterativeRidge(max_iter=4),
    "kernel": KernelEigenProRegressor(gamma=0.1, max_iter=4),
    "staged": Staged(TREES),
    "stopped": TrajectoryEarlyStoppingCV(LASSO, random_state=0),
    "members": TrajectoryEarlyStoppingCV(
        [("lasso", LASSO), ("trees", TREES)], rule="blend", random_state=0
    ),
    "grid": TrajectoryEarlyStoppingCV(
        TREES, param_grid={"max_depth": [1, 2]}, random_state=0
    ),
}


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((60, 3))
    return X, X[:, 0] + 0.5 * rng.standard_normal(60)


def said(model, X, y, **params):
    """Messages of the warning that a fit raises."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, **params)
    return [
        str(one.message)
        for one in caught
        if issubclass(one.category, SmallTrainingSetsWarning)
    ]


@pytest.mark.parametrize("name", MODELS)
def test_of_the_first_rows_in_time(name, rows):
    model = MODELS[name].set_params(cv=TimeSeriesSplit(5))
    (message,) = said(model, *rows)
    assert "Fold 0 of cv is fitted to 10 of the 60 rows" in message
    sizes = re.search(r"TimeSeriesSplit\(n_splits=(\d+), test_size=(\d+)\)", message)
    n_splits, test_size = map(int, sizes.groups())
    advised = TimeSeriesSplit(n_splits, test_size=test_size)
    assert all(len(fitted) >= 30 for fitted, _ in advised.split(rows[0]))
    assert said(model.set_params(cv=advised), *rows) == []


def test_what_it_warns_of(rng):
    """The error of least squares with p columns on n rows is (n - 1) / (n - p - 1)."""
    n_rows, p = 90, 10
    truth, found = (n_rows - 1) / (n_rows - p - 1), {}
    for test_size in (None, 9):
        splits, errors = TimeSeriesSplit(5, test_size=test_size), []
        for _ in range(50):
            X = rng.standard_normal((n_rows, p))
            y = X.sum(axis=1) + rng.standard_normal(n_rows)
            scores = cross_val_score(
                LinearRegression(fit_intercept=False),
                X,
                y,
                cv=splits,
                scoring="neg_mean_squared_error",
            )
            errors.append(-scores)
        found[test_size] = np.mean(errors)
    assert found[None] > 1.3 * truth
    assert found[9] < 1.2 * truth


TWO_FOLDS = {
    "folds": KFold(2),
    "shuffled": KFold(2, shuffle=True, random_state=0),
    "a half": ShuffleSplit(1, test_size=0.5, random_state=0),
    "in time": TimeSeriesSplit(2),
}


@pytest.mark.parametrize("n_rows", [3, 7, 60])
@pytest.mark.parametrize("name", TWO_FOLDS)
def test_two_folds_are_no_reason(name, n_rows, rows):
    X, y = rows
    model = TrajectoryLasso(0.1, max_iter=2, cv=TWO_FOLDS[name])
    assert said(model, X[:n_rows], y[:n_rows]) == []


def test_nor_are_two_folds_of_classes_or_groups(rows):
    X, y = rows
    logistic = TrajectoryLogisticRegression(max_iter=2, cv=StratifiedKFold(2))
    assert said(logistic, X, np.digitize(y, [-1, 0, 1])) == []
    lasso = TrajectoryLasso(0.1, max_iter=2, cv=GroupKFold(2))
    assert said(lasso, X, y, groups=np.arange(60) // 7) == []


def test_any_splitter_of_few_training_rows(rows):
    splitter = ShuffleSplit(2, train_size=0.2, random_state=0)
    (message,) = said(TrajectoryLasso(0.1, max_iter=2, cv=splitter), *rows)
    assert "Fold 0 of cv is fitted to 12 of the 60 rows" in message
    assert "TimeSeriesSplit" not in message


@pytest.mark.parametrize("name", ["lasso", "staged", "stopped"])
def test_rows_of_weight_zero_do_not_count(name, rows):
    X, y = rows
    weights = np.ones(60)
    weights[40:] = 0
    splits = [(np.arange(15), np.arange(15, 25)), (np.arange(25), np.arange(25, 60))]
    assert said(MODELS[name].set_params(cv=splits), X, y, sample_weight=weights) == []
    (message,) = said(MODELS[name], X, y)
    assert "15 of the 60 rows" in message


def test_the_default_says_it_once(rows):
    X, y = rows
    model = SelfStoppingRegressor(cv=TimeSeriesSplit(5), random_state=0)
    assert len(said(model, X, y)) == 1
