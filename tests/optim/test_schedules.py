"""Every schedule: what all have in common, and limits of some."""

from itertools import islice
from math import sqrt

import numpy as np
import pytest

from skacv.optim.arrays import design_of
from skacv.optim.penalties import L1, Zero
from skacv.optim.preconditioner import Preconditioner
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import (
    SCHEDULES,
    EigenPro,
    GradientDescent,
    HeavyBall,
    Nesterov,
    Newton,
    RandomBatches,
    SimplifiedNewton,
    StochasticGradient,
    fixed_batches,
)
from skacv.optim.trajectory import Phase
from skacv.optim.user import UserUpdate
from skacv.testing import check_schedule

NO_PENALTY = Zero()


def quadratic(rng, n=30, p=8):
    X = rng.standard_normal((n, p))
    y = X @ rng.standard_normal((p, 1)) + rng.standard_normal((n, 1))
    return Problem(design_of(X), y, np.full((n, 1), 1 / n))


def final(problem, schedule, n_updates, penalty=NO_PENALTY):
    start = np.zeros((1, problem.design.shape[1], 1))
    return run(problem, [Phase(penalty, schedule, n_updates)], start).coef[-1]


def momentum_by_hand(t, b1, b2, grad1, grad2):
    return b1 + 0.5 * (b1 - b2) - 0.2 * grad1


WHOLE = [
    *(kind(0.1) for kind in SCHEDULES),
    HeavyBall(0.1, momentum=0.5),
    Newton(1.0),
    SimplifiedNewton(1.0),
    StochasticGradient(0.1, 0.5, n_rows=30, batch_size=8, seed=0),
    RandomBatches(0.1, n_rows=30, batch_size=8, seed=0),
    UserUpdate(momentum_by_hand),
]


@pytest.mark.parametrize("schedule", WHOLE, ids=lambda each: type(each).__name__)
def test_a_schedule_is_what_it_says(schedule):
    check_schedule(schedule)


@pytest.mark.parametrize("batch_size", [None, 8])
def test_a_preconditioned_schedule_is_what_it_says(batch_size, rng):
    X = rng.standard_normal((30, 8))
    made = Preconditioner.of(design_of(X), np.arange(20), 3, rng)
    batches = fixed_batches(30, batch_size, 0)
    parts = [design_of(X[rows]) for rows in batches] or [design_of(X)]
    largest = max(made.top_eigenvalue(part, rng) for part in parts)
    check_schedule(EigenPro(0.1, made, largest, batches), X)


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
