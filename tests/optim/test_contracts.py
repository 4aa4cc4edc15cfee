"""Parts that do not go together, or not do what they say, are refused or read right.

Each case once gave wrong numbers without a word.
"""

from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from skacv import IterativeRidge
from skacv._compat import StrOptions
from skacv.optim.arrays import design_of
from skacv.optim.families import GroupL2, Weighted, except_last
from skacv.optim.losses import Logistic, Loss
from skacv.optim.penalties import L1, Penalty, SquaredL2, Uniform, soft_threshold
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import (
    GradientDescent,
    Nesterov,
    Newton,
    StochasticGradient,
)
from skacv.optim.trajectory import Phase
from skacv.optim.updates import Pass, ProximalGradient
from skacv.risk.held_out_rows import LeaveOutRule
from skacv.risk.left_out.methods import leave_one_out
from skacv.risk.memory.memory_matrix import estimate_risk
from tests.curved_runs import read_any_loss
from tests.oracles import iterates_without

N_ROWS, N_COLUMNS = 40, 6


@pytest.fixture
def problem(rng):
    X = rng.standard_normal((N_ROWS, N_COLUMNS))
    y = X[:, :1] * 2 + X[:, 1:2] + 0.5 * rng.standard_normal((N_ROWS, 1))
    return Problem(design_of(X), y, np.full((N_ROWS, 1), 1 / N_ROWS))


def ran(problem, penalty, schedule, n_updates=30):
    start = np.zeros((1, problem.design.shape[1], 1))
    return run(problem, [Phase(penalty, schedule, n_updates)], start)


def check_leave_one_out(problem, trajectory):
    rows = np.arange(0, N_ROWS, 7)
    found = leave_one_out(problem, trajectory, rows, LeaveOutRule())
    for k, i in enumerate(rows):
        path = iterates_without(problem, trajectory, i)
        expected = problem.design.X[i] @ path[:, :, 0].T
        np.testing.assert_allclose(found[:, k, 0], expected, rtol=0, atol=1e-10)


# ------------------------------------------------------------------- read right


@pytest.mark.parametrize("penalty", [SquaredL2(1.0), L1(0.3)])
def test_a_column_without_a_penalty(penalty, problem):
    """A ridge that spares a column has no eigenbasis in common with X'X."""
    X = np.column_stack([problem.design.X, np.ones(N_ROWS)])
    problem = replace(problem, design=design_of(X), target=problem.target + 3)
    penalty = except_last(penalty, N_COLUMNS + 1)
    step_size = 1 / (problem.smoothness + penalty.curvature)
    check_leave_one_out(problem, ran(problem, penalty, Nesterov(step_size), 60))


def test_newton_steps_on_squared_errors(problem):
    trajectory = ran(problem, SquaredL2(0.1), Newton(1.0), 3)
    rows = np.arange(0, N_ROWS, 7)
    found = leave_one_out(problem, trajectory, rows, LeaveOutRule())
    X, y = problem.design.X, problem.target[:, 0]
    for k, i in enumerate(rows):
        kept = np.arange(N_ROWS) != i
        gram = X[kept].T @ X[kept] / kept.sum() + 0.1 * np.eye(N_COLUMNS)
        coef = np.linalg.solve(gram, X[kept].T @ y[kept] / kept.sum())
        np.testing.assert_allclose(found[1:, k, 0], X[i] @ coef, atol=1e-10)


def test_weights_of_coefficients(problem):
    penalty = Weighted(L1(0.1), np.linspace(0, 4, N_COLUMNS))
    step_size = 1 / problem.smoothness
    check_leave_one_out(problem, ran(problem, penalty, Nesterov(step_size)))


