"""Linearised leave-one-out against runs without each row."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from skacv.optim.arrays import design_of
from skacv.optim.families import except_last
from skacv.optim.losses import (
    Huber,
    Logistic,
    Multinomial,
    Poisson,
    SmoothedHinge,
    SquaredError,
    SquaredHinge,
)
from skacv.optim.penalties import L1, ElasticNet, SquaredL2, Zero
from skacv.optim.phases import Phase
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import (
    GradientDescent,
    HeavyBall,
    Nesterov,
    StochasticGradient,
)
from skacv.optim.updates import NewtonStep, Pass, ProximalGradient
from skacv.risk.left_out import (
    choice,
    costs,
    linearised,
    methods,
    replayed,
    row_replicas,
)
from skacv.risk.left_out import correction as corrections
from skacv.risk.left_out.correction import Correction
from skacv.risk.left_out.linearised import leave_one_out
from skacv.risk.left_out.rows import LeftOutRows
from skacv.risk.refit import Refit
from tests.cases import covering, first
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
            (signal * [1, 0, -1] + rng.gumbel(size=(len(signal), 3))).argmax(axis=1)
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


MEAN, SUM = Refit(), Refit(is_sum=True)


def in_batches(step_size, n_rows, batch_size=20):
    return StochasticGradient(step_size, 0.5, n_rows, batch_size, seed=3)


def left_out_of(problem, rows, refit=MEAN, batches=False):
    return LeftOutRows.of(problem, rows, replace(refit, renormalises=not batches))


def found_by(problem, trajectory, left_out, block=10**6, correction=True):
    found = leave_one_out(problem, trajectory, left_out, block, map, correction)
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
    """The leave-one-out cost of every iterate."""
    target = problem.target[left_out.rows]
    costs = [problem.loss.cost(target, predictor).mean() for predictor in predictors]
    return np.array(costs)


def path_error(problem, left_out, found, expected):
    """The largest relative error of the path over its iterates."""
    paths = [loo_path(problem, left_out, each) for each in (found, expected)]
    return np.abs(paths[0] / paths[1] - 1).max()


# -------------------------------------------------------------- a quadratic loss


@covering(
    penalty=PENALTIES,
    schedule=SCHEDULES,
    shape=[(30, 8), (14, 40)],
    refit=[MEAN, SUM],
)
def test_exact_for_the_squared_error(penalty, schedule, shape, refit, rng):
    problem = problem_of(SquaredError(), shape, rng)
    trajectory = ran(problem, [penalty], schedule)
    left_out = left_out_of(problem, np.arange(0, shape[0], 2), refit)
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
    left_out = left_out_of(problem, np.arange(5, 30, 3), SUM)
    expected = brute_force(problem, trajectory, left_out)
    found = found_by(problem, trajectory, left_out)
    np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=1e-10)


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: type(p).__name__)
def test_exact_in_batches(penalty, rng):
    problem = problem_of(SquaredError(), (30, 12), rng)
    plan = [
        Phase(except_last(penalty, problem.design.shape[1]), in_batches(0.05, 30, 7), 6)
    ]
    trajectory = ran_from(problem, plan)
    left_out = left_out_of(problem, np.arange(0, 30, 4), batches=True)
    expected = brute_force(problem, trajectory, left_out)
    found = found_by(problem, trajectory, left_out)
    np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=1e-10)


# ------------------------------------------------------------------ curved losses


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


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("schedule", [*SCHEDULES, in_batches])
@pytest.mark.parametrize("loss", [Logistic(), Multinomial()])
def test_without_correction_it_is_the_published_estimate(loss, schedule, penalty, rng):
    problem = problem_of(loss, (24, 5), rng)
    batches = schedule is in_batches
    if batches:
        schedule = partial(in_batches, n_rows=24, batch_size=7)
    trajectory = ran(problem, [penalty], schedule, n_updates=10)
    rows = np.arange(0, 24, 5)
    left_out = left_out_of(problem, rows, SUM, batches)
    _, found = found_by(problem, trajectory, left_out, correction=False)
    for i, scale, deviation in zip(rows, left_out.penalty_scale, found):
        last = published(problem, trajectory, i, scale)[-1]
        np.testing.assert_allclose(
            deviation, last - trajectory.coef[-1], rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("block_bytes", [1, 1 << 21])
@pytest.mark.parametrize("loss", [Logistic(), Multinomial(), Poisson()])
def test_correction_is_its_definition(loss, block_bytes, rng, monkeypatch):
    """Term by term, and bounded by its length; whatever is worked on together."""
    monkeypatch.setattr(corrections, "SHIFT_BYTES", block_bytes)
    problem = problem_of(loss, (12, 4), rng)
    X, weights, target = problem.design.X, problem.row_weights, problem.target
    coef = 0.3 * rng.standard_normal((4, target.shape[1]))
    point = rng.standard_normal((4, target.shape[1], 3))
    place = np.array([5, -1, 0])
    predictor = X @ coef
    found = Correction.at(problem, None, predictor, place, point)
    slope = loss.derivative(target, predictor)
    curvature = loss.curvature_matrix(target, predictor)
    for r in range(3):
        shift = X @ point[:, :, r]
        missed = loss.derivative(target, predictor + shift) - slope
        missed -= np.einsum("jkl,jl->jk", curvature, shift)
        missed *= np.arange(12)[:, None] != place[r]
        value = X.T @ (weights * missed)
        np.testing.assert_allclose(found.value[:, :, r], value, rtol=0, atol=1e-13)
        norms = np.sqrt(weights.T @ X**2).T
        assert (np.abs(value) <= norms * found.length[r]).all()


def test_correction_grows_with_the_square_of_the_deviations(rng):
    problem = problem_of(Logistic(), (12, 4), rng)
    point = 0.1 * rng.standard_normal((4, 1, 3))
    point[:, :, 2] = 0
    place = np.arange(3)
    held = Correction.at(problem, None, np.zeros((12, 1)), place, point)
    np.testing.assert_allclose(held.scale(point)[:2], 1)
    np.testing.assert_allclose(held.scale(1.2 * point)[:2], 1.44)
    np.testing.assert_allclose(held.scale(100 * point)[:2], 2)
    assert held.scale(point + 1)[2] == 0


def rms(deviations):
    return np.sqrt(np.mean(deviations**2))


# Root mean square errors of the predictors, over rows and iterates, with 80 rows and
# 8 columns: the published of what leaving a row out moves, and the corrected of the
# published. Losses with kinks in their derivative gain less.
CURVED = [
    (Logistic(), 0.1, 0.02),
    (Multinomial(), 0.2, 0.03),
    (Poisson(), 0.1, 0.05),
    (Huber(), 0.15, 0.2),
    (SquaredHinge(), 0.25, 0.3),
    (SmoothedHinge(), 0.9, 0.7),
]


@covering(expected_errors=CURVED, schedule=[GradientDescent, Nesterov])
def test_curved_losses(expected_errors, schedule, rng):
    loss, of_moved, of_published = expected_errors
    problem = problem_of(loss, (80, 8), rng)
    trajectory = ran(problem, [SquaredL2(0.01)], schedule, n_updates=150)
    left_out = left_out_of(problem, np.arange(80))
    expected, _ = brute_force(problem, trajectory, left_out)
    found, _ = found_by(problem, trajectory, left_out)
    without, _ = found_by(problem, trajectory, left_out, correction=False)
    published = rms(without - expected)
    assert published < of_moved * rms(trajectory.predictor - expected)
    assert rms(found - expected) < of_published * published


@covering(
    # Poisson's steps are short where a mean is large: it settles later.
    until=[(Logistic(), 1500), (Multinomial(), 1500), (Poisson(), 3000)],
    schedule=[GradientDescent, Nesterov],
)
def test_exact_where_the_run_settles(until, schedule, rng):
    loss, n_updates = until
    problem = problem_of(loss, (60, 5), rng)
    trajectory = ran(problem, [SquaredL2(0.1)], schedule, n_updates=n_updates)
    left_out = left_out_of(problem, np.arange(0, 60, 6))
    _, expected = brute_force(problem, trajectory, left_out)
    _, found = found_by(problem, trajectory, left_out)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)
    _, without = found_by(problem, trajectory, left_out, correction=False)
    assert np.abs(without - expected).max() > 1e-5


def test_a_ringing_run_is_corrected_less(rng):
    """Heavy ball's deviations turn between evaluations, until they settle."""
    problem = problem_of(Logistic(), (80, 8), rng)
    trajectory = ran(problem, [SquaredL2(0.01)], HeavyBall, n_updates=500)
    left_out = left_out_of(problem, np.arange(80))
    expected, _ = brute_force(problem, trajectory, left_out)
    found, _ = found_by(problem, trajectory, left_out)
    without, _ = found_by(problem, trajectory, left_out, correction=False)
    corrected = path_error(problem, left_out, found, expected)
    published = path_error(problem, left_out, without, expected)
    # Where nothing rings, it is a hundredth.
    assert corrected < 0.5 * published
    assert rms(found - expected) < 0.4 * rms(without - expected)
    assert path_error(problem, left_out, found[-100:], expected[-100:]) < 1e-8


