"""Parts from outside the package: each is defined here, and nothing else is touched."""

from dataclasses import dataclass
from itertools import count
from math import log

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.model_selection import KFold

from skacv import (
    TrajectoryClassifier,
    TrajectoryEarlyStoppingCV,
    TrajectoryRegressor,
    approximate_loo,
)
from skacv.model_selection import Estimate, register_estimate, unregister_estimate
from skacv.optim.families import GroupL2, Weighted
from skacv.optim.losses import Loss
from skacv.optim.penalties import L1, Uniform
from skacv.optim.updates import ProximalGradient
from skacv.records import HeldOut
from skacv.testing import check_loss, check_penalty, check_schedule
from tests import oracles
from tests.runs import run_of

# As many rows as columns: leave-one-out of any loss is then exact.
N_ROWS = N_FEATURES = 14
WEIGHTS = np.arange(N_FEATURES) % 4 / 2
GROUPS = np.arange(N_FEATURES) // 3
EXACT = {"rtol": 0, "atol": 1e-8}


@pytest.fixture
def data(rng):
    X = rng.standard_normal((N_ROWS, N_FEATURES)) + 0.3
    return X, 2 * X[:, 0] - X[:, 4] + 0.5 * rng.standard_normal(N_ROWS) + 1


def staged(model, X):
    """What every iterate says of some rows."""
    outcomes = getattr(model, "staged_decision_function", model.staged_predict)
    return np.array(list(outcomes(X)))


def check_held_out(model, X, y):
    """Leave-one-out and folds are what refits with the same step say."""
    model = clone(model).set_params(max_iter=20, tol=0, loo=True, cv=KFold(4))
    model.fit(X, y)

    def refitted(fitted, judged):
        refit = clone(model).set_params(step_size=model.step_size_, loo=False, cv=None)
        return staged(refit.fit(X[fitted], y[fitted]), X[judged])

    rows = np.arange(N_ROWS)
    one_by_one = [refitted(rows != i, [i]) for i in rows]
    np.testing.assert_allclose(
        model.loo_prediction_path_, np.concatenate(one_by_one, axis=1), **EXACT
    )
    folds = [refitted(fitted, judged) for fitted, judged in KFold(4).split(X)]
    np.testing.assert_allclose(
        model.cv_prediction_path_, np.concatenate(folds, axis=1), **EXACT
    )


def check_risk(model, X, y, of_prox=oracles.elementwise_jacobian):
    """The memory matrix is that of full Jacobians."""
    model = clone(model).set_params(max_iter=20, loo=False, risk="exact")
    run = run_of(model.set_params(risk_row_scales=False), X, y)
    expected = oracles.risk_path_of(run, X, y, of_prox=of_prox)
    np.testing.assert_allclose(model.risk_path_, expected, rtol=1e-3)


# --------------------------------------------------------------------- a loss


@dataclass(frozen=True)
class LogCosh(Loss):
    """A smooth absolute error, l(y, z) = width log cosh((z - y) / width)."""

    width: float = 1.0

    def value(self, target, predictor):
        size = np.abs(predictor - target) / self.width
        return self.width * (size + np.log1p(np.exp(-2 * size)) - log(2))

    def derivative(self, target, predictor):
        return np.tanh((predictor - target) / self.width)

    def curvature(self, target, predictor):
        return (1 - self.derivative(target, predictor) ** 2) / self.width

    def curvature_bound(self, target):
        return 1 / self.width


@pytest.mark.parametrize("penalty", ["l1", "l2", "mcp", Weighted(L1(1.0), WEIGHTS)])
@pytest.mark.parametrize("schedule", ["gd", "nesterov", "heavy_ball"])
def test_a_loss_of_regression(schedule, penalty, data):
    model = TrajectoryRegressor(0.05, loss=LogCosh(0.7), penalty=penalty)
    check_held_out(model.set_params(schedule=schedule), *data)


def test_losses_are_what_they_say(rng):
    check_loss(LogCosh(0.7))
    labels = rng.choice([-1.0, 1.0], (60, 2))
    check_loss(SoftMargin(), labels)


def test_a_loss_costs_what_it_says(data):
    X, y = data
    model = TrajectoryRegressor(0.05, loss=LogCosh(), loo=True).fit(X, y)
    errors = LogCosh().value(y, model.loo_prediction_path_)
    np.testing.assert_allclose(model.loo_path_, errors.mean(axis=1))


