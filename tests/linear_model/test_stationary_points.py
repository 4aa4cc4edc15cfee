"""Every loss with every penalty: runs end where derivatives by hand are zero."""

import numpy as np
import pytest
from scipy.special import xlogy
from sklearn.metrics import mean_pinball_loss

from skacv import TrajectoryClassifier, TrajectoryRegressor
from skacv.optim.losses import (
    Expectile,
    Huber,
    NegativeBinomial,
    SmoothedQuantile,
    Tweedie,
)
from tests.cases import covering

N_ROWS, N_FEATURES, ALPHA = 60, 6, 0.08
GROUPS = np.array([0, 1, 0, 2, 1, 2])


def huber(y, z):
    size = np.abs(y - z)
    return np.where(size < 0.7, size**2 / 2, 0.7 * size - 0.7**2 / 2)


def negative_binomial(y, z, theta=0.5):
    """Half the deviance, of a variance of mean + theta mean^2."""
    mean, size = np.exp(z), 1 / theta
    return xlogy(y, y / mean) - (y + size) * np.log((y + size) / (mean + size))


def quantile(y, z):
    residual = y - z
    rounded = np.where(np.abs(residual) < 0.5, residual**2 + 0.25, np.abs(residual))
    return -0.2 * residual + 0.5 * rounded


# Losses written out for targets and linear predictors, and what has them.
LOSSES = {
    "huber": (Huber(0.7), huber),
    "poisson": ("poisson", lambda y, z: xlogy(y, y) - y * z - y + np.exp(z)),
    "gamma": ("gamma", lambda y, z: y * np.exp(-z) + z - np.log(y) - 1),
    "tweedie": (
        Tweedie(1.4),
        lambda y, z: np.exp(0.6 * z) / 0.6 + y * np.exp(-0.4 * z) / 0.4 - y**0.6 / 0.24,
    ),
    "negative_binomial": (NegativeBinomial(0.5), negative_binomial),
    "quantile": (SmoothedQuantile(0.3, 0.5), quantile),
    "expectile": (
        Expectile(0.3),
        lambda y, z: np.where(y > z, 0.3, 0.7) * (y - z) ** 2,
    ),
}


def target_of(name, X, rng):
    predictor = 0.4 * X[:, 0] - 0.3 * X[:, 1]
    if name in ("poisson", "negative_binomial"):
        return rng.poisson(np.exp(predictor)).astype(float)
    if name in ("gamma", "tweedie"):
        return rng.gamma(2.0, np.exp(predictor) / 2) + 0.01
    return predictor + rng.standard_normal(N_ROWS)


def derivatives(function, x, width=1e-6):
    """Central differences."""
    steps = width * np.eye(len(x))
    return np.array([function(x + s) - function(x - s) for s in steps]) / (2 * width)


def slope(penalty, coef):
    """Minus the gradient of the loss that keeps nonzero coefficients where they are."""
    size, sign = np.abs(coef), np.sign(coef)
    if penalty == "l2":
        return ALPHA * coef
    if penalty == "l1":
        return ALPHA * sign
    if penalty == "elasticnet":
        return ALPHA / 2 * (sign + coef)
    if penalty == "mcp":
        return np.maximum(ALPHA - size / 3, 0) * sign
    falling = np.clip((3.7 * ALPHA - size) / 2.7, 0, ALPHA)
    return np.where(size <= ALPHA, ALPHA, falling) * sign


def check_stationary(penalty, coef, gradient):
    if penalty == "group_lasso":
        for group in range(3):
            own, threshold = GROUPS == group, ALPHA * np.sqrt(2)
            norm = np.linalg.norm(coef[own])
            if norm:
                expected = threshold * coef[own] / norm
                np.testing.assert_allclose(-gradient[own], expected, atol=1e-6)
            else:
                assert np.linalg.norm(gradient[own]) <= threshold + 1e-6
        return
    free = (coef != 0) | (penalty == "l2")
    expected = slope(penalty, coef)
    np.testing.assert_allclose(-gradient[free], expected[free], atol=1e-6)
    threshold = ALPHA / 2 if penalty == "elasticnet" else ALPHA
    assert (np.abs(gradient[~free]) <= threshold + 1e-6).all()


PENALTIES = ["l1", "l2", "elasticnet", "mcp", "scad", "group_lasso"]
CONVERGED = {"groups": GROUPS, "max_iter": 20_000, "tol": 1e-13, "loo": False}


@covering(name=LOSSES, penalty=PENALTIES)
def test_runs_end_at_stationary_points(name, penalty, rng):
    # So large that the automatic step is below what MCP and SCAD need.
    X = 2 * rng.standard_normal((N_ROWS, N_FEATURES))
    y = target_of(name, X, rng)
    weights = rng.uniform(0.5, 2, N_ROWS)
    loss, by_hand = LOSSES[name]
    model = TrajectoryRegressor(
        ALPHA, loss=loss, penalty=penalty, risk=False, **CONVERGED
    )
    model.fit(X, y, sample_weight=weights)

    def mean_loss(coef):
        losses = by_hand(y, X @ coef[:-1] + coef[-1])
        return np.average(losses, weights=weights)

    coef = np.append(model.coef_, model.intercept_)
    if name == "quantile":  # paths are of the pinball loss, with its corner
        reported = mean_pinball_loss(
            y, model.predict(X), sample_weight=weights, alpha=0.3
        )
    else:
        reported = mean_loss(coef)
    assert model.train_path_[-1] == pytest.approx(reported)
    *gradient, of_intercept = derivatives(mean_loss, coef)
    assert abs(of_intercept) < 1e-6
    assert model.coef_.any()
    check_stationary(penalty, model.coef_, np.array(gradient))


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_runs_for_labels_end_at_stationary_points(penalty, n_classes, rng):
    X = 2 * rng.standard_normal((N_ROWS, N_FEATURES))
    scores = X @ rng.standard_normal((N_FEATURES, n_classes)) / 2
    labels = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    model = TrajectoryClassifier(ALPHA, penalty=penalty, risk=False, **CONVERGED)
    model.fit(X, labels)
    assert model.coef_.any()
    scores = np.atleast_2d(model.decision_function(X).T)
    if n_classes == 2:
        errors = (1 / (1 + np.exp(-scores[0])) - labels)[:, None]
    else:
        probabilities = np.exp(scores - scores.max(axis=0))
        probabilities /= probabilities.sum(axis=0)
        errors = probabilities.T - np.eye(n_classes)[labels]
    np.testing.assert_allclose(errors.mean(axis=0), 0, atol=1e-6)
    for coef, gradient in zip(model.coef_, errors.T @ X / N_ROWS, strict=True):
        check_stationary(penalty, coef, gradient)
