"""Problems, runs on them, and leave-one-out of these by brute force."""

from dataclasses import replace

import numpy as np
from scipy.special import expit

from skacv.optim.arrays import design_of
from skacv.optim.families import except_last
from skacv.optim.losses import (
    Expectile,
    Gamma,
    Huber,
    Logistic,
    Multinomial,
    NegativeBinomial,
    Poisson,
    SmoothedHinge,
    SmoothedQuantile,
    SquaredError,
    SquaredHinge,
    Tweedie,
)
from skacv.optim.penalties import SquaredL2
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import StochasticGradient
from skacv.optim.trajectory import Phase
from skacv.risk.held_out_rows import LeaveOutRule, LeftOutRows
from skacv.risk.left_out.linearised import linearised_predictors
from tests.oracles import iterates_without


def targets_of(loss, signal, rng):
    """Targets that the loss is for, (n_rows, n_outputs)."""
    positive = rng.random(signal.shape) < expit(signal)
    drawn = {
        SquaredError: lambda: signal + rng.standard_normal(signal.shape),
        Huber: lambda: signal + rng.standard_t(2, signal.shape),
        Logistic: lambda: positive.astype(float),
        Multinomial: lambda: np.eye(3)[
            (signal * [1, 0, -1] + rng.gumbel(size=(len(signal), 3))).argmax(axis=1)
        ],
        SquaredHinge: lambda: 2.0 * positive - 1,
        SmoothedHinge: lambda: 2.0 * positive - 1,
        SmoothedQuantile: lambda: signal + rng.standard_t(2, signal.shape),
        Expectile: lambda: signal + rng.standard_t(2, signal.shape),
        Poisson: lambda: rng.poisson(np.exp(0.5 * signal)).astype(float),
        NegativeBinomial: lambda: rng.poisson(
            np.exp(0.5 * signal) * rng.gamma(2, 0.5, signal.shape)
        ).astype(float),
        Gamma: lambda: rng.gamma(2, np.exp(0.5 * signal) / 2),
        Tweedie: lambda: positive * rng.gamma(2, np.exp(0.5 * signal)),
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
    design = design_of(storage(X.astype(dtype)))
    return Problem(design, y.astype(dtype), weights.astype(dtype), loss)


def ran(problem, penalties, schedule, n_updates=40):
    curvature = max(penalty.curvature for penalty in penalties)
    step_size = 0.7 / (problem.smoothness + curvature)
    n_columns = problem.design.shape[1]
    penalties = [except_last(penalty, n_columns) for penalty in penalties]
    plan = [Phase(penalty, schedule(step_size), n_updates) for penalty in penalties]
    return ran_from(problem, plan)


def ran_from(problem, plan):
    shape = problem.design.shape[1], problem.target.shape[1]
    return run(problem, plan, np.zeros((1, *shape), problem.design.dtype))


MEAN, SUM = LeaveOutRule(), LeaveOutRule(is_sum=True)


def in_batches(step_size, n_rows, batch_size=20):
    return StochasticGradient(step_size, 0.5, n_rows, batch_size, seed=3)


def left_out_of(problem, rows, refit=MEAN, batches=False):
    return LeftOutRows.of(problem, rows, replace(refit, renormalises=not batches))


def found_by(problem, trajectory, left_out, block=10**6, correction=True):
    found = linearised_predictors(problem, trajectory, left_out, block, map, correction)
    return found[:2]


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
    """The leave-one-out loss of every iterate."""
    target = problem.target[left_out.rows]
    losses = [
        problem.loss.reported(target, predictor).mean() for predictor in predictors
    ]
    return np.array(losses)


def published(problem, trajectory, row, penalty_scale):
    """IACV as published, one replica at a time: H_{-i} and the gradient without i."""
    X, loss = problem.design.X, problem.loss
    n_rows, n_columns = X.shape
    n_outputs = problem.target.shape[1]
    weights = problem.row_weights.copy()
    weights[row] = 0
    path = [trajectory.coef[0]]
    for t, before, update, penalty in trajectory.updates():
        step = getattr(update, "update", update)  # of a pass, that on each batch
        if update.n_batches:
            starts = trajectory.coef[t]
            parts = [(b, weights * n_rows / len(b)) for b in update.batches]
        else:
            parts = [(np.arange(n_rows), weights / weights.sum())]
            starts = trajectory.coef[t] + step.lookahead * (
                trajectory.coef[t] - trajectory.coef[before]
            )
        coef = path[t] + step.momentum * (path[t] - path[before])
        point = path[t] + step.lookahead * (path[t] - path[before])
        for rows, share in parts:
            point = coef if update.n_batches else point
            target, predictor = problem.target[rows], X[rows] @ starts
            slope = share[rows] * loss.derivative(target, predictor)
            matrices = share[rows, :, None] * loss.curvature_matrix(target, predictor)
            hessian = np.einsum("ja,jkl,jb->akbl", X[rows], matrices, X[rows])
            size = n_columns * n_outputs
            moved = (point - starts).reshape(size)
            total = X[rows].T @ slope
            total += (hessian.reshape(size, size) @ moved).reshape(total.shape)
            total += penalty_scale * penalty.smooth_gradient(point)
            coef = penalty.prox(
                coef - step.step_size * total, step.step_size * penalty_scale
            )
            if update.n_batches:
                full = problem.row_weights[rows] * n_rows / len(rows)
                gradient = X[rows].T @ (full * loss.derivative(target, predictor))
                gradient += penalty.smooth_gradient(starts)
                starts = penalty.prox(
                    starts - step.step_size * gradient, step.step_size
                )
        path.append(coef)
    return np.array(path)


def logistic_run(shape, strength, schedule, n_updates, seed):
    """Luo, Ren & Barber's: five normal coefficients, no intercept, from zero."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape)
    coef = np.zeros((shape[1], 1))
    coef[:5, 0] = rng.standard_normal(5)
    y = (rng.random((shape[0], 1)) < expit(X @ coef)).astype(float)
    weights = np.full((shape[0], 1), 1 / shape[0])
    problem = Problem(design_of(X), y, weights, Logistic())
    trajectory = ran_from(problem, [Phase(SquaredL2(strength), schedule, n_updates)])
    return problem, trajectory