# The same in batches of 20, for 30 passes of which five are evaluated on batches; and
# the steps. Poisson's curvature has no bound, and errors grow with the step.
IN_BATCHES = [
    (Logistic(), 0.3, 0.02, 0.15),
    (Multinomial(), 0.3, 0.05, 0.15),
    (Poisson(), 0.1, 0.1, 0.3),
]


@pytest.mark.parametrize("penalty", [SquaredL2(0.01), L1(0.02)])
@pytest.mark.parametrize(
    ("loss", "step", "of_moved", "of_published"),
    IN_BATCHES,
    ids=lambda each: type(each).__name__,
)
def test_curved_losses_in_batches(loss, step, of_moved, of_published, penalty, rng):
    problem = problem_of(loss, (80, 8), rng, weighted=False)
    plan = [
        Phase(except_last(penalty, problem.design.shape[1]), in_batches(step, 80), 30)
    ]
    trajectory = ran_from(problem, plan)
    left_out = left_out_of(problem, np.arange(80), batches=True)
    expected, _ = brute_force(problem, trajectory, left_out)
    found, _ = found_by(problem, trajectory, left_out)
    without, _ = found_by(problem, trajectory, left_out, correction=False)
    published = rms(without - expected)
    assert published < of_moved * rms(trajectory.predictor - expected)
    assert rms(found - expected) < of_published * published
    # The first two passes are evaluated on their own batches: exact.
    np.testing.assert_allclose(found[:3], expected[:3], rtol=0, atol=1e-12)
    assert np.abs(without[:3] - expected[:3]).max() > 1e-6


