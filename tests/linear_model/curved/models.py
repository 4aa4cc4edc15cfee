"""Estimators of curved losses, scikit-learn's models, and losses by hand."""

import numpy as np
from scipy.special import xlogy
from sklearn.base import clone
from sklearn.linear_model import (
    GammaRegressor,
    HuberRegressor,
    LogisticRegression,
    PoissonRegressor,
    TweedieRegressor,
)
from sklearn.svm import LinearSVC

from skacv import (
    TrajectoryGammaRegressor,
    TrajectoryHuberRegressor,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryQuantileRegressor,
    TrajectoryTweedieRegressor,
)

EXACT = {"rtol": 0, "atol": 1e-8}
CLASSES = {"binary": ["no", "yes"], "classes": [0, 1, 2]}


def labels(decision, rng):
    return (rng.random(len(decision)) < 1 / (1 + np.exp(-decision))).astype(int)


def drawn(kind, rng, shape=(60, 6)):
    """X and a target of a kind, with signal in the first columns."""
    X = rng.standard_normal(shape)
    signal = X[:, 0] - 0.5 * X[:, 1] + 0.3
    targets = {
        "binary": lambda: np.array(["no", "yes"])[labels(signal, rng)],
        # Three: with an even number an l1 penalty has several optima.
        "classes": lambda: labels(signal, rng) + labels(X[:, 2] - 0.5, rng),
        "real": lambda: signal + 0.5 * rng.standard_t(2, shape[0]),
        "counts": lambda: rng.poisson(np.exp(0.5 * signal)),
        "amounts": lambda: rng.gamma(2.0, np.exp(0.5 * signal) / 2),
        "some": lambda: rng.poisson(np.exp(0.5 * signal)) * rng.gamma(2, 1, shape[0]),
    }
    y = targets[kind]()
    if kind in CLASSES:  # every one twice at least, one of them with a row left out
        names = CLASSES[kind]
        y[: 2 * len(names)] = names * 2
    return X, y


def logistic(C, l1_ratio, **params):
    """scikit-learn's; the penalty's name was deprecated in 1.8."""
    if l1_ratio == 0:
        return LogisticRegression(C=C, tol=1e-12, max_iter=10_000, **params)
    found = LogisticRegression(
        C=C, l1_ratio=l1_ratio, solver="saga", tol=1e-12, max_iter=100_000, **params
    )
    if found.get_params()["penalty"] == "l2":  # scikit-learn < 1.8
        found.set_params(penalty="elasticnet")
    return found


def svc(C, **params):
    """scikit-learn's penalises the intercept, ever less with the scaling."""
    return LinearSVC(C=C, tol=1e-12, max_iter=10**6, **params)


