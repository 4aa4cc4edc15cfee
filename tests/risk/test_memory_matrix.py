"""The memory matrix against full Jacobians, finite differences and the textbook."""

import numpy as np
import pytest

from skacv.optim.design import Design
from skacv.optim.penalties import MCP, SCAD, L1, ElasticNet, SquaredL2, Zero
from skacv.optim.schedules import GradientDescent, HeavyBall, Nesterov
from skacv.optim.trajectory import Phase, Problem, run
from skacv.risk.memory_matrix import estimate_risk
from tests import oracles

SCHEDULES = {
    "gradient_descent": GradientDescent,
    "nesterov": Nesterov,
    "heavy_ball": lambda step_size: HeavyBall(step_size, 0.6),
}
SMOOTH = {"zero": Zero(), "ridge": SquaredL2(0.2)}
PROXIMAL = {
    "l1": L1(0.1),
    "elastic_net": ElasticNet(0.1, 0.7),
    "mcp": MCP(0.1, 4.0),
    "scad": SCAD(0.1, 4.0),
}
SHAPES = {"tall": (40, 12), "wide": (24, 50)}


def sparse_regression(shape, rng, n_targets=1):
    n, p = shape
    X = rng.standard_normal((n, p)) + 0.5
    beta = np.zeros((p, n_targets))
    beta[:4] = 1.0
    return X, X @ beta + 0.5 * rng.standard_normal((n, n_targets))


def run_on(X, y, phases, sample_weight=None, fit_intercept=False):
    """The problem and its trajectory, from the lowest layer."""
    weights = np.ones(len(y)) if sample_weight is None else sample_weight
    weights = (weights / weights.sum())[:, None]
    design = Design.centered(X, weights) if fit_intercept else Design(X)
    if fit_intercept:
        y = y - weights.T @ y
    problem = Problem(design, y, weights)
    start = np.zeros((1, X.shape[1], y.shape[1]))
    return problem, run(problem, phases, start)


def phases_for(X, penalty, schedule, n_updates=30):
    top = np.linalg.norm(X, 2) ** 2 / len(X) + penalty.curvature
    return [Phase(penalty, schedule(0.9 / top), n_updates)]


def expected_gram(X, y, trajectory, sample_weight=None, fit_intercept=False):
    Xw, yw = oracles.whitened(X, y[:, 0], sample_weight, fit_intercept)
    A = oracles.memory_matrix(Xw, trajectory)
    residuals = yw - trajectory.coef[:, :, 0] @ Xw.T
    return oracles.risk_gram(A, residuals, fit_intercept)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("penalty", SMOOTH)
def test_spectral_equals_jacobians(
    penalty, schedule, shape, weighted, fit_intercept, rng
):
    X, y = sparse_regression(SHAPES[shape], rng)
    weights = rng.uniform(0.5, 2, len(y)) if weighted else None
    phases = phases_for(X, SMOOTH[penalty], SCHEDULES[schedule])
    problem, trajectory = run_on(X, y, phases, weights, fit_intercept)
    expected = expected_gram(X, y, trajectory, weights, fit_intercept)
    estimate = estimate_risk(problem, trajectory, fit_intercept=fit_intercept)
    np.testing.assert_allclose(estimate.path, np.diag(expected), rtol=1e-8)
    assert (estimate.mc_se_path == 0).all()
    assert estimate.n_probes == 0


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("penalty", PROXIMAL)
def test_complete_basis_equals_jacobians(
    penalty, schedule, shape, weighted, fit_intercept, rng
):
    X, y = sparse_regression(SHAPES[shape], rng)
    weights = rng.uniform(0.5, 2, len(y)) if weighted else None
    phases = phases_for(X, PROXIMAL[penalty], SCHEDULES[schedule])
    problem, trajectory = run_on(X, y, phases, weights, fit_intercept)
    expected = expected_gram(X, y, trajectory, weights, fit_intercept)
    estimate = estimate_risk(problem, trajectory, fit_intercept=fit_intercept)
    np.testing.assert_allclose(estimate.path, np.diag(expected), rtol=1e-3)
    assert (estimate.mc_se_path == 0).all()