@dataclass(frozen=True)
class SoftMargin(Loss):
    """l(y, z) = log(1 + exp(-y z)) of labels -1 and 1."""

    name = "soft margin"

    def value(self, target, predictor):
        return np.logaddexp(0, -target * predictor)

    def derivative(self, target, predictor):
        return -target * expit(-target * predictor)

    def curvature(self, target, predictor):
        return expit(predictor) * expit(-predictor)

    def curvature_bound(self, target):
        return 0.25


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_a_loss_of_classification(penalty, n_classes, data):
    X, y = data
    labels = np.array(["a", "b", "c"])[np.argsort(np.argsort(y)) % n_classes]
    model = TrajectoryClassifier(0.02, loss=SoftMargin(), penalty=penalty)
    check_held_out(model, X, labels)


# ---------------------------------------------------- a penalty of each family


@dataclass(frozen=True)
class LogSum(Uniform):
    """g(b) = strength sum_j log(1 + |b_j| / width) (Candes, Wakin & Boyd 2008)."""

    strength: float
    width: float = 1.0

    def terms(self, coef):
        return self.strength * np.log1p(np.abs(coef) / self.width)

    def prox(self, point, step_size):
        k, size = step_size * self.strength, np.abs(point)
        root = np.sqrt(np.maximum((size + self.width) ** 2 - 4 * k, 0))
        inner = np.where(self.width * size > k, (size - self.width + root) / 2, 0)
        return np.sign(point) * inner

    def prox_derivative(self, coef, step_size):
        k = step_size * self.strength
        moves = (coef != 0) | (k == 0)
        return moves / (1 - k / (self.width + np.abs(coef)) ** 2)

    def gradient(self, coef):
        return self.strength * np.sign(coef) / (self.width + np.abs(coef))

    def hessian_diagonal(self, coef):
        return -self.strength / (self.width + np.abs(coef)) ** 2

    def largest_strength(self, gradient, smoothness):
        return self.width * super().largest_strength(gradient, smoothness)


@dataclass(frozen=True, eq=False)
class GroupElasticNet(GroupL2):
    """g(b) = strength sum_g weights_g (||b_g|| + ridge ||b_g||^2 / 2)."""

    ridge: float = 1.0

    def terms(self, coef):
        return super().terms(coef) * (1 + self.ridge * self.norms(coef) / 2)

    def _shrinkage(self, step_size, coef):
        weights = self.weights[self.groups].reshape(-1, *(1,) * (coef.ndim - 1))
        shrinkage = 1 + step_size * self.strength * self.ridge * weights
        return shrinkage.astype(coef.dtype)

    def prox(self, point, step_size):
        shrinkage = self._shrinkage(step_size, point)
        return super().prox(point, step_size) / shrinkage

    def prox_tangent(self, coef, step_size, tangents):
        shrinkage = self._shrinkage(step_size, coef)
        return super().prox_tangent(coef * shrinkage, step_size, tangents) / shrinkage


def group_elastic_net_jacobian(penalty, coef, step_size):
    shrinkage = (
        1
        + step_size
        * penalty.strength
        * penalty.ridge
        * (penalty.weights[penalty.groups])
    )
    found = oracles.group_jacobian(penalty, coef * shrinkage, step_size)
    return found / shrinkage[:, None]


OWN_PENALTIES = {
    "uniform": (LogSum(1.0, 1.5), oracles.elementwise_jacobian),
    "weighted": (Weighted(LogSum(1.0, 1.5), WEIGHTS), oracles.elementwise_jacobian),
    "grouped": (
        GroupElasticNet(1.0, GROUPS, np.array([1.0, 0.0, 2.0, 1.0, 0.5]), 0.5),
        group_elastic_net_jacobian,
    ),
}


@pytest.mark.parametrize("schedule", ["gd", "nesterov", "heavy_ball"])
@pytest.mark.parametrize("family", OWN_PENALTIES)
def test_a_penalty(family, schedule, data):
    penalty, of_prox = OWN_PENALTIES[family]
    model = TrajectoryRegressor(0.1, penalty=penalty, schedule=schedule)
    check_held_out(model.set_params(risk=False), *data)
    check_risk(model, *data, of_prox)


@pytest.mark.parametrize("family", OWN_PENALTIES)
def test_a_penalty_is_what_it_says(family):
    check_penalty(OWN_PENALTIES[family][0], N_FEATURES)