MODELS = {
    "binary": (TrajectoryLogisticRegression(0.3), "binary"),
    "l1": (TrajectoryLogisticRegression(0.3, l1_ratio=1.0), "binary"),
    "elastic_net": (TrajectoryLogisticRegression(0.3, l1_ratio=0.4), "binary"),
    "ista": (
        TrajectoryLogisticRegression(0.3, l1_ratio=1.0, solver="ista"),
        "binary",
    ),
    "gd": (TrajectoryLogisticRegression(0.3, solver="gd"), "binary"),
    "multinomial": (TrajectoryLogisticRegression(0.3), "classes"),
    "multinomial_l1": (TrajectoryLogisticRegression(0.3, l1_ratio=1.0), "classes"),
    "svc": (TrajectoryLinearSVC(0.3), "binary"),
    "svc_classes": (TrajectoryLinearSVC(0.3), "classes"),
    "huber": (TrajectoryHuberRegressor(0.5, scale=0.7), "real"),
    "poisson": (TrajectoryPoissonRegressor(0.1), "counts"),
    "gamma": (TrajectoryGammaRegressor(0.1), "amounts"),
    "tweedie": (TrajectoryTweedieRegressor(0.1, power=1.4), "some"),
}
COUNTERPARTS = {
    "binary": logistic(0.3, 0),
    "l1": logistic(0.3, 1.0),
    "elastic_net": logistic(0.3, 0.4),
    "ista": logistic(0.3, 1.0),
    "gd": logistic(0.3, 0),
    "multinomial": logistic(0.3, 0),
    "multinomial_l1": logistic(0.3, 1.0),
    "svc": svc(0.3),
    "svc_classes": svc(0.3),
    "huber": HuberRegressor(alpha=0.5, tol=1e-9, max_iter=10_000),
    "poisson": PoissonRegressor(alpha=0.1, tol=1e-9, max_iter=10_000),
    "gamma": GammaRegressor(alpha=0.1, tol=1e-9, max_iter=10_000),
    "tweedie": TweedieRegressor(
        alpha=0.1, power=1.4, link="log", tol=1e-9, max_iter=10_000
    ),
}
NEWTON = {
    "binary_newton": (TrajectoryLogisticRegression(0.3, solver="newton"), "binary"),
    "multinomial_newton": (
        TrajectoryLogisticRegression(0.3, solver="newton"),
        "classes",
    ),
    "poisson_newton": (TrajectoryPoissonRegressor(0.1, solver="newton"), "counts"),
    "gamma_newton": (TrajectoryGammaRegressor(0.1, solver="newton"), "amounts"),
}
MODELS |= NEWTON
COUNTERPARTS |= {name: COUNTERPARTS[name.split("_")[0]] for name in NEWTON}
# Those that scikit-learn does not have, or not before version 1.10.
OWN = {
    "poisson_l1": (TrajectoryPoissonRegressor(0.05, l1_ratio=0.7), "counts"),
    "smoothed": (TrajectoryLinearSVC(0.3, loss="smoothed_hinge"), "binary"),
    "quantile": (
        TrajectoryQuantileRegressor(0.1, quantile=0.4, smoothing=0.5),
        "real",
    ),
}
ALL = MODELS | OWN


def model_of(name, **params):
    return clone(ALL[name][0]).set_params(**params)


def raw_predictions(model, X):
    """Linear predictors, or predictions of a regressor, of every iterate."""
    staged = getattr(model, "staged_decision_function", model.staged_predict)
    return np.array(list(staged(X)))


def loss(name, y, predictions, classes=None):
    """The loss by hand, of every iterate and row."""
    name = name.removesuffix("_newton").removesuffix("_l1")
    if name.startswith(("binary", "l1", "elastic", "ista", "gd")):
        sign = np.where(y == classes[1], 1, -1)
        return np.logaddexp(0, -sign * predictions)
    if name.startswith("multinomial"):
        top = predictions.max(axis=2, keepdims=True)
        total = top[..., 0] + np.log(np.exp(predictions - top).sum(axis=2))
        chosen = predictions[:, np.arange(len(y)), np.searchsorted(classes, y)]
        return total - chosen
    if name == "poisson":
        return predictions - y * np.log(predictions) + xlogy(y, y) - y
    if name == "gamma":
        return y / predictions - np.log(y / predictions) - 1
    if name == "tweedie":
        of_mean = predictions**0.6 / 0.6 + y * predictions**-0.4 / 0.4
        return of_mean - y**0.6 / (0.4 * 0.6)
    if name == "quantile":
        residual = y - predictions
        return np.where(residual > 0, 0.4 * residual, -0.6 * residual)
    if name == "huber":
        residual, threshold = np.abs(y - predictions), 1.35 * 0.7
        beyond = threshold * residual - threshold**2 / 2
        return np.where(residual <= threshold, residual**2 / 2, beyond)
    sign = (
        np.where(y == classes[1], 1, -1)
        if predictions.ndim == 2
        else np.where(y[:, None] == classes, 1, -1)
    )
    margin = np.maximum(0, 1 - sign * predictions)
    if name == "smoothed":
        return np.where(margin < 0.5, margin**2, margin - 0.25)
    return margin**2 if predictions.ndim == 2 else (margin**2).mean(axis=2)


def held_out(model, X, y, fitted, judged, weights=None):
    refit = clone(model).set_params(step_size=model.step_size_, loo=False, cv=None)
    own = None if weights is None else weights[fitted]
    refit.fit(X[fitted], y[fitted], sample_weight=own)
    return raw_predictions(refit, X[judged])
