"""Rows that linearising is bad for are found, and run exactly."""

import numpy as np
import pytest

from skacv.optim.arrays import design_of
from skacv.optim.losses import Logistic
from skacv.optim.penalties import SquaredL2, Zero
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import GradientDescent, Nesterov
from skacv.optim.trajectory import Phase
from skacv.optim.updates import NewtonStep, Pass, ProximalGradient
from skacv.risk import cost
from skacv.risk.left_out import methods
from skacv.risk.left_out.linearised import linearised_predictors
from tests.cases import first

from .runs import MEAN, brute_force, left_out_of, logistic_run


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
def test_rows_that_linearising_is_bad_for_are_found_and_run_exactly(seed, set_limits):
    problem, trajectory = separable_run(seed)
    rows = np.arange(150)
    left_out = left_out_of(problem, rows)
    exact, last = brute_force(problem, trajectory, left_out)
    linear, _, error_estimate = linearised_predictors(
        problem, trajectory, left_out, 150, map
    )
    inaccurate = error_estimate > methods.LARGEST_ERROR
    assert 0 < inaccurate.sum() < 100
    error = np.abs(linear - exact).max(axis=(0, 2))
    # What is kept is as good as its estimated error says, and what is not is not.
    assert error[~inaccurate].max() < methods.LARGEST_ERROR
    assert error[inaccurate].max() > 10 * methods.LARGEST_ERROR
    set_limits(WORTH_LINEARISING=0.0)
    params = {"rule": MEAN}
    found = methods.leave_one_out(problem, trajectory, rows, **params)
    np.testing.assert_allclose(found[:, inaccurate], exact[:, inaccurate], atol=1e-8)
    np.testing.assert_array_equal(found[:, ~inaccurate], linear[:, ~inaccurate])
    task = methods.LeaveOneOutTask.of(problem, trajectory, rows, **params)
    coef, _ = methods.coefficients_without(task)
    expected = trajectory.coef[-1, :, 0] + last[inaccurate, :, 0]
    np.testing.assert_allclose(coef[inaccurate], expected, atol=1e-8)


def test_no_row_is_inaccurate_where_linearising_is_good():
    problem, trajectory = logistic_run((300, 8), 1e-3, GradientDescent(0.5), 200, 0)
    left_out = left_out_of(problem, np.arange(300))
    *_, error_estimate = linearised_predictors(problem, trajectory, left_out, 300, map)
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
def test_number_of_updates_run_exactly(
    shape, lengths, n_batches, newton, correction, expected
):
    step = ProximalGradient(1.0)
    update = Pass(step, ((),) * n_batches) if n_batches else step
    update = NewtonStep(1.0) if newton else update
    rules = [(update, Zero())] * len(lengths)
    run = cost.RunCost(shape, lengths, rules, is_quadratic=False, correction=correction)
    method = cost.method_for(run)
    exact = run.n_updates if method == "replicas" else run.n_corrected()
    assert exact == expected
