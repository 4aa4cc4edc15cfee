"""What is kept of a run while it goes on: room for more iterates, and what is known."""

import numpy as np
import pytest
from sklearn.base import clone

from skacv import TrajectoryLasso, TrajectoryLogisticRegression
from skacv.optim.array_path import PathCache, with_room
from skacv.optim.arrays import design_of
from skacv.optim.fits import WeightedFits, Weights
from skacv.optim.losses import Huber, Logistic, Multinomial
from skacv.optim.problem import Problem
from tests.internals import folds_beside
from tests.runs import InParts


def test_room_is_made_in_twos_and_keeps_what_is_there(rng):
    array, n_longer = rng.standard_normal((1, 3)), 0
    rows = [array[0]]
    for n_used in range(1, 40):
        longer = with_room(array, n_used, n_used + 1)
        n_longer += longer is not array
        array = longer
        array[n_used] = rng.standard_normal(3)
        rows.append(array[n_used].copy())
    np.testing.assert_array_equal(array[:40], rows)
    assert n_longer == 6  # 2, 4, ..., 64 rows
    assert with_room(array, 40, 64) is array


def test_room_for_what_is_planned_is_made_once(rng):
    array = rng.standard_normal((3, 2))
    longer = with_room(array, 3, 5, n_planned=100)
    np.testing.assert_array_equal(longer[:3], array)
    assert len(longer) == 100
    assert with_room(longer, 5, 90, n_planned=100) is longer


def test_room_has_the_layout_of_the_array(rng):
    array = np.moveaxis(rng.standard_normal((3, 5, 2)), 2, 1)
    longer = with_room(array, 3, 4)
    np.testing.assert_array_equal(longer[:3], array)
    assert longer.strides[1] < longer.strides[2] < longer.strides[0]


@pytest.mark.parametrize("n_planned", [0, 5, 20])
def test_values_of_an_iterate_are_computed_once(n_planned):
    asked, so_far = [], PathCache(n_planned)

    def powers(iterates):
        asked.append(iterates)
        numbers = np.arange(iterates.start, iterates.stop)
        return numbers**2, np.stack([numbers, -numbers], axis=1)

    for n in (3, 3, 2, 7, 12, 4):
        squares, pairs = so_far.first("powers", n, powers)
        np.testing.assert_array_equal(squares, np.arange(n) ** 2)
        np.testing.assert_array_equal(pairs, np.outer(np.arange(n), [1, -1]))
    assert asked == [slice(0, 3), slice(3, 7), slice(7, 12)]
    assert len(so_far.first("others", 2, powers)[0]) == 2


@pytest.mark.parametrize(
    ("loss", "n_outputs"), [(Logistic(), 1), (Multinomial(), 3), (Huber(), 2)]
)
def test_slopes_in_blocks_are_those_of_all_rows(loss, n_outputs, rng, set_limits):
    n_rows, n_fits = 40_000, 4
    target = np.eye(n_outputs)[rng.integers(n_outputs, size=n_rows)]
    weights = np.full((n_rows, 1), 1 / n_rows)
    problem = Problem(
        design_of(rng.standard_normal((n_rows, 2))), target, weights, loss
    )
    side_by_side = WeightedFits(problem, Weights(rng.uniform(size=(n_rows, n_fits))))
    predictor = rng.standard_normal((n_fits * n_outputs, n_rows)).T
    predictor = predictor.reshape(n_rows, n_outputs, n_fits)
    expected = side_by_side.slopes(predictor)
    set_limits(LARGE_BYTES=10)
    found = side_by_side.slopes(predictor)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


def test_folds_of_a_large_run_are_the_same_beside_it_and_after_it(rng, set_limits):
    """Too large for a block of replicas, but no larger than the record of the run."""
    X = rng.standard_normal((60, 3))
    y = X[:, 0] + rng.standard_normal(60) > 0
    model = TrajectoryLogisticRegression(max_iter=60, tol=0, loo=False, cv=5)
    set_limits(MEMORY_BYTES=1)
    beside = InParts(clone(model), X, y)
    assert not beside.go_on(30)
    assert len(folds_beside(beside.run)) == 5
    assert beside.go_on(60)
    set_limits(WORTH_REPLICAS=0)
    after = InParts(clone(model), X, y)
    assert after.go_on(60)
    assert folds_beside(after.run) is None
    for name in ("cv_path_", "cv_fold_path_", "cv_prediction_path_", "train_path_"):
        found, expected = (getattr(parts.model, name) for parts in (beside, after))
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_held_out_predictions_of_earlier_stages_stay_as_they_are(rng):
    """They get the mean of the targets, which their record must not."""
    X = rng.standard_normal((40, 60))
    y = 100 + X[:, 0] + rng.standard_normal(40)
    params = {"alpha": 0.1, "tol": 0, "loo": False, "risk": False, "cv": 4}
    whole = TrajectoryLasso(max_iter=30, **params).fit(X, y)
    run, paths = clone(whole).begin(X, y), []
    for n_updates in (5, 12, 30):
        run.go_on(n_updates)
        paths.append(run.record()["cv"].prediction)
        expected = whole.cv_prediction_path_[: n_updates + 1]
        np.testing.assert_allclose(paths[-1], expected, rtol=1e-10)
    for path in paths:  # read again, after the last update
        expected = whole.cv_prediction_path_[: len(path)]
        np.testing.assert_allclose(path, expected, rtol=1e-10)
    record = run.record()
    np.testing.assert_allclose(record["cv"].path, whole.cv_path_, rtol=1e-10)
    np.testing.assert_allclose(record.train_path, whole.train_path_, rtol=1e-10)