# ---------------------------------------------------------------- what it costs


def counted(monkeypatch, owner, name, size):
    """What a function is called with, listed by ``size(arguments)``."""
    sizes, original = [], getattr(owner, name)

    def counting(*args):
        sizes.append(size(*args))
        return original(*args)

    monkeypatch.setattr(owner, name, counting)
    return sizes


def test_derivatives_of_all_replicas_are_evaluated_now_and_then(rng, monkeypatch):
    problem = problem_of(Logistic(), (30, 5), rng)
    trajectory = ran(problem, [SquaredL2(0.01), SquaredL2(0.1)], Nesterov, 60)
    left_out = left_out_of(problem, np.arange(30))
    sizes = counted(
        monkeypatch, Logistic, "derivative", lambda loss, target, at: at.shape
    )
    found_by(problem, trajectory, left_out)
    # 1 to 11, 13, 14, 15, 17, 19, 21, 23, 25, 28, 30, 34, 37, 41, 45, 49, 54, and 60
    # in either phase; and again when all columns join, at the first.
    assert sizes.count((30, 1, 30)) == 2 * 28 + 1
    sizes.clear()
    found_by(problem, trajectory, left_out, correction=False)
    assert set(sizes) == {(30, 1)}


def wide_run(loss, share, penalties, schedule, rng, storage=np.asarray):
    """Few columns of many; strengths in units of a share of the largest."""
    problem = problem_of(loss, (400, 150), rng, storage=storage)
    gradient = problem.gradient(np.zeros_like(problem.target))[:-1]
    penalties = [
        replace(penalty, strength=penalty.strength * share * np.abs(gradient).max())
        for penalty in penalties
    ]
    return problem, ran(problem, penalties, schedule, n_updates=25)