def test_groups_of_coefficients(problem):
    penalty = GroupL2(0.15, np.arange(N_COLUMNS) // 2, np.array([1.0, 0.0, 2.0]))
    step_size = 1 / problem.smoothness
    check_leave_one_out(problem, ran(problem, penalty, Nesterov(step_size)))


# --------------------------------------------------------------------- refused


def test_newton_steps_with_a_prox_are_refused(problem):
    with pytest.raises(ValueError, match="smooth penalty, and L1 has a prox"):
        ran(problem, L1(5.0), Newton(1.0))


@dataclass(frozen=True)
class MomentumInBatches:
    step_size: float

    def updates(self):
        rows = np.arange(N_ROWS)
        step = ProximalGradient(self.step_size, momentum=0.9)
        return repeat(Pass(step, (rows[:20], rows[20:])))

    def largest_stable_step(self, smoothness):
        return 2 / smoothness


def test_momentum_in_batches_is_refused(problem):
    with pytest.raises(ValueError, match="steps without momentum"):
        ran(problem, SquaredL2(0.1), MomentumInBatches(0.1))


def test_batches_and_all_rows_in_one_record_are_refused(problem):
    plan = [
        Phase(SquaredL2(0.1), GradientDescent(0.1), 3),
        Phase(SquaredL2(0.1), StochasticGradient(0.1, 0.0, N_ROWS, 10, 0), 3),
    ]
    with pytest.raises(ValueError, match="batches in all updates or in none"):
        run(problem, plan, np.zeros((1, N_COLUMNS, 1)))


@dataclass
class DrawnAnew:
    step_size: float

    def updates(self):
        step = ProximalGradient(self.step_size)
        draws = np.random.default_rng()
        while True:
            yield Pass(step, tuple(np.array_split(draws.permutation(N_ROWS), 4)))

    def largest_stable_step(self, smoothness):
        return 2 / smoothness


def test_a_schedule_that_draws_anew_is_refused(problem):
    with pytest.raises(ValueError, match="the same updates every time"):
        ran(problem, SquaredL2(0.1), DrawnAnew(0.1))


def test_the_memory_matrix_of_other_losses_is_not_of_residuals(problem):
    labels = replace(
        problem, target=(problem.target > 0).astype(float), loss=Logistic()
    )
    trajectory = ran(labels, SquaredL2(0.01), GradientDescent(0.5))
    found = estimate_risk(labels, trajectory, method="exact")
    np.testing.assert_allclose(found.path[0], np.log(2))
    expected = read_any_loss(labels, trajectory, "exact")
    np.testing.assert_array_equal(found.path, expected.path)


def test_the_memory_matrix_refuses_newton_steps(problem):
    trajectory = ran(problem, SquaredL2(0.1), Newton(1.0), 3)
    with pytest.raises(ValueError, match="NewtonStep has none"):
        estimate_risk(problem, trajectory)


def test_the_memory_matrix_of_batches_drawn_anew_is_that_of_any_loss(problem):
    """Passes that are not all the same linear map are not read from random labels."""
    schedule = StochasticGradient(0.05, 0.0, N_ROWS, 10, 0)
    trajectory = ran(problem, SquaredL2(0.1), schedule)
    found = estimate_risk(problem, trajectory, method="exact")
    expected = read_any_loss(problem, trajectory, "exact")
    np.testing.assert_array_equal(found.path, expected.path)
    assert found.n_probes == 0


@dataclass(frozen=True, eq=False)
class OwnWeights(Penalty):
    """An adaptive lasso written as if coefficients were never a part of all."""

    strength: float

    def terms(self, coef):
        return self.strength * np.arange(1, 1 + len(coef))[:, None] * np.abs(coef)

    def prox(self, point, step_size):
        weights = np.arange(1, 1 + len(point)).reshape(-1, *(1,) * (point.ndim - 1))
        return soft_threshold(point, step_size * self.strength * weights)

    def prox_derivative(self, coef, step_size):
        return (coef != 0).astype(coef.dtype)


@dataclass(frozen=True, eq=False)
class UniformByWord(OwnWeights, Uniform):
    """The same, and it says that all coefficients are alike."""


@dataclass(frozen=True)
class Pairs(Penalty):
    """A group lasso that does not say which coefficients belong together."""

    strength: float

    def prox(self, point, step_size):
        found = np.empty_like(point)
        for k in range(0, len(point), 2):
            pair = point[k : k + 2]
            norm = np.linalg.norm(pair, axis=0, keepdims=True)
            shrunk = np.maximum(0, 1 - step_size * self.strength / norm)
            found[k : k + 2] = shrunk * pair
        return found


@dataclass(frozen=True)
class WrongShape(Uniform):
    strength: float

    def prox(self, point, step_size):
        weights = np.ones(len(point))[:, None]
        return soft_threshold(point, step_size * self.strength * weights)


@dataclass(frozen=True)
class WrongDerivative(L1):
    def prox_derivative(self, coef, step_size):
        return np.ones_like(coef)


@dataclass(frozen=True)
class WrongTerms(L1):
    def terms(self, coef):
        return 2 * super().terms(coef)


@dataclass(frozen=True)
class NeverNegative(L1):
    """Coefficients without a weight are not negative either."""

    def terms(self, coef):
        return np.where(coef < 0, np.inf, super().terms(coef))

    def prox(self, point, step_size):
        return np.maximum(super().prox(point, step_size), 0)

    def prox_derivative(self, coef, step_size):
        return (coef != 0).astype(coef.dtype)


@pytest.mark.parametrize(
    ("penalty", "message"),
    [
        (OwnWeights(0.1), "derive it from Uniform"),
        (UniformByWord(0.1), "differs from its values among all columns"),
        (Pairs(0.15), "derive it from Uniform"),
        (WrongShape(0.1), "keep the shape of its point"),
        (WrongDerivative(0.1), "not the derivative of its prox"),
        (WrongTerms(0.1), "prox is not the minimum"),
        (NeverNegative(0.1), "keep its point where step_size is zero"),
        (Weighted(L1(0.1), np.ones(3)), "for 3 coefficients, but there are 6"),
        (Weighted(L1(0.1), -np.ones(6)), "finite and not negative"),
        (Weighted(GroupL2(0.1, np.arange(6), np.ones(6)), np.ones(6)), "uniform"),
        (GroupL2(0.1, np.zeros(3, int), np.ones(1)), "for 3 coefficients"),
        (GroupL2(0.1, np.arange(6), np.ones(2)), "a weight for each"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_penalties_that_are_not_what_they_say_are_refused(penalty, message, problem):
    with pytest.raises(ValueError, match=message):
        ran(problem, penalty, Nesterov(0.5 / problem.smoothness))


@dataclass(frozen=True)
class Cosh(Loss):
    slope_factor: float = 1.0
    bend_factor: float = 1.0

    def value(self, target, predictor):
        return np.cosh(predictor - target)

    def derivative(self, target, predictor):
        return self.slope_factor * np.sinh(predictor - target)

    def curvature(self, target, predictor):
        return self.bend_factor * np.cosh(predictor - target)

    def curvature_bound(self, target):
        return 50.0


class WrongSlope(Cosh):
    pass


class WrongBend(Cosh):
    pass


class QuadraticByWord(Cosh):
    is_quadratic = True


class MeanAlone(Cosh):
    def mean(self, predictor):
        return np.exp(predictor)


class WithoutCurvature(Cosh):
    curvature = Loss.curvature


@dataclass(frozen=True)
class TwiceSquared(Loss):
    """The squared error itself, which says that it is read as its half."""

    is_quadratic = True

    def value(self, target, predictor):
        return (predictor - target) ** 2

    def derivative(self, target, predictor):
        return 2 * (predictor - target)

    def curvature(self, target, predictor):
        return np.full_like(predictor, 2.0)

    def curvature_bound(self, target):
        return 2.0


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (WrongSlope(slope_factor=2.0), "not the derivative of its value"),
        (WrongBend(bend_factor=2.0), "not the derivative of its derivative"),
        (QuadraticByWord(), "declares that it is quadratic"),
        (MeanAlone(), "predictor is not the inverse of its mean"),
        (TwiceSquared(), "that is, half the squared error"),
        (WithoutCurvature(), "WithoutCurvature has no curvature"),
    ],
)
def test_losses_that_are_not_what_they_say_are_refused(loss, message, problem):
    with pytest.raises(ValueError, match=message):
        ran(replace(problem, loss=loss), SquaredL2(0.1), GradientDescent(0.01))


def test_another_solver_by_name(rng):
    """An estimator with a solver that it was not made for reads what is right."""

    class WithNewton(IterativeRidge):
        _solvers = {"newton": Newton}
        _parameter_constraints = {
            **IterativeRidge._parameter_constraints,
            "solver": [StrOptions({"newton"})],
        }

    X = rng.standard_normal((N_ROWS, N_COLUMNS))
    y = 2 * X[:, 0] + rng.standard_normal(N_ROWS)
    model = WithNewton(4.0, solver="newton", step_size=1.0, max_iter=3)
    with pytest.raises(ValueError, match="NewtonStep has none"):
        model.set_params(risk=True).fit(X, y)
    model.set_params(risk=False, loo=True).fit(X, y)
    for i in range(0, N_ROWS, 9):
        kept = np.arange(N_ROWS) != i
        expected = Ridge(4.0).fit(X[kept], y[kept]).predict(X[[i]])
        found = model.loo_prediction_path_[-1, [i]]
        np.testing.assert_allclose(found, expected, atol=1e-8)


# ------------------------------------------- what is read never changes the run


@pytest.mark.parametrize("solver", ["gd", "nesterov", "heavy_ball", "eigenpro"])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_read_never_changes_the_run(solver, weighted, rng):
    X = rng.standard_normal((30, 5))
    y, weights = X[:, 0] + rng.standard_normal(30), np.ones(30)
    weights[0] = 30 if weighted else 1

    def fitted(**params):
        model = IterativeRidge(0.0, solver=solver, max_iter=5, random_state=0)
        return model.set_params(**params).fit(X, y, sample_weight=weights)

    plain = fitted(loo=False)
    for read in ({"loo": True}, {"risk": False}):
        path = fitted(**read).coef_path_
        np.testing.assert_allclose(path, plain.coef_path_, rtol=1e-12, atol=1e-14)
    # A fold may bear less than the automatic step, which is smaller then.
    step_size = fitted(cv=3).step_size_
    assert step_size <= plain.step_size_
    paths = [fitted(step_size=step_size, cv=cv).coef_path_ for cv in (None, 3)]
    # Folds share their products with the run, which BLAS then rounds otherwise.
    np.testing.assert_allclose(*paths, rtol=1e-12, atol=1e-14)
