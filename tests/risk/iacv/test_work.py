"""What linearised leave-one-out costs, and how its work is divided."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from skacv.optim.arrays import design_of
from skacv.optim.families import except_last
from skacv.optim.losses import Huber, Logistic, Multinomial
from skacv.optim.penalties import L1, ElasticNet, SquaredL2, Zero
from skacv.optim.schedules import (
    GradientDescent,
    HeavyBall,
    Nesterov,
    StochasticGradient,
)
from skacv.optim.trajectory import Phase
from skacv.optim.updates import ProximalGradient
from skacv.risk.left_out import linearised, row_replicas
from skacv.risk.left_out.linearised import (
    Correction,
    LinearisedCurvature,
    linearised_predictors,
)
from skacv.risk.left_out.row_replicas import RowReplicas
from tests.cases import covering

from .runs import SUM, found_by, in_batches, left_out_of, problem_of, ran, ran_from

# ---------------------------------------------------------------- what it costs


def test_derivatives_of_all_replicas_are_evaluated_now_and_then(rng, note_calls):
    problem = problem_of(Logistic(), (30, 5), rng)
    trajectory = ran(problem, [SquaredL2(0.01), SquaredL2(0.1)], Nesterov, 60)
    left_out = left_out_of(problem, np.arange(30))
    sizes = note_calls(Logistic, "derivative", size=lambda loss, target, at: at.shape)
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
def test_few_columns_give_what_all_give(
    plan, drawn, storage, rng, monkeypatch, note_calls
):
    problem, trajectory = wide_run(*drawn, *plan, rng, storage)
    left_out = left_out_of(problem, np.arange(0, 400, 40), SUM)
    widths = note_calls(
        ProximalGradient,
        "apply",
        size=lambda self, current, *rest: len(current),
    )
    few = found_by(problem, trajectory, left_out)
    n_worked_on = sum(widths)
    widths.clear()
    monkeypatch.setattr(RowReplicas, "drop", drop_none)
    monkeypatch.setattr(RowReplicas, "_joining", all_others)
    every = found_by(problem, trajectory, left_out)
    assert set(widths) == {150}
    n_used = np.count_nonzero(few[1].any(axis=(0, 2)))
    assert n_used > 2  # the intercept, and columns
    assert n_worked_on < 0.6 * sum(widths)
    for each, wanted in zip(few, every):
        np.testing.assert_allclose(each, wanted, rtol=0, atol=1e-11)


def drop_none(self, step):
    return np.arange(len(self.working))


def all_others(self, step, gradient):
    return np.setdiff1d(np.arange(len(gradient)), self.working.index)


def test_columns_that_join_have_the_correction_as_it_was(
    rng, monkeypatch, set_limits, note_calls
):
    """Between evaluations, too: that of the update where it was evaluated."""
    set_limits(CORRECTION_GROWTH=4.0)
    problem, trajectory = wide_run(Logistic(), 0.15, [L1(1.0)], GradientDescent, rng)
    left_out = left_out_of(problem, np.arange(0, 400, 40))
    widened = note_calls(
        LinearisedCurvature,
        "extend",
        size=lambda self, *rest: self.correction.length.max(),
    )
    few = found_by(problem, trajectory, left_out)
    assert np.count_nonzero(widened) > 3
    monkeypatch.setattr(RowReplicas, "_joining", all_others)
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
    curvature_of = partial(LinearisedCurvature, problem, sizes)
    replicas = RowReplicas(problem.design, left_out, trajectory, curvature_of)
    curvature = replicas.curvature
    replicas._join(used)
    curvature.correction, curvature.row_slope = held, np.zeros((1, 2))
    curvature._point = rows, np.zeros((10, 1, 1)), point, 0 * point
    moved = 1.5 * np.abs(value[2, 0]) / 0.8
    for strength, joins in [(moved * (1 - 1e-6), True), (moved * (1 + 1e-6), False)]:
        step = row_replicas.ReplayedStep(
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
def test_blocks_agree_with_one(penalties, schedule, loss, rng, set_limits):
    problem = problem_of(loss, (40, 12), rng)
    trajectory = ran(problem, penalties, schedule)
    left_out = left_out_of(problem, np.array([3, 17, 4, 30, 39, 0, 8]))
    one = found_by(problem, trajectory, left_out)
    sizes = []

    def pickled(function, blocks):
        blocks = list(blocks)
        sizes.extend(len(block.rows) for block in blocks)
        return map(pickle.loads(pickle.dumps(function)), blocks)

    several = linearised_predictors(problem, trajectory, left_out, 3, pickled)
    assert sizes == [3, 2, 2]
    for each, wanted in zip(several, one):
        np.testing.assert_allclose(each, wanted, rtol=0, atol=1e-12)
    set_limits(MEMORY_BYTES=1)
    singly = linearised_predictors(problem, trajectory, left_out, 100, pickled)
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
    single = replace(double, design=design_of(double.design.X.astype(np.float32)))
    found = []
    for problem in (double, single):
        trajectory = ran(double, penalties, schedule)
        trajectory = ran_from(problem, trajectory.phases)
        left_out = left_out_of(problem, np.arange(0, 40, 3), SUM)
        found.append(found_by(problem, trajectory, left_out))
    for each, wanted in zip(found[1], found[0]):
        np.testing.assert_allclose(each, wanted, rtol=0, atol=2e-5)


@pytest.mark.parametrize("loss", [Logistic(), Multinomial()])
@pytest.mark.parametrize("shape", [(10, 40), (40, 10)])
def test_curvature_in_two_passes_or_by_a_matrix(shape, loss, rng):
    """Many columns: by two passes over X. Few: by their matrix."""
    problem = problem_of(loss, shape, rng)
    predictor = rng.standard_normal(problem.target.shape)
    curvature = loss.curvature_matrix(problem.target, predictor)
    point = rng.standard_normal((shape[1], problem.target.shape[1], 6))
    found = linearised.hessian_times(problem, curvature, point)
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
