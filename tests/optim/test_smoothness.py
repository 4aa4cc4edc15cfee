"""The smoothness of a problem: what it bounds, and that runs stay below it."""

import numpy as np
import pytest

from skacv.optim.arrays import design_of
from skacv.optim.constant import WithConstant
from skacv.optim.losses import (
    Gamma,
    Logistic,
    NegativeBinomial,
    Poisson,
    SquaredError,
    Tweedie,
)
from skacv.optim.penalties import L1
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import GradientDescent, Nesterov
from skacv.optim.trajectory import Phase

LOG_LINKS = [Poisson(), Gamma(), Tweedie(1.5)]


def columns(kind, rng):
    """Columns, linear predictors of the truth, and weights."""
    n, weights = 300, None
    X = rng.standard_normal((n, 8))
    if kind == "even":
        predictor = 0.4 * X[:, 0] - 0.4 * X[:, 1] + 0.5
    elif kind == "strong":
        predictor = 1.5 * X[:, 0] - 1.5 * X[:, 1]
    elif kind == "rare":
        predictor = 0.5 * X[:, 0] - 3
    elif kind == "large":
        predictor = 0.3 * X[:, 0] + 9
    elif kind == "heavy tails":
        X = rng.lognormal(0, 1.5, X.shape)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        predictor = 0.3 * X[:, 0] + 0.5
    elif kind == "not centred":
        X = rng.uniform(0, 10, (n, 5))
        predictor = 4 - 0.4 * X[:, 0]
    elif kind == "wide":
        X = rng.standard_normal((60, 200))
        predictor = 0.8 * X[:, 0]
    elif kind == "levels":
        X = np.eye(20)[rng.choice(20, n, p=[0.62] + 19 * [0.02])]
        predictor = X @ rng.normal(0, 1.2, 20)
    else:
        weights = np.maximum(rng.beta(0.5, 0.5, n), 0.003)
        predictor = 0.4 * X[:, 0] - 1.5
    return X, predictor, np.ones(len(X)) if weights is None else weights


KINDS = "even", "strong", "rare", "large", "heavy tails", "not centred", "wide"
KINDS += "levels", "exposures"


def problem_of(loss, kind, rng):
    """A problem whose rows have targets of a loss, and a run begins near the mean."""
    X, predictor, exposure = columns(kind, rng)
    mean = exposure * np.exp(predictor)
    if isinstance(loss, Poisson):
        y = rng.poisson(mean)
    elif isinstance(loss, Gamma):
        y = mean * rng.gamma(0.7, 1 / 0.7, len(mean))
    else:  # sums of as many amounts as a count says
        y = rng.gamma(np.maximum(rng.poisson(mean), 1e-9), 1.0)
        y = np.where(y < 1e-6, 0, y)
    y, weights = loss.without_offset(y.astype(float), np.ones(len(y)), np.log(exposure))
    y, weights = y[:, None], (weights / weights.sum())[:, None]
    start = np.zeros((X.shape[1] + 1, 1))
    start[-1] = loss.null_predictor(y, weights)
    return Problem(WithConstant(design_of(X)), y, weights, loss, start)


def top_curvature(problem, weights):
    """The largest eigenvalue of X'WX, dense; weights (n_rows,)."""
    X = problem.design.dot(np.eye(problem.design.shape[1]))
    return np.linalg.norm(np.sqrt(weights)[:, None] * X, ord=2) ** 2


@pytest.mark.parametrize("kind", ["even", "exposures"])
def test_rows_have_their_own_curvatures(kind, rng):
    problem = problem_of(Poisson(), kind, rng)
    y, weights = problem.target[:, 0], problem.row_weights[:, 0]
    mean, start = weights @ y, np.exp(problem.start[-1, 0])
    curvature = np.maximum(y, max(mean, start))
    expected = weights * np.minimum(2 * curvature, curvature.max())
    found = problem.smoothness
    assert found == pytest.approx(top_curvature(problem, expected))


@pytest.mark.parametrize("loss", [SquaredError(), Logistic()], ids=str)
def test_rows_of_equal_curvatures_share_one_bound(loss, rng):
    X, weights = rng.standard_normal((40, 3)), rng.uniform(0.5, 2, (40, 1)) / 40
    y = (rng.random((40, 1)) < 0.5).astype(float)
    problem = Problem(design_of(X), y, weights, loss)
    expected = loss.curvature_bound(y) * top_curvature(problem, weights[:, 0])
    assert problem.smoothness == pytest.approx(expected)


def test_bounded_curvatures_of_rows_bound_the_hessian(rng):
    X, weights = rng.standard_normal((50, 4)), np.full((50, 1), 0.02)
    y = rng.poisson(rng.gamma(0.5, 4, (50, 1))).astype(float)
    problem = Problem(design_of(X), y, weights, NegativeBinomial(0.5))
    scale = problem.loss.curvature_bound(y) * top_curvature(problem, weights[:, 0])
    assert problem.smoothness < scale
    for size in (0.1, 1.0, 10.0):
        predictor = size * rng.standard_normal(y.shape)
        curvature = weights * problem.loss.curvature(y, predictor)
        assert top_curvature(problem, curvature[:, 0]) <= problem.smoothness


def test_the_smoothness_does_not_grow_with_short_exposures(rng):
    """A policy in twelve parts is as one, whatever the month in which it claimed."""
    problem = problem_of(Poisson(), "even", rng)
    n, parts = len(problem.target), 12
    rows = np.repeat(np.arange(n), parts)
    counts = rng.multinomial(problem.target[:, 0].astype(int), [1 / parts] * parts)
    months = Problem(
        problem.design.rows(rows),
        parts * counts.reshape(-1, 1).astype(float),
        problem.row_weights[rows] / parts,
        problem.loss,
        problem.start,
    )
    assert months.target.max() > problem.target.max()
    # The parts without a claim have the curvature of the mean, and no longer none.
    assert months.smoothness <= 3 * problem.smoothness


@pytest.mark.parametrize("schedule", [GradientDescent, Nesterov])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOG_LINKS, ids=str)
def test_runs_stay_where_steps_are_stable(loss, kind, schedule, rng):
    """No iterate has a larger second derivative than the step allows."""
    problem = problem_of(loss, kind, rng)
    step = schedule(1 / problem.smoothness)
    recorded = run(problem, [Phase(L1(1e-4), step, 200)], problem.start[None])
    stable = step.largest_stable_step(1.0)
    for t in range(1, len(recorded.coef), 4):
        predictor = recorded.predictor[t]
        curvature = problem.row_weights * loss.curvature(problem.target, predictor)
        largest = top_curvature(problem, curvature[:, 0])
        assert largest <= stable * problem.smoothness
    if schedule is GradientDescent:
        objective = problem.objectives(recorded)
        assert (np.diff(objective) <= 1e-12 * objective[0]).all()
