"""Linearised leave-one-out against runs without each row."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from skacv.optim.design import Design
from skacv.optim.losses import (
    Huber,
    Logistic,
    Multinomial,
    Poisson,
    SmoothedHinge,
    SquaredError,
    SquaredHinge,
)
from skacv.optim.penalties import L1, ElasticNet, ExceptLast, SquaredL2, Zero
from skacv.optim.schedules import (
    GradientDescent,
    HeavyBall,
    Nesterov,
    StochasticGradient,
)
from skacv.optim.trajectory import Phase, Problem, run
from skacv.risk import iacv, iacv_correction
from skacv.risk.held_out import LeftOutRows
from skacv.risk.iacv import leave_one_out
from tests.oracles import iterates_without

SCHEDULES = [GradientDescent, Nesterov, HeavyBall]
PENALTIES = [Zero(), SquaredL2(0.05), L1(0.05), ElasticNet(0.1, 0.5)]


def targets_of(loss, signal, rng):
    """Targets that the loss is for, (n_rows, n_outputs)."""
    positive = rng.random(signal.shape) < expit(signal)
    drawn = {
        SquaredError: lambda: signal + rng.standard_normal(signal.shape),
        Huber: lambda: signal + rng.standard_t(2, signal.shape),
        Logistic: lambda: positive.astype(float),
        Multinomial: lambda: np.eye(3)[
            (signal + rng.gumbel(size=(len(signal), 3)) * [0.7, 1, 1.3]).argmax(axis=1)
        ],
        SquaredHinge: lambda: 2.0 * positive - 1,
        SmoothedHinge: lambda: 2.0 * positive - 1,
        Poisson: lambda: rng.poisson(np.exp(0.5 * signal)).astype(float),
    }
    return drawn[type(loss)]()


def problem_of(
    loss, shape, rng, weighted=True, storage=np.asarray, dtype=float, share=1.0
):
    """With an intercept's column of ones, the last."""
    X = rng.standard_normal(shape) * (rng.random(shape) < share)
    X[:, -1] = 1
    coef = np.zeros((shape[1], 1))
    coef[:3, 0] = 1, -1, 0.5
    y = targets_of(loss, X @ coef, rng)
    weights = np.ones((shape[0], 1))
    if weighted:
        weights = rng.uniform(0.5, 2, (shape[0], 1))
    weights /= weights.sum()
    design = Design(storage(X.astype(dtype)))
    return Problem(design, y.astype(dtype), weights.astype(dtype), loss)


def ran(problem, penalties, schedule, n_updates=40):
    curvature = max(penalty.curvature for penalty in penalties)
    step_size = 0.7 / (problem.smoothness + curvature)
    penalties = [ExceptLast(penalty) for penalty in penalties]
    plan = [Phase(penalty, schedule(step_size), n_updates) for penalty in penalties]
    return ran_from(problem, plan)


def ran_from(problem, plan):
    shape = problem.design.shape[1], problem.target.shape[1]
    return run(problem, plan, np.zeros((1, *shape), problem.design.dtype))


def ones(share):
    return np.ones_like(share)


def growing(share):
    return 1 / share


def in_batches(step_size, n_rows, batch_size=20):
    return StochasticGradient(step_size, 0.5, n_rows, batch_size, seed=3)


def left_out_of(problem, rows, penalty_scale=ones, batches=False):
    left_out = LeftOutRows.of(problem, rows, False, penalty_scale)
    if batches:
        unit = np.ones(len(rows))
        return replace(left_out, loss_scale=unit, penalty_scale=unit)
    return left_out


def found_by(problem, trajectory, left_out, block=10**6, correction=True):
    return leave_one_out(problem, trajectory, left_out, block, map, correction)


def brute_force(problem, trajectory, left_out):
    """Predictors and deviations, from runs without each row."""
    predictors, deviations = [], []
    for i, scale in zip(left_out.rows, left_out.penalty_scale):
        path = iterates_without(problem, trajectory, i, scale)
        row = problem.design.rows([i])
        predictors.append([row.dot(coef)[0] for coef in path])
        deviations.append(path[-1] - trajectory.coef[-1])
    return np.stack(predictors, axis=1), np.array(deviations)


def loo_path(problem, left_out, predictors):
    """The leave-one-out cost of every iterate."""
    target = problem.target[left_out.rows]
    costs = [problem.loss.cost(target, predictor).mean() for predictor in predictors]
    return np.array(costs)


def path_error(problem, left_out, found, expected):
    """The largest relative error of the path over its iterates."""
    paths = [loo_path(problem, left_out, each) for each in (found, expected)]
    return np.abs(paths[0] / paths[1] - 1).max()


# -------------------------------------------------------------- a quadratic loss


@pytest.mark.parametrize("penalty_scale", [ones, growing])
@pytest.mark.parametrize("shape", [(30, 8), (14, 40)])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: type(p).__name__)
def test_exact_for_the_squared_error(penalty, schedule, shape, penalty_scale, rng):
    problem = problem_of(SquaredError(), shape, rng)
    trajectory = ran(problem, [penalty], schedule)
    left_out = left_out_of(problem, np.arange(0, shape[0], 2), penalty_scale)
    expected = brute_force(problem, trajectory, left_out)
    for correction in (True, False):
        found = found_by(problem, trajectory, left_out, correction=correction)
        for each, wanted in zip(found, expected):
            np.testing.assert_allclose(each, wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_exact_over_two_phases(schedule, storage, rng):
    """Momentum restarts, the penalty changes."""
    problem = problem_of(SquaredError(), (30, 12), rng, storage=storage, share=0.5)
    trajectory = ran(problem, [L1(0.2), ElasticNet(0.02, 0.7)], schedule)
    left_out = left_out_of(problem, np.arange(5, 30, 3), growing)
    expected = brute_force(problem, trajectory, left_out)
    found = found_by(problem, trajectory, left_out)
    np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=1e-10)


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: type(p).__name__)
def test_exact_in_batches(penalty, rng):
    problem = problem_of(SquaredError(), (30, 12), rng)
    plan = [Phase(ExceptLast(penalty), in_batches(0.05, 30, 7), 6)]
    trajectory = ran_from(problem, plan)
    left_out = left_out_of(problem, np.arange(0, 30, 4), batches=True)
    expected = brute_force(problem, trajectory, left_out)
    found = found_by(problem, trajectory, left_out)
    np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=1e-10)


# ------------------------------------------------------------------ curved losses

# The largest relative error of the path, 80 x 8: published, and corrected.
CURVED = [
    (Logistic(), 2e-2, 1e-3),
    (Multinomial(), 2e-2, 1e-3),
    (Huber(), 2e-2, 2e-3),
    (SquaredHinge(), 2e-2, 2e-3),
    (SmoothedHinge(), 2e-2, 2e-3),
    (Poisson(), 2e-2, 1e-3),
]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("loss", "published", "corrected"), CURVED, ids=lambda each: type(each).__name__
)
def test_curved_losses(loss, published, corrected, schedule, rng):
    problem = problem_of(loss, (80, 8), rng)
    trajectory = ran(problem, [SquaredL2(0.01)], schedule, n_updates=150)
    left_out = left_out_of(problem, np.arange(80))
    expected, _ = brute_force(problem, trajectory, left_out)
    error = partial(path_error, problem, left_out, expected=expected)
    with_correction, _ = found_by(problem, trajectory, left_out)
    without, _ = found_by(problem, trajectory, left_out, correction=False)
    print(type(loss).__name__, schedule.__name__, error(without), error(with_correction))
