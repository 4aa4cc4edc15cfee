"""Models whose leave-one-out is exact, own estimators, and those that choose."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import (
    ElasticNet,
    ElasticNetCV,
    HuberRegressor,
    Lasso,
    LassoCV,
    LogisticRegressionCV,
    PoissonRegressor,
    Ridge,
    RidgeCV,
)
from sklearn.svm import LinearSVC

from skacv import (
    IterativeRidge,
    TrajectoryElasticNet,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    approximate_loo,
)
from skacv.optim.penalties import MCP
from tests.refits import logistic, refitted

from .cases import fit


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_ridge_is_exact(weighted, fit_intercept, wide, data, rng):
    X, y, weights = data
    X = np.hstack([X, rng.standard_normal((60, 100))]) if wide else X
    weights = weights if weighted else None
    model = fit(Ridge(0.7, fit_intercept=fit_intercept), X, y, weights)
    found = approximate_loo(model, X, y, sample_weight=weights)
    exact = refitted(model, X, y, range(60), weights)
    assert_allclose(found.predictions, exact, rtol=0, atol=1e-10)
    assert_allclose(found.loss, (y - exact) ** 2, rtol=0, atol=1e-9)
    mean = np.average((y - exact) ** 2, weights=weights)
    assert_allclose(found.mean, mean, rtol=1e-10)
    assert found.method == "alo"
    for other in (sparse.csr_matrix(X), sparse.csr_array(X)):
        same = approximate_loo(model, other, y, sample_weight=weights)
        assert_allclose(same.predictions, exact, rtol=0, atol=1e-8)


def test_several_targets_are_exact_each_at_its_alpha(data):
    X, y, weights = data
    Y = np.column_stack([y, X[:, 0] - y**2])
    model = Ridge(np.array([0.3, 20.0])).fit(X, Y, sample_weight=weights)
    found = approximate_loo(model, X, Y, sample_weight=weights)
    exact = refitted(model, X, Y, range(60), weights)
    assert_allclose(found.predictions, exact, rtol=0, atol=1e-10)
    assert_allclose(found.loss, ((Y - exact) ** 2).mean(axis=1), rtol=1e-9)
    assert found.leverages.shape == Y.shape


def test_mean_form_is_renormalised(data):
    # Without an l1 norm the elastic net is a ridge whose alpha is n times as large
    # and, without a row, n - 1 times.
    X, y, _ = data
    model = ElasticNet(0.5, l1_ratio=0, tol=1e-13, max_iter=100_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    found = approximate_loo(model, X, y).predictions
    exact = refitted(Ridge(0.5 * 59), X, y, range(60))
    assert_allclose(found, exact, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (
            TrajectoryLasso(0.1, tol=1e-12, max_iter=5000, risk=False, loo=False),
            Lasso(0.1, tol=1e-12, max_iter=10**5),
        ),
        (
            TrajectoryElasticNet(
                [0.5, 0.1],
                l1_ratio=0.3,
                tol=1e-12,
                max_iter=5000,
                risk=False,
                loo=False,
            ),
            ElasticNet(0.1, l1_ratio=0.3, tol=1e-12, max_iter=10**5),
        ),
        (
            IterativeRidge(
                2.0, solver="nesterov", tol=1e-12, max_iter=5000, risk=False, loo=False
            ),
            Ridge(2.0),
        ),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_own_estimators_are_as_scikit_learns(ours, theirs, data):
    X, y, weights = data
    ours.fit(X, y, sample_weight=weights)
    theirs.fit(X, y, sample_weight=weights)
    found = approximate_loo(ours, X, y, sample_weight=weights)
    same = approximate_loo(theirs, X, y, sample_weight=weights)
    assert_allclose(found.predictions, same.predictions, rtol=0, atol=1e-7)


CURVED = {"tol": 1e-13, "max_iter": 20_000, "loo": False}


@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        (TrajectoryLogisticRegression(0.5, **CURVED), logistic(0.5), "binary"),
        (
            TrajectoryLogisticRegression(0.5, l1_ratio=0.5, **CURVED),
            logistic(0.5, 0.5, solver="saga", tol=1e-11),
            "binary",
        ),
        (TrajectoryLogisticRegression(0.5, **CURVED), logistic(0.5), "classes"),
        (
            TrajectoryLinearSVC(0.5, fit_intercept=False, **CURVED),
            LinearSVC(C=0.5, fit_intercept=False, tol=1e-10, max_iter=10**6),
            "classes",
        ),
        (
            TrajectoryPoissonRegressor([1.0, 0.1], **CURVED),
            PoissonRegressor(alpha=0.1, tol=1e-10, max_iter=10**4),
            "counts",
        ),
    ],
    ids=["logistic", "elastic_net", "multinomial", "svc", "poisson"],
)
def test_own_curved_estimators_are_as_scikit_learns(ours, theirs, kind, data):
    X, y, weights = data
    quantiles = np.quantile(y, [0.5] if kind == "binary" else [0.3, 0.6])
    target = np.searchsorted(quantiles, y)
    ours.fit(X, target, sample_weight=weights)
    theirs.fit(X, target, sample_weight=weights)
    found = approximate_loo(ours, X, target, sample_weight=weights)
    same = approximate_loo(theirs, X, target, sample_weight=weights)
    assert_allclose(found.predictions, same.predictions, rtol=0, atol=1e-5)


def test_own_huber_is_as_scikit_learns(data):
    X, y, weights = data
    theirs = HuberRegressor(alpha=0.5, tol=1e-10, max_iter=10**4)
    theirs.fit(X, y, sample_weight=weights)
    ours = TrajectoryHuberRegressor(0.5, scale=theirs.scale_, **CURVED)
    ours.fit(X, y, sample_weight=weights)
    found = approximate_loo(ours, X, y, sample_weight=weights)
    same = approximate_loo(theirs, X, y, sample_weight=weights)
    assert_allclose(found.predictions, same.predictions, rtol=0, atol=1e-5)


def test_own_smoothed_hinge_is_near_refits(data):
    X, y, _ = data
    target = (y > np.median(y)).astype(int)
    # Rows that cross the kinks of the hinge when another is left out are few where its
    # smooth part is wide.
    model = TrajectoryLinearSVC(0.1, loss="smoothed_hinge", smoothing=1.0, **CURVED)
    model.fit(X, target)
    rows = np.arange(0, len(X), 3)
    found = approximate_loo(model, X, target).predictions[rows]
    exact = refitted(model, X, target, rows)
    moved = np.abs(model.decision_function(X[rows]) - exact)
    assert np.median(np.abs(found - exact)) < 0.05 * np.median(moved)


@pytest.mark.parametrize(
    "ours",
    [
        IterativeRidge([20.0, 2.0], solver="nesterov", risk=False, **CURVED),
        TrajectoryLasso([0.5, 0.1], risk=False, **CURVED),
        TrajectoryPoissonRegressor([1.0, 0.1], **CURVED),
        TrajectoryLogisticRegression([0.05, 0.5], class_weight="balanced", **CURVED),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_own_estimators_at_the_strength_in_force(ours, data):
    X, y, weights = data
    y = np.searchsorted(np.quantile(y, [0.4]), y)
    weights = np.where(np.arange(60) % 7 == 0, 0, weights)
    ours.fit(X, y, sample_weight=weights)
    name = "C" if hasattr(ours, "C") else "alpha"
    path, first = getattr(ours, f"{name}_path_"), getattr(ours, name)[0]
    earlier = ours.at_iteration(np.flatnonzero(path == path[0])[-1])
    alone = clone(ours).set_params(**{name: first}).fit(X, y, sample_weight=weights)
    found = approximate_loo(earlier, X, y, sample_weight=weights)
    same = approximate_loo(alone, X, y, sample_weight=weights)
    assert_allclose(found.predictions, same.predictions, rtol=0, atol=1e-8)
    last = approximate_loo(ours, X, y, sample_weight=weights)
    assert np.abs(last.predictions - same.predictions).max() > 1e-3


class TrajectoryMCP(TrajectoryLasso):
    """A new estimator: nothing is said to approximate_loo about it."""

    def _penalty(self, strength, n_features):
        return MCP(strength, 8.0)


def test_an_estimator_with_a_new_penalty(data):
    X, y, weights = data
    X, y = X - 0.5, y + 3
    model = TrajectoryMCP(0.6, risk=False, **CURVED).fit(X, y, sample_weight=weights)
    assert 0 < (model.coef_ == 0).sum() < 6
    assert (np.abs(model.coef_) < 8 * 0.6).all()
    found = approximate_loo(model, X, y, sample_weight=weights).predictions
    exact = refitted(model, X, y, range(60), weights)
    moved = np.abs(model.predict(X) - exact)
    assert np.median(np.abs(found - exact)) < 0.02 * np.median(moved)


@pytest.mark.parametrize("method", ["alo", "ij", "randomized"])
def test_cv_variants_are_the_model_at_their_choice(method, data):
    X, y, _ = data
    labels = (y > np.median(y)).astype(int)
    ridge = RidgeCV([0.1, 1.0, 10.0]).fit(X, y)
    lasso = LassoCV(tol=1e-8).fit(X, y)
    net = ElasticNetCV(l1_ratio=[0.3, 0.8], tol=1e-8).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chosen = LogisticRegressionCV(Cs=[0.1, 0.5], tol=1e-8).fit(X, labels)
    pairs = [
        (ridge, Ridge(ridge.alpha_), y),
        (lasso, Lasso(lasso.alpha_, tol=1e-8), y),
        (net, ElasticNet(net.alpha_, l1_ratio=net.l1_ratio_, tol=1e-8), y),
        (chosen, logistic(C=float(np.ravel(chosen.C_)[0])), labels),
    ]
    for model, same, target in pairs:
        results = [
            approximate_loo(m, X, target, method=method, random_state=0).predictions
            for m in (model, same.fit(X, target))
        ]
        assert_allclose(*results, rtol=0, atol=1e-4)