FEW_COLUMNS = [
    ([L1(1.0)], GradientDescent),
    ([L1(1.2), L1(1.0)], Nesterov),
    ([ElasticNet(1.3, 0.9)], HeavyBall),
    (
        [L1(1.8)],
        partial(StochasticGradient, decay=1, n_rows=400, batch_size=200, seed=0),
    ),
]


@covering(
    plan=FEW_COLUMNS,
    # Shares between the gradients of columns with no signal and of those with one.
    drawn=[(Logistic(), 0.25), (Multinomial(), 0.3), (Huber(), 0.25)],
    storage=[np.asarray, sparse.csr_matrix],
)
def test_few_columns_give_what_all_give(plan, drawn, storage, rng, monkeypatch):
    problem, trajectory = wide_run(*drawn, *plan, rng, storage)
    left_out = left_out_of(problem, np.arange(0, 400, 40), SUM)
    widths = counted(
        monkeypatch,
        linearised.Replicas,
        "_advance",
        lambda self, *rest: len(self.working),
    )
    few = found_by(problem, trajectory, left_out)
    n_worked_on = sum(widths)
    widths.clear()
    monkeypatch.setattr(linearised.Replicas, "_drop", drop_none)
    monkeypatch.setattr(linearised.Replicas, "_joining", all_others)
    every = found_by(problem, trajectory, left_out)
    assert set(widths) == {150}
    n_used = np.count_nonzero(few[1].any(axis=(0, 2)))
    assert n_used > 2  # the intercept, and columns
    assert n_worked_on < 0.6 * sum(widths)
    for each, wanted in zip(few, every):
        np.testing.assert_allclose(each, wanted, rtol=0, atol=1e-11)


def drop_none(self, coef, earlier):
    return np.arange(len(self.working))


def all_others(self, step, gradient):
    return np.setdiff1d(np.arange(len(gradient)), self.working.index)


def test_columns_that_join_have_the_correction_as_it_was(rng, monkeypatch):
    """Between evaluations, too: that of the update where it was evaluated."""
    monkeypatch.setattr(replayed, "GROWTH", 4.0)
    problem, trajectory = wide_run(Logistic(), 0.15, [L1(1.0)], GradientDescent, rng)
    left_out = left_out_of(problem, np.arange(0, 400, 40))
    widened = counted(
        monkeypatch, Correction, "widened", lambda self, *rest: self.length.max()
    )
    few = found_by(problem, trajectory, left_out)
    assert np.count_nonzero(widened) > 3
    monkeypatch.setattr(linearised.Replicas, "_joining", all_others)
    every = found_by(problem, trajectory, left_out)
    np.testing.assert_allclose(few[0], every[0], rtol=0, atol=1e-11)


def test_bound_of_a_column_that_meets_it(rng):
    """A column along the correction, in a batch: there the bound is tight."""
    problem = problem_of(Logistic(), (30, 4), rng)
    rows, place = np.arange(10, 20), np.array([3, -1])
    left_out = replace(
        left_out_of(problem, np.array([13, 2])),
        loss_scale=np.array([1.2, 1.5]),
        penalty_scale=np.array([0.9, 0.8]),
    )
    used, coef = np.array([0, 1, 3]), np.zeros((4, 1))
    point = rng.standard_normal((3, 1, 2))
    point *= [1, 8] / np.linalg.norm(point, axis=0)  # the second decides
    predictor = np.zeros((10, 1))
    part = replace(problem, design=problem.design.columns(used, float)).batch(rows)
    held = Correction.at(part, rows, predictor, place, point)
    shift = part.design.dot(point[:, :, 1])
    slope = expit(shift) - 0.5 - 0.25 * shift
    problem.design.X[:, 2] = 0
    problem.design.X[rows, 2] = slope[:, 0]
    value = problem.batch(rows).gradient(shift) - problem.batch(rows).gradient(
        0 * shift
    )
    value -= problem.batch(rows).design.t_dot(part.row_weights * 0.25 * shift)
    norms = np.sqrt(problem.row_weights.T @ problem.design.X**2)[0]
    sizes = norms, 0 * norms
    penalty = except_last(L1(1.0), 4)
    phase = Phase(penalty, GradientDescent(0.5), 1)
    trajectory = ran_from(problem, [replace(phase, n_updates=0)])
    replicas = linearised.Replicas(problem, trajectory, left_out, sizes)
    replicas._join(used)
    replicas.correction, replicas.own = held, np.zeros((1, 2))
    replicas.shift, replicas.length = 0 * point, 0.0
    replicas._correct(point)
    moved = 1.5 * np.abs(value[2, 0]) / 0.8
    for strength, joins in [(moved * (1 - 1e-6), True), (moved * (1 + 1e-6), False)]:
        step = replayed.ReplayedStep(
            penalty=except_last(L1(strength), 4),
            update=ProximalGradient(0.5),
            coef=coef,
            earlier=coef,
            following=coef,
            starts=True,
            ends=None,
        )
        assert (2 in replicas._joining(step, coef)) == joins


