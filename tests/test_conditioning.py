"""Runs that have hardly begun say so."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    IterativeRidge,
    TrajectoryEarlyStoppingCV,
    TrajectoryElasticNet,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryQuantileRegressor,
    TrajectoryTweedieRegressor,
)
from skacv.optim.arrays import design_of
from skacv.optim.contraction import Shares
from skacv.optim.penalties import Zero
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import (
    GradientDescent,
    HeavyBall,
    Nesterov,
    StochasticGradient,
)
from skacv.optim.trajectory import Phase
from tests.cases import covering, first

LINEAR = [
    TrajectoryLasso("path", max_iter=20),
    TrajectoryElasticNet(0.01),
    IterativeRidge(),
    IterativeRidge(solver="nesterov"),
    TrajectoryHuberRegressor(),
    TrajectoryLogisticRegression(),
    TrajectoryLogisticRegression(solver="sgd"),
    TrajectoryLinearSVC(),
    TrajectoryPoissonRegressor(),
    TrajectoryTweedieRegressor(),
    TrajectoryQuantileRegressor(),
]
CURVED = LINEAR[4:]
UNEVEN = "limits the step size"


def named(model):
    return f"{type(model).__name__}-{getattr(model, 'solver', '')}"


def drawn(rng):
    X = rng.standard_normal((200, 6))
    return X, (X[:, 0] + rng.standard_normal(200) > 0).astype(float)


def caught(model, X, y):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.fit(X, y)
    return [str(w.message) for w in found if issubclass(w.category, ConvergenceWarning)]


@pytest.mark.parametrize(
    "schedule",
    [
        GradientDescent(0.1),
        Nesterov(0.1),
        HeavyBall(0.1, 0.8),
        StochasticGradient(0.1, 0.5, 8, 3, 0),
    ],
)
@pytest.mark.parametrize("curvature", [1e-3, 1.0])
def test_covered_share_is_that_of_a_column(schedule, curvature):
    """All rows alike, so that every batch has the same curvature."""
    X = np.full((8, 1), np.sqrt(curvature))
    problem = Problem(design_of(X), 3 * X, np.full((8, 1), 1 / 8))
    phases = [Phase(Zero(), schedule, 15), Phase(Zero(), schedule, 10)]
    trajectory = run(problem, phases, np.zeros((1, 1, 1)))
    shares = trajectory.followed_by(Shares(np.array([curvature])))
    assert shares.current[0] == pytest.approx(trajectory.coef[-1, 0, 0] / 3)


@pytest.mark.parametrize("model", first(5, LINEAR), ids=named)
def test_a_column_that_holds_up_the_others_is_warned_of(model, rng):
    X, y = drawn(rng)
    X[:, 5] *= 1e4
    stopped = TrajectoryEarlyStoppingCV(model, criterion="loo", patience=5)
    for fitted in (model, stopped):  # once, however many stages there are
        assert sum(UNEVEN in message for message in caught(fitted, X, y)) == 1
    assert not caught(make_pipeline(StandardScaler(), model), X, y)


@covering(model=LINEAR, n_columns=[2, 3, 4])
def test_one_small_column_is_enough(model, n_columns, rng):
    """Where columns are few, half of them may be large; the intercept is no column."""
    X, y = drawn(rng)
    X = X[:, :n_columns]
    assert not caught(clone(model).set_params(max_iter=200), 2 * X, y)
    X[:, 1:] *= 1e4
    assert any(f"1 of the {n_columns}" in message for message in caught(model, X, y))


@pytest.mark.parametrize("model", CURVED, ids=named)
def test_columns_are_not_centred_for_curved_losses(model, rng):
    X, y = drawn(rng)
    X[:, 5] += 1e4
    assert UNEVEN in caught(model, X, y)[0]
    assert not caught(IterativeRidge(), X, y)


@pytest.mark.parametrize("value", [0.0, 0.1, 7.0, 1e5 / 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_constant_column_is_not_a_small_one(dtype, value, rng):
    """Centred, it is zero but for rounding."""
    X, y = drawn(rng)
    X[:, 5] = value
    for model in (IterativeRidge(), TrajectoryLasso("path", max_iter=5)):
        assert not caught(model, X.astype(dtype), y)


def test_many_updates_make_up_for_size(rng):
    X, y = drawn(rng)
    X[:, 5] *= 20
    assert caught(IterativeRidge(max_iter=20), X, y)
    assert not caught(IterativeRidge(max_iter=2000), X, y)


def test_a_model_of_nothing_but_zeros_is_not_held_up(rng):
    X, y = drawn(rng)
    X[:, 5] *= 1e4
    assert not caught(TrajectoryLasso(1e6), X, y)


def test_preconditioned_and_second_order_updates_are_not_held_up(rng):
    X, y = drawn(rng)
    X[:, 5] *= 100
    assert not caught(IterativeRidge(solver="eigenpro", n_components=2), X, y)
    assert not caught(TrajectoryLogisticRegression(solver="newton"), X, y)


def test_a_target_out_of_reach_is_warned_of(rng):
    X, y = drawn(rng)
    (message,) = caught(TrajectoryHuberRegressor(max_iter=50), X, y + 1e4)
    assert "worse than a constant" in message
    assert not caught(TrajectoryHuberRegressor(max_iter=50), X, y)
    noise = rng.standard_normal(200)  # a constant is the best there is
    assert not caught(TrajectoryHuberRegressor(alpha=10.0), X, noise)
    counts = rng.poisson(50, 200)
    assert "worse than" in caught(TrajectoryPoissonRegressor(max_iter=1), X, counts)[0]
    assert not caught(TrajectoryPoissonRegressor(), X, counts)
