"""Every schedule: its limits, and the largest step that it bears."""

from itertools import islice
from math import sqrt

import numpy as np
import pytest

from skacv.optim.arrays import design_of
from skacv.optim.penalties import L1, Zero
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import (
    SCHEDULES,
    GradientDescent,
    HeavyBall,
    Nesterov,
    StochasticGradient,
)
from skacv.optim.trajectory import Phase

NO_PENALTY = Zero()


def quadratic(rng, n=30, p=8):
    X = rng.standard_normal((n, p))
    y = X @ rng.standard_normal((p, 1)) + rng.standard_normal((n, 1))
    return Problem(design_of(X), y, np.full((n, 1), 1 / n))


def final(problem, schedule, n_updates, penalty=NO_PENALTY):
    start = np.zeros((1, problem.design.shape[1], 1))
    return run(problem, [Phase(penalty, schedule, n_updates)], start).coef[-1]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_steps_start_anew_each_time(schedule):
    some = schedule(0.1)
    assert list(islice(some.updates(), 5)) == list(islice(some.updates(), 5))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_first_update_has_nothing_to_extrapolate(schedule, rng):
    problem = quadratic(rng)
    np.testing.assert_allclose(
        final(problem, schedule(0.1), 1), final(problem, GradientDescent(0.1), 1)
    )


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("penalty", [Zero(), L1(0.2)], ids=str)
def test_converges_below_the_largest_stable_step(schedule, penalty, rng):
    problem = quadratic(rng)
    step_size = 0.95 * schedule(1.0).largest_stable_step(problem.smoothness)
    coef = final(problem, schedule(step_size), 3000, penalty)
    gradient = problem.gradient(problem.design.dot(coef))
    fixed = penalty.prox(coef - 0.1 * gradient, 0.1)
    np.testing.assert_allclose(fixed, coef, atol=1e-8)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_diverges_above_the_largest_stable_step(schedule, rng):
    problem = quadratic(rng)
    step_size = 1.05 * schedule(1.0).largest_stable_step(problem.smoothness)
    with pytest.raises(ValueError, match="largest stable step"):
        final(problem, schedule(step_size), 3000)


def test_heavy_ball_without_momentum_is_gradient_descent(rng):
    problem = quadratic(rng)
    np.testing.assert_allclose(
        final(problem, HeavyBall(0.1, 0.0), 20),
        final(problem, GradientDescent(0.1), 20),
    )


def test_nesterov_momentum_is_that_of_beck_and_teboulle():
    """y_1 = x_0, and y_{k+1} = x_k + (t_k - 1) / t_{k+1} (x_k - x_{k-1})."""
    momenta = [step.momentum for step in islice(Nesterov(1.0).updates(), 4)]
    t = [1.0]
    for _ in range(3):
        t.append((1 + sqrt(1 + 4 * t[-1] ** 2)) / 2)
    expected = [0, *((t[k] - 1) / t[k + 1] for k in range(3))]
    assert momenta == pytest.approx(expected)
    late = next(islice(Nesterov(1.0).updates(), 1000, None))
    assert 0.99 < late.momentum == late.lookahead < 1


def test_fista_is_faster_than_ista(rng):
    problem = quadratic(rng, 60, 50)
    step_size, penalty = 1 / problem.smoothness, L1(0.02)
    best = final(problem, Nesterov(step_size), 5000, penalty)

    def excess(schedule):
        coef = final(problem, schedule(step_size), 60, penalty)
        return np.linalg.norm(coef - best)

    assert excess(Nesterov) < 0.5 * excess(GradientDescent)


def test_batches_are_a_partition_drawn_anew_in_every_pass_and_the_same_by_seed():
    schedule = StochasticGradient(0.5, 0.5, n_rows=50, batch_size=16, seed=3)
    passes = list(islice(schedule.updates(), 4))
    for number, step in enumerate(passes, 1):
        assert step.step_size == pytest.approx(0.5 / sqrt(number))
        assert [len(batch) for batch in step.batches] == [13, 13, 12, 12]
        assert sorted(np.concatenate(step.batches)) == list(range(50))
    assert not np.array_equal(passes[0].batches[0], passes[1].batches[0])
    again = list(islice(schedule.updates(), 4))
    other = next(StochasticGradient(0.5, 0.5, 50, 16, seed=4).updates())
    for step, same in zip(passes, again):
        for batch, same_batch in zip(step.batches, same.batches):
            np.testing.assert_array_equal(batch, same_batch)
    assert not np.array_equal(passes[0].batches[0], other.batches[0])


def test_one_batch_of_all_rows_is_gradient_descent(rng):
    problem = quadratic(rng)
    schedule = StochasticGradient(0.1, 0.0, n_rows=30, batch_size=30, seed=0)
    np.testing.assert_allclose(
        final(problem, schedule, 20, L1(0.1)),
        final(problem, GradientDescent(0.1), 20, L1(0.1)),
        atol=1e-12,
    )


def test_batches_against_the_loop_by_hand(rng):
    """Weights count as in the whole sum, scaled to the share of the rows."""
    problem = quadratic(rng)
    weights = rng.random((30, 1))
    weights /= weights.sum()
    problem = Problem(problem.design, problem.target, weights)
    schedule = StochasticGradient(0.1, 1.0, n_rows=30, batch_size=7, seed=1)
    X, y, w = problem.design.X, problem.target[:, 0], weights[:, 0]
    b = np.zeros(8)
    for step in islice(schedule.updates(), 5):
        for rows in step.batches:
            slope = w[rows] * (X[rows] @ b - y[rows]) * 30 / len(rows)
            b -= step.step_size * X[rows].T @ slope
    np.testing.assert_allclose(final(problem, schedule, 5)[:, 0], b, rtol=1e-12)