# ------------------------------------------------------- how the work is divided

RUNS = [
    ([SquaredL2(0.05)], Nesterov),
    ([L1(0.1), L1(0.05)], GradientDescent),
    ([SquaredL2(0.05)], partial(in_batches, n_rows=40, batch_size=15)),
]


@pytest.mark.parametrize("loss", [Logistic(), Multinomial()])
@pytest.mark.parametrize(("penalties", "schedule"), RUNS)
def test_blocks_agree_with_one(penalties, schedule, loss, rng, monkeypatch):
    problem = problem_of(loss, (40, 12), rng)
    trajectory = ran(problem, penalties, schedule)
    left_out = left_out_of(problem, np.array([3, 17, 4, 30, 39, 0, 8]))
    one = found_by(problem, trajectory, left_out)
    sizes = []

    def pickled(function, blocks):
        blocks = list(blocks)
        sizes.extend(len(block.rows) for block in blocks)
        return map(pickle.loads(pickle.dumps(function)), blocks)

    several = leave_one_out(problem, trajectory, left_out, 3, pickled)
    assert sizes == [3, 2, 2]
    for each, wanted in zip(several, one):
        np.testing.assert_allclose(each, wanted, rtol=0, atol=1e-12)
    monkeypatch.setattr(row_replicas, "BLOCK_BYTES", 1)
    singly = leave_one_out(problem, trajectory, left_out, 100, pickled)
    assert sizes[3:] == [1] * 7
    np.testing.assert_allclose(singly[0], one[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("loss", [Logistic(), Multinomial()])
@pytest.mark.parametrize(("penalties", "schedule"), RUNS)
def test_sparse_agrees_with_dense(penalties, schedule, loss, rng):
    problem = problem_of(loss, (40, 12), rng, share=0.4)
    trajectory = ran(problem, penalties, schedule)
    left_out = left_out_of(problem, np.arange(0, 40, 3))
    dense = found_by(problem, trajectory, left_out)
    design = design_of(sparse.csr_matrix(problem.design.X))
    stored = found_by(replace(problem, design=design), trajectory, left_out)
    for each, wanted in zip(stored, dense):
        np.testing.assert_allclose(each, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("loss", [Logistic(), Multinomial(), Huber()])
@pytest.mark.parametrize(("penalties", "schedule"), RUNS)
def test_single_precision(penalties, schedule, loss, rng):
    double = problem_of(loss, (40, 12), rng)
    single = replace(
        double,
        design=design_of(double.design.X.astype(np.float32)),
        target=double.target.astype(np.float32),
        row_weights=double.row_weights.astype(np.float32),
    )
    found = []
    for problem in (double, single):
        trajectory = ran(double, penalties, schedule)
        trajectory = ran_from(problem, trajectory.phases)
        left_out = left_out_of(problem, np.arange(0, 40, 3), SUM)
        found.append(found_by(problem, trajectory, left_out))
    for each, wanted in zip(found[1], found[0]):
        assert each.dtype == np.float32
        np.testing.assert_allclose(each, wanted, rtol=0, atol=2e-5)


@pytest.mark.parametrize("loss", [Logistic(), Multinomial()])
@pytest.mark.parametrize("shape", [(10, 40), (40, 10)])
def test_curvature_by_either_way(shape, loss, rng):
    """Many columns: by two passes over X. Few: by their matrix."""
    problem = problem_of(loss, shape, rng)
    predictor = rng.standard_normal(problem.target.shape)
    curvature = loss.curvature_matrix(problem.target, predictor)
    point = rng.standard_normal((shape[1], problem.target.shape[1], 6))
    found = linearised._curved(problem, curvature, point)
    X = problem.design.X
    shift = np.einsum("ja,akr->jkr", X, point)
    curvature_times = np.einsum(
        "j,jkl,jlr->jkr", problem.row_weights[:, 0], curvature, shift
    )
    np.testing.assert_allclose(
        found, np.einsum("ja,jkr->akr", X, curvature_times), rtol=0, atol=1e-12
    )


def test_several_targets_are_refused(rng):
    problem = problem_of(Logistic(), (20, 4), rng)
    problem = replace(problem, target=np.repeat(problem.target, 2, axis=1))
    trajectory = ran(problem, [Zero()], GradientDescent, n_updates=2)
    with pytest.raises(ValueError, match="one target at a time: got 2 targets"):
        found_by(problem, trajectory, left_out_of(problem, np.arange(3)))


# ------------------------------------------------------------ published settings


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


def by_replicas(problem, trajectory):
    """Every row left out, exactly: as many replicas as rows."""
    X, n_rows = problem.design.X, len(problem.target)
    others = (1 - np.eye(n_rows)) / (n_rows - 1)
    coef = before_coef = np.zeros((X.shape[1], n_rows))
    paths = [np.zeros(n_rows)]
    for t, before, step, penalty in trajectory.updates():
        if before == t:
            before_coef = coef
        point = coef + step.lookahead * (coef - before_coef)
        slope = expit(X @ point) - problem.target
        gradient = X.T @ (others * slope) + penalty.strength * point
        moved = coef + step.momentum * (coef - before_coef)
        before_coef, coef = coef, moved - step.step_size * gradient
        paths.append(np.einsum("ij,ji->i", X, coef))
    return np.array(paths)[:, :, None]


def errors(problem, trajectory, expected, correction=True):
    """Err_CV of every iterate: |CV~ - CV| / CV in log loss."""
    left_out = left_out_of(problem, np.arange(len(problem.target)))
    found, _ = found_by(problem, trajectory, left_out, correction=correction)
    paths = [loo_path(problem, left_out, each) for each in (found, expected)]
    return np.abs(paths[0] / paths[1] - 1)


def test_published_errors():
    """Err_CV of the order of 2.5e-4 at t=50; a hundred times less, corrected."""
    published, corrected = [], []
    for seed in range(5):
        schedule = GradientDescent(0.5)
        run_of = logistic_run((250, 20), 1e-6, schedule, 50, seed)
        expected = by_replicas(*run_of)
        published.append(errors(*run_of, expected, correction=False)[-1])
        corrected.append(errors(*run_of, expected).max())
    assert 1e-4 < np.median(published) < 1e-3
    assert max(corrected) < 1e-5


@pytest.mark.slow
def test_published_errors_late():
    """Err_CV of the order of 3e-3 at t=2000."""
    published, corrected = [], []
    for seed in range(5):
        run_of = logistic_run((250, 20), 1e-6, GradientDescent(0.5), 2000, seed)
        expected = by_replicas(*run_of)
        published.append(errors(*run_of, expected, correction=False)[-1])
        corrected.append(errors(*run_of, expected).max())
    assert 1e-3 < np.median(published) < 1e-2
    assert max(corrected) < 5e-5


def error_of_path(shape, strength, schedule, n_updates, seed):
    """The largest Err_CV, at a step of 1 / L."""
    problem, _ = logistic_run(shape, strength, schedule(0.1), 1, seed)
    step = schedule(1 / (problem.smoothness + strength))
    run_of = logistic_run(shape, strength, step, n_updates, seed)
    expected = by_replicas(*run_of)
    return [errors(*run_of, expected, each).max() for each in (True, False)]


@pytest.mark.slow
@pytest.mark.parametrize("schedule", [GradientDescent, Nesterov])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_path_of_many_rows(seed, schedule):
    corrected, published = error_of_path((1000, 20), 1e-6, schedule, 1000, seed)
    assert corrected < 1e-6
    assert published > 5e-5


@pytest.mark.parametrize("schedule", [GradientDescent, Nesterov])
def test_path_of_some_rows(schedule):
    """A shorter run of the same."""
    corrected, published = error_of_path((400, 20), 0.01, schedule, 100, seed=0)
    assert corrected < 1e-5
    assert published > 100 * corrected


@pytest.mark.parametrize("schedule", [GradientDescent, Nesterov])
@pytest.mark.parametrize("n_updates", [100, pytest.param(500, marks=pytest.mark.slow)])
def test_path_of_nearly_separable_rows(n_updates, schedule):
    """Half as many columns as rows, and little penalty: the worst case."""
    corrected, published = error_of_path((200, 100), 0.01, schedule, n_updates, seed=0)
    assert corrected < 1e-3
    assert published > 1e-2


# ------------------------------------------------- rows that linearising is bad for


def separable_run(seed, schedule=Nesterov):
    """Nearly separable: rows that are left out change what is fitted to them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((150, 40))
    label = (X[:, :3].sum(axis=1) + 0.3 * rng.standard_normal(150) > 0).astype(float)
    weights = np.full((150, 1), 1 / 150)
    problem = Problem(design_of(X), label[:, None], weights, Logistic())
    penalty = SquaredL2(1e-5)
    phase = Phase(penalty, schedule(1 / (problem.smoothness + 1e-5)), 250)
    return problem, run(problem, [phase], np.zeros((1, 40, 1)))


@pytest.mark.parametrize("seed", first(1, range(3)))
def test_rows_that_linearising_is_bad_for_are_found_and_run_exactly(seed, monkeypatch):
    problem, trajectory = separable_run(seed)
    rows = np.arange(150)
    left_out = left_out_of(problem, rows)
    exact, last = brute_force(problem, trajectory, left_out)
    linear, _, error_estimate = leave_one_out(problem, trajectory, left_out, 150, map)
    inaccurate = error_estimate > methods.LARGEST_ERROR
    assert 0 < inaccurate.sum() < 100
    error = np.abs(linear - exact).max(axis=(0, 2))
    # What is kept is as good as its estimated error says, and what is not is not.
    assert error[~inaccurate].max() < methods.LARGEST_ERROR
    assert error[inaccurate].max() > 10 * methods.LARGEST_ERROR
    monkeypatch.setattr(costs, "WORTH_LINEARISING", 0.0)
    params = {"refit": MEAN}
    found = choice.leave_one_out(problem, trajectory, rows, **params)
    np.testing.assert_allclose(found[:, inaccurate], exact[:, inaccurate], atol=1e-8)
    np.testing.assert_array_equal(found[:, ~inaccurate], linear[:, ~inaccurate])
    coef, _ = choice.coefficients_without(problem, trajectory, rows, **params)
    expected = trajectory.coef[-1, :, 0] + last[inaccurate, :, 0]
    np.testing.assert_allclose(coef[inaccurate], expected, atol=1e-8)


def test_no_row_is_inaccurate_where_linearising_is_good():
    problem, trajectory = logistic_run((300, 8), 1e-3, GradientDescent(0.5), 200, 0)
    left_out = left_out_of(problem, np.arange(300))
    *_, error_estimate = leave_one_out(problem, trajectory, left_out, 300, map)
    assert 0 < error_estimate.max() < methods.LARGEST_ERROR


@pytest.mark.parametrize(
    ("shape", "lengths", "n_batches", "newton", "correction", "expected"),
    [
        ((100, 100), [500], 0, False, True, 500),  # as many columns as rows
        ((10_000, 20), [10], 0, True, True, 10),  # Newton's method
        # Corrected nearly throughout.
        ((1000, 20), [20] * 20, 0, False, True, 400),
        ((1000, 20), [1000], 0, False, True, 57),
        # Published: never.
        ((1000, 20), [1000], 0, False, False, 0),
        # Small batches have as many Hessians.
        ((1000, 20), [40], 32, False, True, 40),
        ((1000, 20), [40], 4, False, True, 6),
    ],
)
def test_what_is_left_out_exactly(
    shape, lengths, n_batches, newton, correction, expected
):
    step = ProximalGradient(1.0)
    update = Pass(step, ((),) * n_batches) if n_batches else step
    update = NewtonStep(1.0) if newton else update
    rules = [(update, Zero())] * len(lengths)
    run = costs.Workload(
        shape, lengths, rules, is_quadratic=False, correction=correction
    )
    method = methods.method_for(run)
    exact = run.n_updates if method is methods.Replicated else run.n_corrected()
    assert exact == expected
