"""Linearised leave-one-out in the settings of its publication."""

import numpy as np
import pytest
from scipy.special import expit

from skacv.optim.schedules import GradientDescent, Nesterov

from .runs import found_by, left_out_of, logistic_run, loo_path


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
