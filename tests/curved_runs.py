"""Runs of curved losses, and what their rows would be predicted, for several tests."""

import numpy as np
from scipy.special import expit

from skacv.optim.arrays import design_of
from skacv.optim.losses import (
    Expectile,
    Gamma,
    Huber,
    Logistic,
    LogLink,
    Multinomial,
    Poisson,
    PseudoHuber,
    SmoothedHinge,
    SmoothedQuantile,
    SquaredError,
    SquaredHinge,
    Tweedie,
)
from skacv.optim.penalties import L1, ElasticNet, SquaredL2, Zero
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import GradientDescent, HeavyBall, Nesterov
from skacv.optim.trajectory import Phase
from skacv.risk.held_out_rows import UNCENTRED
from skacv.risk.left_out.replicas import leave_folds_out
from skacv.risk.memory import curved_run
from skacv.risk.memory.curved_run import CurvedRun
from skacv.risk.memory.gradient_points import points_of

# Those that differ the most come first: several outputs at once, kinks, no bound.
LOSSES = [
    Logistic(),
    Multinomial(),
    Huber(1.0),
    Poisson(),
    SquaredHinge(),
    SmoothedHinge(0.5),
    PseudoHuber(),
    SquaredError(),
    Gamma(),
    Tweedie(1.5),
    Expectile(0.8),
    SmoothedQuantile(0.3),
]
NONE = Zero()
PENALTIES = [NONE, SquaredL2(0.05), L1(0.02), ElasticNet(0.03, 0.5)]
SCHEDULES = [GradientDescent, Nesterov, lambda step: HeavyBall(step, 0.6)]


def drawn(loss, n, p, rng, n_outputs=1, scale=1.0):
    """Rows and the targets that a loss is for."""
    X = rng.standard_normal((n, p)) * scale
    outputs = 3 if loss.is_coupled else n_outputs
    signal = X[:, :outputs] / scale * 1.5
    if isinstance(loss, Multinomial):
        return X, np.eye(3)[(signal + rng.gumbel(size=signal.shape)).argmax(axis=1)]
    if isinstance(loss, Poisson):
        return X, rng.poisson(np.exp(0.4 * signal)).astype(float)
    if isinstance(loss, LogLink):
        return X, rng.gamma(2, np.exp(0.4 * signal) / 2)
    if loss.labels == (0.0, 1.0):
        return X, (rng.random(signal.shape) < expit(signal)).astype(float)
    if isinstance(loss, (SquaredHinge, SmoothedHinge)):
        return X, np.sign(signal + rng.logistic(size=signal.shape))
    return X, signal + rng.standard_t(3, signal.shape)


def run_of(loss, X, y, penalty=NONE, schedule=GradientDescent, T=12, weights=None):
    weights = np.ones(len(y)) if weights is None else weights
    problem = Problem(design_of(X), y, (weights / weights.sum())[:, None], loss)
    top = problem.smoothness + penalty.curvature
    phases = [Phase(penalty, schedule(0.8 / top), T)]
    return problem, run(problem, phases, np.zeros((1, X.shape[1], y.shape[1])))


def held_out(problem, trajectory, scales, method="exact", rng=None):
    own = CurvedRun(points_of(problem, trajectory), scales)
    modes, solution = own.solved(method, rng)
    return own.held_out(modes, solution, slice(None), slice(None))


def read_any_loss(problem, trajectory, method, row_scales=False, rng=None):
    """The estimate of a run by the backend of any loss, the squared error too."""
    return curved_run.curved_risk(
        problem, trajectory, UNCENTRED, method, row_scales, rng
    )


def mean_losses(problem, predictors):
    """Average cost of every iterate."""
    return np.array([problem.mean_loss(each) for each in predictors])


def without_each_row(problem, trajectory, rows=None):
    """Predictors of rows by runs that never saw them, every row a replica."""
    n = len(problem.target)
    rows = range(n) if rows is None else rows
    folds = [(np.delete(np.arange(n), i), np.array([i])) for i in rows]
    found = paths_of_folds(problem, trajectory, folds, UNCENTRED)
    return np.concatenate(found, axis=1)


def paths_of_folds(problem, trajectory, folds, rule):
    """Predictors of every fold for its held-out rows, every fold a replica."""
    record = leave_folds_out(problem, trajectory, folds, rule)
    return record.paths(problem.design, [held_out for _, held_out in folds])