@pytest.mark.parametrize("family", OWN_PENALTIES)
def test_a_penalty_with_another_loss(family, data):
    X, y = data
    penalty, _ = OWN_PENALTIES[family]
    check_held_out(TrajectoryRegressor(0.05, loss="huber", penalty=penalty), X, y)
    check_held_out(TrajectoryClassifier(0.02, penalty=penalty), X, y > y.mean())


@pytest.mark.parametrize("family", OWN_PENALTIES)
def test_a_path_of_a_penalty(family, data):
    """It begins where all that is penalised stays at zero."""
    penalty, _ = OWN_PENALTIES[family]
    path = TrajectoryRegressor("path", penalty=penalty, max_iter=3).fit(*data)
    held = ~penalty.unpenalized(N_FEATURES)
    model = TrajectoryRegressor(penalty=penalty, max_iter=5000, tol=1e-12, loo=False)
    for factor, stays in ((1.01, True), (0.99, False)):
        model.set_params(alpha=factor * path.alpha_path_[0]).fit(*data)
        assert (model.coef_[held] == 0).all() == stays


def test_a_penalty_is_expanded(data):
    X = np.tile(data[0], (4, 1)) + np.random.default_rng(1).normal(size=(56, 14))
    y = X[:, 0] + 0.3 * np.random.default_rng(2).standard_normal(56)
    model = TrajectoryRegressor(0.05, penalty=LogSum(1.0, 1.5), loo=True, risk=False)
    model.set_params(max_iter=3000, tol=1e-12).fit(X, y)
    off = approximate_loo(model, X, y).predictions - model.loo_prediction_path_[-1]
    assert np.median(np.abs(off)) < 0.01


# ----------------------------------------------------------------- a schedule


@dataclass(frozen=True)
class TwoMomenta:
    """Momentum t / (t + 3) in the iterates, half of it where the gradient is taken."""

    step_size: float

    def updates(self):
        for t in count():
            momentum = t / (t + 3)
            yield ProximalGradient(self.step_size, momentum, momentum / 2)

    @staticmethod
    def largest_stable_step(smoothness):
        return 2 / smoothness


def test_a_schedule_is_what_it_says():
    check_schedule(TwoMomenta(1.0))


@pytest.mark.parametrize("penalty", ["l1", "l2", *OWN_PENALTIES])
def test_a_schedule_with_momentum_of_its_own(penalty, data):
    penalty, of_prox = OWN_PENALTIES.get(
        penalty, (penalty, oracles.elementwise_jacobian)
    )
    model = TrajectoryRegressor(0.1, penalty=penalty, schedule=TwoMomenta(1.0))
    check_held_out(model.set_params(risk=False), *data)
    check_risk(model, *data, of_prox)


def test_a_schedule_with_other_losses(data):
    X, y = data
    schedule = TwoMomenta(1.0)
    check_held_out(TrajectoryRegressor(0.05, loss="huber", schedule=schedule), X, y)
    check_held_out(TrajectoryClassifier(schedule=schedule), X, y > y.mean())


# ---------------------------------------------------------------- an estimate


def read_information(run):
    """Akaike's criterion of the log loss, with nonzero coefficients for parameters."""
    coef, n_rows = run.trajectory.coef, len(run.data.problem.target)
    if run.data.problem.loss.name != "log loss":
        return None
    path = run.train_path + np.count_nonzero(coef, axis=(1, 2)) / n_rows
    return HeldOut(path, np.zeros(len(path)))


@pytest.fixture
def information():
    limits = "It is of the log loss."
    register_estimate(Estimate("aic", "Akaike", read_information, limits=limits))
    yield
    unregister_estimate("aic")


def test_an_estimate(information, data):
    X, y = data
    labels = np.where(y > y.mean(), "high", "low")
    inner = TrajectoryClassifier(0.05, penalty=LogSum(1.0, 1.5), schedule=TwoMomenta(1))
    model = TrajectoryEarlyStoppingCV(inner, criterion="aic").fit(X, labels)
    record = model.estimator_
    losses = [
        -np.log(probability[rows, (labels == "low").astype(int)]).mean()
        for rows in [np.arange(N_ROWS)]
        for probability in record.staged_predict_proba(X)
    ]
    n_active = np.count_nonzero(record.coef_path_, axis=(1, 2))
    n_active += np.count_nonzero(record.intercept_path_, axis=1)
    np.testing.assert_allclose(model.path_, losses + n_active / N_ROWS)
    assert model.best_iter_ == np.argmin(model.path_)
    with pytest.raises(ValueError, match="It is of the log loss"):
        model.set_params(estimator=TrajectoryRegressor()).fit(X, y)
