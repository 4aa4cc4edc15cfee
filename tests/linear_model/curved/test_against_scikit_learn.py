"""Estimators of curved losses converge to scikit-learn's models."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import log_loss, mean_pinball_loss, r2_score

from skacv import (
    TrajectoryHuberRegressor,
    TrajectoryLogisticRegression,
    TrajectoryQuantileRegressor,
)
from tests.cases import covering

from .models import (
    ALL,
    COUNTERPARTS,
    EXACT,
    MODELS,
    NEWTON,
    drawn,
    logistic,
    loss,
    model_of,
    raw_predictions,
)

TIGHT = {"max_iter": 20_000, "tol": 1e-13, "loo": False}


@covering(
    name=MODELS,
    fit_intercept=[True, False],
    kind=["dense", "csr"],
    weighted=[False, True],
)
def test_converges_to_scikit_learn(name, fit_intercept, kind, weighted, rng):
    X, y = drawn(MODELS[name][1], rng)
    weights = rng.uniform(0.5, 2, len(y)) if weighted else None
    theirs = clone(COUNTERPARTS[name]).set_params(fit_intercept=fit_intercept)
    if name.startswith("svc"):
        theirs.set_params(intercept_scaling=1e4 if fit_intercept else 1)
    theirs.fit(X, y, sample_weight=weights)
    ours = model_of(name, fit_intercept=fit_intercept, **TIGHT)
    if name == "huber":
        ours.set_params(scale=theirs.scale_)
    ours.fit(X if kind == "dense" else sparse.csr_matrix(X), y, sample_weight=weights)
    assert ours.coef_.shape == theirs.coef_.shape
    # HuberRegressor ends where its objective, some 60, falls by less than 2e-9 of it;
    # its curvature is some 20.
    atol = 1e-4 if name == "huber" else 1e-5
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=atol)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=atol)
    found, expected = ours.predict(X), theirs.predict(X)
    if hasattr(theirs, "classes_"):
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, atol=10 * atol)


@pytest.mark.parametrize("class_weight", ["balanced", {"no": 3.0, "yes": 0.5}])
def test_class_weights_are_those_of_scikit_learn(class_weight, rng):
    X, y = drawn("binary", rng)
    weights = {"class_weight": class_weight}
    theirs = logistic(0.3, 0, **weights).fit(X, y)
    ours = TrajectoryLogisticRegression(0.3, **weights, **TIGHT).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)


def test_no_penalty(rng):
    X, y = drawn("binary", rng)
    theirs = logistic(np.inf, 0).fit(X, y)
    ours = TrajectoryLogisticRegression(np.inf, **TIGHT).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert np.isinf(ours.C_path_).all()


@pytest.mark.parametrize("name", ["binary", "multinomial"])
def test_probabilities_are_those_of_scikit_learn(name, rng):
    X, y = drawn(MODELS[name][1], rng)
    theirs = clone(COUNTERPARTS[name]).fit(X, y)
    ours = model_of(name, **TIGHT).fit(X, y)
    expected = theirs.predict_proba(X)
    np.testing.assert_allclose(ours.predict_proba(X), expected, atol=1e-6)
    log_expected = theirs.predict_log_proba(X)
    np.testing.assert_allclose(ours.predict_log_proba(X), log_expected, atol=1e-5)
    *_, last = ours.staged_predict_proba(X)
    np.testing.assert_array_equal(last, ours.predict_proba(X))
    np.testing.assert_allclose(ours.train_path_[-1], log_loss(y, expected), rtol=1e-6)


@pytest.mark.slow
def test_stochastic_gradient_descent_comes_near(rng):
    X, y = drawn("binary", rng, (400, 6))
    best = TrajectoryLogisticRegression(0.3, **TIGHT).fit(X, y)
    model = TrajectoryLogisticRegression(
        0.3, solver="sgd", max_iter=200, power_t=0.5, random_state=0, loo=False
    ).fit(X, y)
    gap = model.objective_path_ - best.objective_path_[-1]
    assert 0 <= gap[-1] < 1e-3 * gap[0]
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.coef_path_, model.coef_path_)
    other = clone(model).set_params(random_state=1).fit(X, y)
    assert not np.array_equal(other.coef_path_, model.coef_path_)


@pytest.mark.parametrize("name", ALL)
def test_recorded_paths_are_those_of_predictions(name, rng):
    X, y = drawn(ALL[name][1], rng)
    model = model_of(name, max_iter=7, tol=0, loo=False).fit(X, y)
    predictions = raw_predictions(model, X)
    classes = getattr(model, "classes_", None)
    losses = loss(name, y, predictions, classes)
    np.testing.assert_allclose(model.train_path_, losses.mean(axis=1), rtol=1e-10)
    np.testing.assert_allclose(model.staged_loss(X, y), model.train_path_, rtol=1e-10)
    some = model.staged_loss(X[:9], y[:9])
    np.testing.assert_allclose(some, losses[:, :9].mean(axis=1), rtol=1e-10)
    assert not model.coef_path_[0].any()
    # Amounts begin at a power of four above their mean, others here at zero.
    begins = np.log(4) if name.startswith("gamma") else 0
    np.testing.assert_allclose(model.intercept_path_[0], begins, atol=1e-12)
    for t in (0, 3, 7):
        stopped = model.at_iteration(t)
        np.testing.assert_array_equal(
            stopped.predict(X), list(model.staged_predict(X))[t]
        )
    # A full Newton step may go too far at first.
    after = slice(7, None) if name in NEWTON else slice(1, 3)
    objective = model.objective_path_
    assert np.all(objective[after] < objective[0])
    assert name in NEWTON or objective[2] < objective[1]
    has_memory = model.get_params().get("solver") not in ("sgd", "newton")
    assert hasattr(model, "risk_path_") == has_memory


@pytest.mark.parametrize("name", ["poisson", "gamma", "tweedie", "huber"])
def test_scores_are_those_of_scikit_learn(name, rng):
    """The share of the deviance that is explained, or R^2."""
    X, y = drawn(MODELS[name][1], rng)
    weights = rng.integers(0, 3, len(y)).astype(float)
    theirs = clone(COUNTERPARTS[name]).fit(X, y)
    ours = model_of(name, max_iter=20, loo=False).fit(X, y)
    # At the same coefficients, not at the minimum.
    theirs.coef_, theirs.intercept_ = ours.coef_, ours.intercept_
    if name != "huber":
        of_r2 = r2_score(y, ours.predict(X), sample_weight=weights)
        assert abs(ours.score(X, y, weights) - of_r2) > 1e-3
    for own in (None, weights):
        found, expected = (model.score(X, y, own) for model in (ours, theirs))
        assert found == pytest.approx(expected, rel=1e-10)


def test_the_pinball_loss_is_that_of_scikit_learn_but_for_its_corner(rng):
    X, y = drawn("real", rng, (200, 3))
    theirs = QuantileRegressor(quantile=0.7, alpha=0).fit(X, y)
    ours = TrajectoryQuantileRegressor(0, quantile=0.7, smoothing=0.02, **TIGHT)
    ours.fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=0.03)
    pinball = partial(mean_pinball_loss, y, alpha=0.7)
    gap = pinball(ours.predict(X)) - pinball(theirs.predict(X))
    assert 0 <= gap < 1e-3


@pytest.mark.parametrize("weighted", [False, True])
def test_smoothed_quantiles_are_minima(weighted, rng):
    """By a solver that knows only the values."""
    X, y = drawn("real", rng)
    weights = rng.uniform(0.5, 2, len(y)) if weighted else np.ones(len(y))
    model = model_of("quantile", **TIGHT).fit(X, y, sample_weight=weights)

    def objective(coef):
        residual = y - X @ coef[:-1] - coef[-1]
        size = np.abs(residual)
        rounded = np.where(size < 0.5, residual**2 + 0.25, size)
        losses = -0.1 * residual + 0.5 * rounded
        return np.average(losses, weights=weights) + 0.05 * coef[:-1] @ coef[:-1]

    best = minimize(objective, np.zeros(7), method="BFGS", options={"gtol": 1e-8})
    found = np.append(model.coef_, model.intercept_)
    np.testing.assert_allclose(found, best.x, atol=1e-5)
    assert model.objective_path_[-1] == pytest.approx(best.fun, rel=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_paths_of_quantiles_are_the_pinball_loss(weighted, rng):
    """Of training rows and of all held-out rows, though the fit rounds its corner."""
    X, y = drawn("real", rng)
    weights = rng.uniform(0.5, 2, len(y)) if weighted else None
    model = model_of("quantile", cv=3, loo=True, risk=True, max_iter=20)
    model.fit(X, y, sample_weight=weights)
    path = [
        mean_pinball_loss(y, predictions, alpha=0.4, sample_weight=weights)
        for predictions in model.staged_predict(X)
    ]
    np.testing.assert_allclose(model.train_path_, path, rtol=1e-10)
    np.testing.assert_allclose(model.staged_loss(X, y, weights), path, rtol=1e-10)
    for name in ("cv", "loo", "risk"):
        rows = getattr(model, f"{name}_indices_")
        rows = np.hstack(rows) if name == "cv" else rows
        path = [
            mean_pinball_loss(
                y[rows],
                predictions,
                alpha=0.4,
                sample_weight=None if weights is None else weights[rows],
            )
            for predictions in np.asarray(getattr(model, f"{name}_prediction_path_"))
        ]
        found = getattr(model, f"{name}_path_")
        # Predictions of the memory matrix are kept as factors of low rank.
        rounding = 1e-4 if name == "risk" else 1e-8
        np.testing.assert_allclose(found, path, rtol=rounding, err_msg=name)


def test_newton_converges_quadratically(rng):
    X, y = drawn("binary", rng)
    model = TrajectoryLogisticRegression(solver="newton", tol=1e-12).fit(X, y)
    assert model.n_iter_ < 10
    gap = np.abs(model.coef_path_ - model.coef_path_[-1]).max(axis=(1, 2))
    assert gap[4] < 10 * gap[3] ** 2


@pytest.mark.parametrize("constant", [False, True])
def test_automatic_scale_counts_rows_by_their_weight(constant, rng):
    X, y = drawn("real", rng)
    y = np.where(rng.random(60) < 0.7, 1.0, y) if constant else y
    n_times = rng.integers(0, 4, 60)
    model = TrajectoryHuberRegressor(loo=False, tol=0, max_iter=20)
    weighted = clone(model).fit(X, y, sample_weight=n_times)
    repeated = clone(model).fit(np.repeat(X, n_times, 0), np.repeat(y, n_times))
    assert weighted.scale_ == pytest.approx(repeated.scale_, rel=1e-12)
    np.testing.assert_allclose(weighted.coef_path_, repeated.coef_path_, **EXACT)
    other_unit = clone(model).fit(X, y, sample_weight=0.1 * n_times)
    assert other_unit.scale_ == pytest.approx(weighted.scale_, rel=1e-12)


def test_automatic_scale_is_the_median_deviation(rng):
    X, y = drawn("real", rng)
    for n_rows in (59, 60):
        model = TrajectoryHuberRegressor(max_iter=1).fit(X[:n_rows], y[:n_rows])
        distance = np.abs(y[:n_rows] - np.median(y[:n_rows]))
        assert model.scale_ == pytest.approx(1.4826 * np.median(distance), rel=1e-12)
