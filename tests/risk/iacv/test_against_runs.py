"""Linearised leave-one-out against runs without each row."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse

from skacv.optim.blocks import blocks
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
from skacv.optim.penalties import L1, ElasticNet, SquaredL2, Zero
from skacv.optim.schedules import GradientDescent, HeavyBall, Nesterov
from skacv.optim.trajectory import Phase
from skacv.risk.left_out.linearised import Correction
from tests.cases import covering

from .runs import (
    MEAN,
    SUM,
    brute_force,
    found_by,
    in_batches,
    left_out_of,
    loo_path,
    problem_of,
    published,
    ran,
    ran_from,
)

SCHEDULES = [GradientDescent, Nesterov, HeavyBall]
PENALTIES = [Zero(), SquaredL2(0.05), L1(0.05), ElasticNet(0.1, 0.5)]


def path_error(problem, left_out, found, expected):
    """The largest relative error of the path over its iterates."""
    paths = [loo_path(problem, left_out, each) for each in (found, expected)]
    return np.abs(paths[0] / paths[1] - 1).max()


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
def test_correction_is_its_definition(loss, block_bytes, rng, set_globals):
    """Term by term, and bounded by its length; whatever is worked on together."""
    set_globals(blocks=lambda n, each, *_: blocks(n, each, budget=block_bytes))
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


def assert_errors_below(of_moved, of_published, problem, trajectory, left_out):
    """Estimated predictors, those without the correction, and those of runs.

    The errors without the correction are at most ``of_moved`` of what leaving a row
    out moves, and the corrected at most ``of_published`` of these.
    """
    expected, _ = brute_force(problem, trajectory, left_out)
    found, _ = found_by(problem, trajectory, left_out)
    without, _ = found_by(problem, trajectory, left_out, correction=False)
    published = rms(without - expected)
    assert published < of_moved * rms(trajectory.predictor - expected)
    assert rms(found - expected) < of_published * published
    return found, without, expected


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
    (Gamma(), 0.1, 0.05),
    (Tweedie(1.5), 0.1, 0.05),
    (NegativeBinomial(0.5), 0.1, 0.05),
    (Expectile(0.8), 0.25, 0.3),
    (SmoothedQuantile(0.3), 0.9, 0.7),
]


@covering(expected_errors=CURVED, schedule=[GradientDescent, Nesterov])
def test_curved_losses(expected_errors, schedule, rng):
    loss, of_moved, of_published = expected_errors
    problem = problem_of(loss, (80, 8), rng)
    trajectory = ran(problem, [SquaredL2(0.01)], schedule, n_updates=150)
    left_out = left_out_of(problem, np.arange(80))
    assert_errors_below(of_moved, of_published, problem, trajectory, left_out)


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
    found, without, expected = assert_errors_below(
        of_moved, of_published, problem, trajectory, left_out
    )
    # The first two passes are evaluated on their own batches: exact.
    np.testing.assert_allclose(found[:3], expected[:3], rtol=0, atol=1e-12)
    assert np.abs(without[:3] - expected[:3]).max() > 1e-6
