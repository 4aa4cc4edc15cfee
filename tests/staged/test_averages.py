"""keep="mean" predicts the mean of the model and of the folds' copies."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GroupKFold, KFold
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import Staged, TrajectoryEarlyStoppingCV
from tests.internals import last_of

FOLDS = KFold(3, shuffle=True, random_state=0)


@pytest.fixture
def numbers(rng):
    X, y = load_diabetes(return_X_y=True)
    rows = rng.permutation(len(y))[:150]
    return X[rows], y[rows]


@pytest.fixture
def labels(rng):
    X, y = load_iris(return_X_y=True)
    rows = rng.permutation(len(y))
    return X[rows], y[rows]


def refits(estimator, X, y, splits):
    """The estimator fitted to all rows, and to the training rows of every fold."""
    rows = [np.arange(len(y)), *(fitted for fitted, _ in splits)]
    return [clone(estimator).fit(X[index], y[index]) for index in rows]


@pytest.mark.parametrize(
    "estimator",
    [
        GradientBoostingRegressor(n_estimators=10, random_state=0),
        HistGradientBoostingRegressor(max_iter=10, random_state=0),
        RandomForestRegressor(n_estimators=10, random_state=0),
        make_pipeline(
            StandardScaler(), GradientBoostingRegressor(n_estimators=5, random_state=0)
        ),
    ],
    ids=lambda estimator: type(last_of(estimator)).__name__,
)
def test_numbers(estimator, numbers):
    X, y = numbers
    model = Staged(estimator, cv=FOLDS, keep="mean").fit(X, y)
    expected = np.mean(
        [one.predict(X) for one in refits(estimator, X, y, FOLDS.split(X))], axis=0
    )
    assert_allclose(model.predict(X), expected)
    *_, last = model.staged_predict(X)
    assert_allclose(last, expected)
    alone = Staged(estimator, cv=FOLDS).fit(X, y)
    assert_array_equal(model.cv_path_, alone.cv_path_)
    again = pickle.loads(pickle.dumps(model))
    assert_allclose(again.predict(X), expected)
    assert_allclose(model.drop_record().predict(X), expected)


def test_earlier_stages(numbers):
    X, y = numbers
    trees = GradientBoostingRegressor(n_estimators=10, random_state=0)
    model = Staged(trees, cv=FOLDS, keep="mean").fit(X, y).at_iteration(4)
    few = clone(trees).set_params(n_estimators=4)
    fits = refits(few, X, y, FOLDS.split(X))
    assert_allclose(model.predict(X), np.mean([one.predict(X) for one in fits], axis=0))
    importances = np.mean([one.feature_importances_ for one in fits], axis=0)
    assert_allclose(model.feature_importances_, importances)
    assert model.estimator_.score(X, y) == pytest.approx(model.score(X, y))


@pytest.mark.parametrize(
    "estimator",
    [
        GradientBoostingClassifier(n_estimators=5, random_state=0),
        HistGradientBoostingClassifier(max_iter=5, random_state=0),
        RandomForestClassifier(n_estimators=10, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_fold_may_lack_a_class(estimator, labels):
    """Its probability is zero there."""
    X, y = labels
    kept = np.flatnonzero((y < 2) | (np.arange(150) < 40))
    X, y = X[kept], y[kept]
    held_out = np.flatnonzero(y == 2)
    splits = [(np.flatnonzero(y < 2), held_out), *FOLDS.split(X)]
    model = Staged(estimator, cv=splits, keep="mean").fit(X, y)
    expected = np.zeros((len(y), 3))
    for one in refits(estimator, X, y, splits):
        expected[:, one.classes_] += one.predict_proba(X) / 5
    assert_allclose(model.predict_proba(X), expected, atol=1e-12)
    assert_array_equal(model.predict(X), expected.argmax(axis=1))
    *_, last = model.staged_predict_proba(X)
    assert_allclose(last, expected, atol=1e-12)
    assert_array_equal(model.classes_, [0, 1, 2])


def test_decisions(labels):
    X, y = labels
    network = SGDClassifier(max_iter=5, random_state=0)
    model = Staged(network, cv=FOLDS, keep="mean").fit(X, y)
    copies = model.estimator_.copies
    expected = np.mean([one.decision_function(X) for one in copies], axis=0)
    assert_allclose(model.decision_function(X), expected)
    assert_array_equal(model.predict(X), expected.argmax(axis=1))
    assert not hasattr(model, "predict_proba")


def test_several_labels_and_targets(numbers):
    X, y = numbers
    targets = np.stack([y, -y], axis=1)
    labels = (targets > np.median(targets, axis=0)).astype(int)
    forest = RandomForestClassifier(n_estimators=10, random_state=0)
    model = Staged(forest, cv=FOLDS, keep="mean").fit(X, labels)
    expected = np.mean(
        [
            np.stack([share[:, 1] for share in one.predict_proba(X)], axis=1)
            for one in refits(forest, X, labels, FOLDS.split(X))
        ],
        axis=0,
    )
    assert_allclose(model.predict_proba(X), expected)
    assert_array_equal(model.predict(X), expected > 0.5)
    per_output = MultiOutputRegressor(GradientBoostingRegressor(n_estimators=5))
    model = Staged(per_output, cv=FOLDS, keep="mean").fit(X, targets)
    assert model.predict(X).shape == targets.shape
    intervals = model.predict_interval(X[:4], method="cv+")
    assert intervals.shape == (4, 2, 2)


def test_stages_that_are_forgotten(numbers):
    X, y = numbers
    network = MLPRegressor(hidden_layer_sizes=(5,), max_iter=8, random_state=0)
    model = Staged(network, cv=FOLDS, keep="mean").fit(X, y).at_iteration(3)
    expected = np.mean([one.predict(X) for one in model.estimator_.copies], axis=0)
    assert_allclose(model.predict(X), expected)


def test_the_chosen_stage(numbers):
    X, y = numbers
    trees = GradientBoostingRegressor(n_estimators=300, random_state=0)
    mean = TrajectoryEarlyStoppingCV(Staged(trees, keep="mean"), cv=FOLDS).fit(X, y)
    alone = TrajectoryEarlyStoppingCV(trees, cv=FOLDS).fit(X, y)
    assert mean.best_iter_ == alone.best_iter_ < mean.estimator_.n_iter_
    few = clone(trees).set_params(n_estimators=mean.best_iter_)
    fits = refits(few, X, y, FOLDS.split(X))
    assert_allclose(mean.predict(X), np.mean([one.predict(X) for one in fits], axis=0))
    assert_allclose(
        mean.predict_interval(X[:5], method="cv+"),
        mean.estimator_.predict_interval(X[:5], method="cv+"),
    )


def test_intervals_are_those_of_the_definition(numbers, rng):
    """Barber, Candes, Ramdas and Tibshirani (2021), equation 12."""
    X, y = numbers
    trees = GradientBoostingRegressor(n_estimators=10, random_state=0)
    model = Staged(trees, cv=FOLDS, keep="mean").fit(X, y)
    new = X[:6] + 0.01 * rng.standard_normal((6, X.shape[1]))
    lower, upper = [], []
    for fitted, held_out in FOLDS.split(X):
        copy = clone(trees).fit(X[fitted], y[fitted])
        for row in held_out:
            size = abs(y[row] - copy.predict(X[[row]])[0])
            lower.append(copy.predict(new) - size)
            upper.append(copy.predict(new) + size)
    rank = int(np.ceil(0.8 * 151))
    expected = np.stack(
        [np.sort(lower, axis=0)[150 - rank], np.sort(upper, axis=0)[rank - 1]], axis=1
    )
    found = model.predict_interval(new, coverage=0.8, method="cv+")
    assert_allclose(found, expected)
    several = model.predict_interval(new, coverage=[0.5, 0.8], method="cv+")
    assert_allclose(several[..., 1], expected)


def test_refusals(numbers):
    X, y = numbers
    trees = GradientBoostingRegressor(n_estimators=3, random_state=0)
    with pytest.raises(ValueError, match="keep='mean' averages over the copies"):
        Staged(trees, keep="mean").fit(X, y)
    with pytest.raises(ValueError, match="set keep='mean'"):
        Staged(trees, cv=FOLDS).fit(X, y).predict_interval(X, method="cv+")
    grouped = Staged(trees, cv=GroupKFold(3), keep="mean")
    grouped.fit(X, y, groups=np.arange(150) // 2)
    with pytest.raises(ValueError, match="treats rows one by one"):
        grouped.predict_interval(X, method="cv+")


@pytest.mark.parametrize("trees", [ExtraTreesRegressor, GradientBoostingRegressor])
def test_numbers_too_small_for_trees_are_said(trees, rng):
    X, y = rng.standard_normal((60, 3)), rng.standard_normal(60)
    staged = Staged(trees(n_estimators=3, random_state=0), cv=3)
    staged.fit(X, y)  # without a warning
    with pytest.warns(UserWarning, match="3 of the columns of X, first 0"):
        staged.fit(1e-8 * X, y)
    with pytest.warns(UserWarning, match="multiply y by a large number"):
        staged.fit(X, 1e-9 * y)
    Staged(HistGradientBoostingRegressor(max_iter=3), cv=3).fit(1e-8 * X, 1e-9 * y)
