"""Random folds by default: as many as have rows enough to choose by."""

import numpy as np
import pytest

from skacv import IterativeRidge, TrajectoryEarlyStoppingCV, TrajectoryLasso
from skacv._estimator.estimates.folds import (
    LARGEST_SPREAD,
    ROWS_TO_CHOOSE_BY,
    ShuffledFolds,
)

ENOUGH = 5 * ROWS_TO_CHOOSE_BY


def n_folds(y, groups=None, stratified=False, rows=None):
    folds = ShuffledFolds(stratified, rows, enough=ROWS_TO_CHOOSE_BY)
    if groups is not None:
        folds = folds.with_groups()
    splits = list(folds.split(None, y, groups))
    for fitted, held_out in splits:
        assert not np.intersect1d(fitted, held_out).size
        expected = np.arange(len(y)) if rows is None else rows
        np.testing.assert_array_equal(np.union1d(fitted, held_out), expected)
    return len(splits)


def test_the_number_of_rows_decides(rng):
    y = rng.standard_normal(ENOUGH + 10)
    assert n_folds(y) == 1
    assert n_folds(y[: ENOUGH - 10]) == 3
    assert n_folds(y[: ENOUGH // 3 + 10]) == 3
    assert n_folds(y[: ENOUGH // 3 - 10]) == 4
    assert n_folds(y[: ENOUGH // 4 + 10]) == 4
    assert n_folds(y[: ENOUGH // 4 - 10]) == 5
    rows = np.arange(ENOUGH // 4 - 10)
    assert n_folds(y, rows=rows) == 5


def test_heavy_tails_need_more_rows(rng):
    y = rng.standard_normal(ENOUGH) ** 3
    squares = (y - y.mean()) ** 2
    n_times = squares.var() / squares.mean() ** 2 / LARGEST_SPREAD
    assert n_times > 3
    assert n_folds(np.tile(y, int(n_times))) == 3
    assert n_folds(np.tile(y, int(n_times) + 1)) == 1


def test_a_rare_class_needs_more_rows():
    y = np.zeros(ENOUGH + 10, dtype=int)
    assert n_folds(y + (np.arange(len(y)) % 2), stratified=True) == 1
    rare = (np.arange(len(y)) % 50 == 0).astype(int)
    assert n_folds(rare, stratified=True) == 5
    # Squared deviations of the indicators of both classes have this relative variance.
    deviations = np.where(rare, 0.98, 0.02) ** 2
    n_times = int(deviations.var() / deviations.mean() ** 2 / LARGEST_SPREAD)
    assert n_folds(np.tile(rare, n_times), stratified=True) == 3
    assert n_folds(np.tile(rare, n_times + 1), stratified=True) == 1


def test_many_classes_need_fewer_rows():
    for n_classes in (2, 8, 30):
        n_rows = int(ENOUGH / max(1, np.log(n_classes)))
        y = np.arange(2 * ENOUGH) % n_classes
        assert n_folds(y[: int(0.95 * n_rows)], stratified=True) == 3
        assert n_folds(y[: int(1.05 * n_rows)], stratified=True) == 1


@pytest.mark.slow
def test_groups_count_as_one():
    y = np.arange(ENOUGH + 10) % 7 / 7
    assert n_folds(y, groups=np.arange(len(y)) // 2) == 3
    assert n_folds(y, groups=np.arange(len(y))) == 1


def test_several_targets_and_labels(rng):
    assert n_folds(rng.standard_normal((ENOUGH + 10, 2))) == 1
    assert n_folds(rng.integers(2, size=(ENOUGH + 10, 3)), stratified=True) == 1


@pytest.mark.parametrize("cv", [5, 2])
def test_a_number_of_folds_is_obeyed(cv, set_limits, rng):
    set_limits(ROWS_TO_CHOOSE_BY=2)
    X = rng.standard_normal((60, 3))
    data = X, X[:, 0] + rng.uniform(size=60)
    lasso = TrajectoryLasso("path", max_iter=5)
    stopped = TrajectoryEarlyStoppingCV(lasso, cv=cv, criterion="cv").fit(*data)
    assert len(stopped.estimator_.cv_indices_) == cv
    by_default = TrajectoryEarlyStoppingCV(lasso, criterion="cv").fit(*data)
    assert len(by_default.estimator_.cv_indices_) == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_one_fold_of_tall_data_is_that_of_all_rows(weighted, rng):
    """A run on rows with the same moments, and errors over the rows held out."""
    X = rng.standard_normal((3000, 4))
    y = X @ [1.0, -1.0, 0.5, 0.0] + rng.standard_normal(3000)
    weights = rng.uniform(0.5, 2, 3000) if weighted else np.ones(3000)
    fold = np.arange(1000, 3000), np.arange(1000)
    settings = {"max_iter": 6, "tol": 0.0, "risk": False, "loo": False}
    ridge = IterativeRidge(0.0, cv=[fold], **settings)
    model = ridge.fit(X, y, sample_weight=weights)
    alone = IterativeRidge(0.0, step_size=model.step_size_, **settings)
    alone.fit(X[1000:], y[1000:], sample_weight=weights[1000:])
    losses = (np.array([*alone.staged_predict(X[:1000])]) - y[:1000]) ** 2
    share = weights[:1000] / weights[:1000].sum()
    mean = losses @ share
    np.testing.assert_allclose(model.cv_path_, mean, rtol=1e-9)
    np.testing.assert_array_equal(model.cv_fold_path_[:, 0], model.cv_path_)
    error = np.sqrt(
        ((losses - mean[:, None]) * share) ** 2 @ np.ones(1000) * 1000 / 999
    )
    np.testing.assert_allclose(model.cv_se_path_, error, rtol=1e-9)
