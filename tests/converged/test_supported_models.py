"""Models whose leave-one-out is exact, own estimators, and those that choose."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    ElasticNet,
    ElasticNetCV,
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegressionCV,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    RidgeCV,
    TweedieRegressor,
)
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC

from skacv import (
    IterativeRidge,
    TrajectoryElasticNet,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryRegressor,
    TrajectoryTweedieRegressor,
    approximate_loo,
)
from skacv.optim.penalties import MCP
from skacv.optim.penalties import ElasticNet as ElasticNetPenalty
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


EXACT = {
    "least squares": LinearRegression(),
    "least squares through zero": LinearRegression(fit_intercept=False),
    "normal": TweedieRegressor(power=0, alpha=0.0, tol=1e-12, max_iter=10**4),
    "kernel": KernelRidge(alpha=0.5, kernel="rbf", gamma=0.2),
    "polynomial": KernelRidge(alpha=2.0, kernel="polynomial", degree=2),
    "own kernel": KernelRidge(alpha=0.5, kernel=lambda x, z: 1 + x @ z),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", EXACT)
def test_least_squares_and_kernels_are_exact(name, weighted, data):
    X, y, weights = data
    weights = weights if weighted else None
    model = fit(clone(EXACT[name]), X, y, weights)
    found = approximate_loo(model, X, y, sample_weight=weights)
    exact = refitted(model, X, y, range(60), weights)
    atol = 1e-6 if name == "normal" else 1e-9
    assert_allclose(found.predictions, exact, rtol=0, atol=atol)
    assert_allclose(found.loss, (y - exact) ** 2, rtol=0, atol=10 * atol)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("class_weight", [None, {0: 1.0, 1: 3.0, 2: 2.0}])
def test_ridge_of_labels_is_exact(n_classes, class_weight, data):
    X, y, weights = data
    labels = np.digitize(y, np.quantile(y, [0.4, 0.7][: n_classes - 1]))
    if class_weight and n_classes == 2:
        class_weight = {0: 1.0, 1: 3.0}
    model = RidgeClassifier(0.7, class_weight=class_weight)
    model.fit(X, labels, sample_weight=weights)
    found = approximate_loo(model, X, labels, sample_weight=weights)
    exact = refitted(model, X, labels, range(60), weights)
    assert_allclose(found.predictions, exact, rtol=0, atol=1e-9)
    codes = labels if n_classes == 2 else np.eye(3)[labels]
    losses = (exact - (2 * codes - 1)) ** 2
    expected = losses if n_classes == 2 else losses.mean(axis=1)
    assert_allclose(found.loss, expected, rtol=0, atol=1e-9)


def test_kernels_of_several_targets_and_of_matrices(data):
    X, y, weights = data
    Y, alphas = np.column_stack([y, X[:, 0] - y**2]), np.array([0.3, 20.0])
    model = KernelRidge(alpha=alphas, kernel="rbf").fit(X, Y, sample_weight=weights)
    found = approximate_loo(model, X, Y, sample_weight=weights)
    exact = refitted(model, X, Y, range(60), weights)
    assert_allclose(found.predictions, exact, rtol=0, atol=1e-9)
    matrix = rbf_kernel(X)
    given = KernelRidge(alpha=alphas, kernel="precomputed")
    given.fit(matrix, Y, sample_weight=weights)
    same = approximate_loo(given, matrix, Y, sample_weight=weights)
    assert_allclose(same.predictions, exact, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="fitted to 60"):
        approximate_loo(model, X[:50], Y[:50])
    sigmoid = KernelRidge(kernel="sigmoid").fit(X, y)
    with pytest.raises(ValueError, match="positive semidefinite kernels only"):
        approximate_loo(sigmoid, X, y)


class GammaNet(GammaRegressor):
    """As from scikit-learn 1.10 on, with an l1 norm."""

    def __init__(self, *, alpha=1.0, l1_ratio=None):
        super().__init__(alpha=alpha)
        self.l1_ratio = l1_ratio

    def fit(self, X, y):
        penalty = ElasticNetPenalty(1.0, self.l1_ratio)
        model = TrajectoryRegressor(self.alpha, loss="gamma", penalty=penalty)
        model.set_params(**CURVED, risk=False).fit(X, y)
        self.coef_, self.intercept_ = model.coef_, model.intercept_
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return np.exp(X @ self.coef_ + self.intercept_)


def test_an_l1_norm_of_a_generalized_linear_model(data):
    X, y, _ = data
    amounts = np.exp(y / 2)
    model = GammaNet(alpha=0.3, l1_ratio=0.5).fit(X, amounts)
    assert not model.coef_.all()
    found = approximate_loo(model, X, amounts)
    rows = np.arange(0, 60, 3)
    exact, before = refitted(model, X, amounts, rows), model.predict(X[rows])
    error = np.abs(found.predictions[rows] - exact)
    assert np.median(error) < 0.03 * np.median(np.abs(before - exact))


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
        (
            TrajectoryTweedieRegressor(0.1, power=1.3, **CURVED),
            TweedieRegressor(alpha=0.1, power=1.3, tol=1e-10, max_iter=10**4),
            "counts",
        ),
    ],
    ids=["logistic", "elastic_net", "multinomial", "svc", "poisson", "tweedie"],
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
