"""Leave-one-out of fitted models against refits by their own classes."""

import tracemalloc
import warnings
from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import (
    ElasticNet,
    ElasticNetCV,
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LassoCV,
    LogisticRegression,
    LogisticRegressionCV,
    MultiTaskLasso,
    PoissonRegressor,
    Ridge,
    RidgeCV,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

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
from tests.refits import (
    hinge,
    log_loss,
    logistic,
    multinomial_loss,
    outcome,
    poisson_deviance,
    refitted,
    squared_error,
    squared_hinge,
)


def fit(estimator, X, y, sample_weight=None):
    kwargs = {} if sample_weight is None else {"sample_weight": sample_weight}
    return estimator.fit(X, y, **kwargs)


def median_error(estimator, X, y, loss, rows, sample_weight=None, method="alo"):
    """Median relative error of the loss of these rows, against refits."""
    fit(estimator, X, y, sample_weight)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        found = approximate_loo(
            estimator, X, y, method=method, sample_weight=sample_weight
        )
    exact = loss(y[rows], refitted(estimator, X, y, rows, sample_weight))
    assert_allclose(found.loss[rows], loss(y[rows], found.predictions[rows]), atol=1e-9)
    return float(np.median(np.abs(found.loss[rows] - exact) / exact))


@pytest.fixture
def data(rng):
    X = rng.standard_normal((60, 6)) + 0.5
    y = X @ rng.standard_normal(6) + rng.standard_normal(60)
    return X, y, rng.uniform(0.3, 3, 60)


def labels_of(scores, rng):
    return (rng.random(len(scores)) < 1 / (1 + np.exp(-scores))).astype(int)


# ------------------------------------------------------------------ exact models


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
    name = ours._spec().strengths.name
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


# ------------------------------------------------------- against refits: the bars


def test_logistic_l2(rng):
    X = rng.standard_normal((300, 30))
    y = labels_of(X @ rng.standard_normal(30) / 2, rng)
    assert median_error(logistic(), X, y, log_loss, np.arange(60)) < 0.01


@pytest.mark.parametrize("method", ["alo", "newton"])
def test_lasso(method, rng):
    X = rng.standard_normal((300, 600))
    y = X[:, :15] @ rng.standard_normal(15) + 2 * rng.standard_normal(300)
    alpha = LassoCV(cv=5).fit(X, y).alpha_
    model = Lasso(alpha, tol=1e-8, max_iter=10**5)
    error = median_error(model, X, y, squared_error, np.arange(30), method=method)
    assert error < 0.03


# It draws the order of its coordinates, and in some orders never comes to 1e-8.
LIBLINEAR = {"solver": "liblinear", "intercept_scaling": 10, "tol": 1e-6}


def test_logistic_l1(rng):
    X = rng.standard_normal((300, 600))
    # As strong a signal in any draw. C is near what five folds chose among six.
    y = labels_of(X[:, :15] @ rng.choice([-1.0, 1.0], 15), rng)
    model = logistic(0.12, 1.0, **LIBLINEAR)
    assert median_error(model, X, y, log_loss, np.arange(60)) < 0.03


@pytest.mark.parametrize("method", ["alo", "newton"])
@pytest.mark.parametrize(
    ("C", "l1_ratio"), [(1.0, 0.0), (0.5, 1.0), (0.5, 0.5), (np.inf, 0.0)]
)
def test_multinomial(C, l1_ratio, method, rng):
    X = rng.standard_normal((150, 5))
    y = np.argmax(X[:, :3] + rng.gumbel(size=(150, 3)), axis=1)
    solver = "saga" if l1_ratio else "lbfgs"
    model = logistic(C, l1_ratio, solver=solver, tol=1e-6)
    error = median_error(model, X, y, multinomial_loss, np.arange(15), method=method)
    assert error < 0.02


def test_scores_of_several_classes_are_those_of_refits(rng):
    """Up to no constant: their sum is what the solver leaves it at."""
    X = rng.standard_normal((150, 5)) + 3 * rng.standard_normal(5)
    y = np.argmax(X[:, :3] - X[:, :3].mean(axis=0) + rng.gumbel(size=(150, 3)), axis=1)
    model = logistic(0.1, 0.8, solver="saga", tol=1e-7, max_iter=10**5).fit(X, y)
    assert not model.coef_.all()
    found = approximate_loo(model, X, y).predictions
    same = approximate_loo(model, sparse.csr_matrix(X), y).predictions
    assert_allclose(found, same, rtol=0, atol=1e-8)
    exact = refitted(model, X, y, range(15))
    moved = np.abs(model.decision_function(X[:15]) - exact)
    # Where a coefficient leaves zero without a row, the scores of that row are off by
    # more than those of the others together: not a mean.
    assert np.median(np.abs(found[:15] - exact)) < 0.05 * np.median(moved)
    assert np.median(np.abs((found[:15] - exact).mean(axis=1))) < 0.1 * np.median(
        np.abs((model.decision_function(X[:15]) - exact).mean(axis=1))
    )


def test_logistic_weights_and_classes(data, rng):
    X, y, weights = data
    names = np.where(y > 1, "yes", "no")
    labels = (names == "yes").astype(int)
    model = logistic(class_weight={"yes": 2.0, "no": 0.5})
    model.fit(X, names, sample_weight=weights)
    found = approximate_loo(model, X, names, sample_weight=weights)
    by_hand = logistic()
    all_weights = weights * np.where(labels == 1, 2.0, 0.5)
    by_hand.fit(X, labels, sample_weight=all_weights)
    same = approximate_loo(by_hand, X, labels, sample_weight=all_weights)
    assert_allclose(found.predictions, same.predictions, rtol=0, atol=1e-6)
    assert_allclose(found.mean, np.average(found.loss, weights=weights))
    exact = refitted(model, X, names, range(60), weights)
    relative = np.abs(log_loss(labels, exact) - found.loss) / log_loss(labels, exact)
    assert np.median(relative) < 0.02


@pytest.mark.parametrize("weighted", [False, True])
def test_balanced_class_weights_are_those_of_the_fit(weighted, data):
    X, y, weights = data
    weights = weights if weighted else None
    labels = (y > 1).astype(int)
    for model in (
        logistic(class_weight="balanced"),
        LinearSVC(class_weight="balanced"),
    ):
        model.set_params(tol=1e-8, max_iter=100_000)
        fit(model, X, labels, weights)
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            approximate_loo(model, X, labels, sample_weight=weights)


def test_elastic_net(rng):
    X = rng.standard_normal((150, 200))
    y = X[:, :5].sum(axis=1) + rng.standard_normal(150)
    # Somewhat above what five folds choose, 0.12 to 0.26: the less of a penalty, the
    # more coefficients come and go with a row.
    model = ElasticNet(0.3, l1_ratio=0.5, tol=1e-8, max_iter=10**5)
    assert median_error(model, X, y, squared_error, np.arange(150)) < 0.03


def test_huber(data, rng):
    X, y, weights = data
    y = y + 8 * (np.arange(60) % 10 == 0)
    model = HuberRegressor(alpha=0.5, tol=1e-8, max_iter=1000)
    model.fit(X, y, sample_weight=weights)
    found = approximate_loo(model, X, y, sample_weight=weights)
    exact = refitted(model, X, y, range(60), weights)
    moved = np.abs(model.predict(X) - exact)
    # The scale is held, where a refit finds its own.
    assert np.median(np.abs(found.predictions - exact)) < 0.1 * np.median(moved)


@pytest.mark.parametrize("weighted", [False, True])
def test_poisson(weighted, data, rng):
    X, y, weights = data
    counts = rng.poisson(np.exp(np.clip(y / 3, -2, 2)))
    model = PoissonRegressor(alpha=0.1, tol=1e-9, max_iter=1000)
    weights = weights if weighted else None
    error = median_error(model, X, counts, poisson_deviance, np.arange(40), weights)
    assert error < 0.01


@pytest.mark.parametrize(("loss", "bar"), [("squared_hinge", 0.02), ("hinge", 0.05)])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_linear_svc(loss, bar, fit_intercept, rng):
    X = rng.standard_normal((100, 150)) / np.sqrt(150)
    y = labels_of(4 * X[:, :20].sum(axis=1), rng)
    model = LinearSVC(
        C=1.0,
        loss=loss,
        fit_intercept=fit_intercept,
        intercept_scaling=2.0,
        tol=1e-7,
        max_iter=10**6,
        class_weight={0: 1.0, 1: 0.7},
    )
    function = {"squared_hinge": squared_hinge, "hinge": hinge}[loss]
    exact = function(y[:60], refitted(model, X, y, range(60)))
    # Rows beyond the margin cost nothing, with or without them.
    rows = np.flatnonzero(exact > 0.01)
    assert median_error(model, X, y, function, rows) < bar


def test_linear_svc_of_several_classes(rng):
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    weights = rng.uniform(0.5, 2, len(y))
    model = LinearSVC(C=0.1, tol=1e-8, max_iter=10**6, class_weight={0: 2.0, 1: 0.5})
    model.fit(X, y, sample_weight=weights)
    assert approximate_loo(model, X, y, sample_weight=weights).loss.shape == y.shape
    found = approximate_loo(model, X, y, sample_weight=weights).predictions
    rows = np.arange(0, 150, 10)
    exact = refitted(model, X, y, rows, weights)
    moved = np.abs(model.decision_function(X[rows]) - exact)
    assert np.abs(found[rows] - exact).mean() < 0.1 * moved.mean()


@pytest.mark.parametrize("is_sparse", [False, True])
def test_svc(is_sparse, rng):
    X = rng.standard_normal((100, 150)) / np.sqrt(150)
    y = labels_of(4 * X[:, :20].sum(axis=1), rng)
    X = sparse.csr_matrix(X) if is_sparse else X
    weights = rng.uniform(0.5, 2, 100)
    model = SVC(kernel="linear", C=1.0, tol=1e-8, class_weight={0: 1.0, 1: 0.7})
    model.fit(X, y, sample_weight=weights)
    found = approximate_loo(model, X, y, sample_weight=weights)
    exact = hinge(y[:50], refitted(model, X, y, range(50), weights))
    relative = np.abs(found.loss[:50] - exact)[exact > 0.01] / exact[exact > 0.01]
    assert np.median(relative) < 0.05


def test_hinge_says_where_it_fails(rng):
    X = rng.standard_normal((200, 5))
    y = labels_of(2 * X[:, 0], rng)
    model = SVC(kernel="linear", C=100.0, tol=1e-6).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="on the margin"):
        approximate_loo(model, X, y)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_the_bars_hold_over_seeds(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 600))
    y = X[:, :15] @ rng.standard_normal(15) + 2 * rng.standard_normal(300)
    labels = labels_of(X[:, :15] @ rng.standard_normal(15), rng)
    model = Lasso(LassoCV(cv=5).fit(X, y).alpha_, tol=1e-8, max_iter=10**5)
    assert median_error(model, X, y, squared_error, np.arange(300)) < 0.03
    model = logistic(0.14, 1.0, **LIBLINEAR)
    assert median_error(model, X, labels, log_loss, np.arange(300)) < 0.03
    X = X[:, :30]
    labels = labels_of(X @ rng.standard_normal(30) / 2, rng)
    assert median_error(logistic(), X, labels, log_loss, np.arange(300)) < 0.01


# ---------------------------------------------------------------- the other methods


def test_randomized_is_near_and_reproducible(rng):
    X = rng.standard_normal((300, 150))
    y = X @ rng.standard_normal(150) / 12 + rng.standard_normal(300)
    model = Ridge(30.0).fit(X, y)
    exact = approximate_loo(model, X, y)
    settings = {"method": "randomized", "n_probes": 400}
    found = approximate_loo(model, X, y, random_state=0, **settings)
    assert_allclose(found.mean, exact.mean, rtol=0.05)
    assert np.corrcoef(found.predictions, exact.predictions)[0, 1] > 0.98
    again = approximate_loo(model, X, y, random_state=0, **settings)
    assert again.mean == found.mean
    other = approximate_loo(model, X, y, random_state=1, **settings)
    assert other.mean != found.mean
    # Leverages of 3/4 on average, of which few probes see some near 1.
    X, y = X[:200], y[:200]
    model = Ridge(1.0).fit(X, y)
    settings["n_probes"] = 4
    with pytest.warns(UserWarning, match="The largest leverage is"):
        few = approximate_loo(model, X, y, random_state=0, **settings)
    assert np.isfinite(few.predictions).all()


def test_jackknife_moves_less(data):
    X, y, _ = data
    model = Ridge(0.7).fit(X, y)
    newton = approximate_loo(model, X, y, method="newton")
    first_order = approximate_loo(model, X, y, method="ij")
    moved = np.abs(first_order.predictions - model.predict(X))
    leverage = newton.leverages
    expected = np.abs(newton.predictions - model.predict(X)) * (1 - leverage)
    assert_allclose(moved, expected, rtol=1e-6, atol=1e-12)


@pytest.mark.filterwarnings("ignore:The largest leverage is")
@pytest.mark.parametrize("method", ["alo", "randomized"])
def test_large_sparse_data_are_not_densified(method, rng):
    n, p, n_stored = 300, 300_000, 20
    columns = rng.integers(0, p, n * n_stored)
    entries = rng.standard_normal(n * n_stored), columns
    X = sparse.csr_matrix((*entries, np.arange(0, n * n_stored + 1, n_stored)), (n, p))
    y = np.asarray(X.sum(axis=1)).ravel() + rng.standard_normal(n)
    model = Ridge(1.0, solver="sparse_cg", tol=1e-10).fit(X, y)
    tracemalloc.start()
    found = approximate_loo(model, X, y, method=method, random_state=0)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A tenth of what X would take, dense.
    assert most < 0.1 * 8 * n * p
    # Columns without an entry change nothing.
    used = X[:, np.unique(columns)].toarray()
    same = approximate_loo(
        Ridge(1.0).fit(used, y), used, y, method=method, random_state=0
    )
    assert_allclose(found.predictions, same.predictions, rtol=0, atol=1e-3)


# ------------------------------------------------------------- pipelines and input


def test_pipelines_are_their_last_step_on_transformed_data(data):
    X, y, _ = data
    model = make_pipeline(
        StandardScaler(), SelectKBest(f_regression, k=4), Ridge(0.5)
    ).fit(X, y)
    found = approximate_loo(model, X, y)
    step = approximate_loo(model[-1], model[:-1].transform(X), y)
    assert_allclose(found.predictions, step.predictions)
    alone = make_pipeline(Ridge(0.5)).fit(X, y)
    expected = approximate_loo(Ridge(0.5).fit(X, y), X, y)
    assert_allclose(approximate_loo(alone, X, y).mean, expected.mean)
    nested = make_pipeline(model[0], make_pipeline(*model[1:]))
    assert_allclose(approximate_loo(nested, X, y).predictions, found.predictions)


def test_the_estimator_is_not_changed(data):
    X, y, _ = data
    for model in (Lasso(0.1).fit(X, y), SVC(kernel="linear").fit(X, y > 0)):
        before = deepcopy(vars(model))
        target = y > 0 if isinstance(model, SVC) else y
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            approximate_loo(model, X, target)
        after = vars(model)
        assert before.keys() == after.keys()
        for name, value in before.items():
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(after[name], value)


def test_the_result_is_frozen(data):
    X, y, _ = data
    result = approximate_loo(Ridge().fit(X, y), X, y)
    with pytest.raises(AttributeError):
        result.mean = 0.0
    spread = np.std(result.loss, ddof=1) / np.sqrt(60)
    assert_allclose(result.standard_error, spread, rtol=1e-10)


def test_unconverged_models_warn_by_how_much(data, rng):
    X, y, _ = data
    # Classes that overlap: where coefficients grow without end, a step is a small part.
    labels = (y + 8 * rng.standard_normal(60) > 1).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(C=0.5, max_iter=3).fit(X, labels)
    with pytest.warns(ConvergenceWarning, match=r"gradient is 0\.\d+ .* times"):
        found = approximate_loo(model, X, labels)
    # One step from there: the whole gradient brings most of the way.
    exact = refitted(logistic(0.5), X, labels, range(60))
    far = np.abs(model.decision_function(X) - exact).mean()
    assert np.abs(found.predictions - exact).mean() < 0.2 * far


def test_a_flat_direction_is_seen(data):
    # The gradient is small along a column of small numbers, the way is not.
    X, y, _ = data
    X = np.column_stack([X, y / 1000])
    model = IterativeRidge(0.0, max_iter=300, tol=0, risk=False, loo=False).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="not at the minimum"):
        approximate_loo(model, X, y)


@pytest.mark.parametrize("method", ["ij", "randomized"])
def test_large_leverages_warn_where_the_method_errs(method, rng):
    X = rng.standard_normal((60, 200))
    y = (X[:, 0] + rng.standard_normal(60) > 0).astype(int)
    model = LinearSVC(C=1.0, tol=1e-8, max_iter=10**6, random_state=0).fit(X, y)
    exact = approximate_loo(model, X, y)
    with pytest.warns(UserWarning, match="The largest leverage"):
        found = approximate_loo(model, X, y, method=method, random_state=0)
    assert found.mean < 0.5 * exact.mean


def test_other_data_warn(data, rng):
    X, y, _ = data
    with pytest.warns(ConvergenceWarning, match="those of the fit"):
        approximate_loo(Ridge().fit(X, y), X, rng.permutation(y))


def test_what_is_not_known_is_named(data):
    X, y, _ = data
    with pytest.raises(NotFittedError):
        approximate_loo(Ridge(), X, y)
    with pytest.raises(TypeError, match=r"GammaRegressor.*models are.*Lasso.*Ridge"):
        approximate_loo(GammaRegressor(), X, y)
    Y = np.column_stack([y, y])
    with pytest.raises(ValueError, match="couples the targets"):
        approximate_loo(MultiTaskLasso(0.1).fit(X, Y), X, Y)
    with pytest.raises(ValueError, match="available are alo, ij, newton, randomized"):
        approximate_loo(Ridge().fit(X, y), X, y, method="exact")
    model = SVC(kernel="linear").fit(X, y > 0)
    with pytest.raises(ValueError, match=r"available are alo\."):
        approximate_loo(model, X, y > 0, method="newton")
    with pytest.raises(ValueError, match="positive=True"):
        approximate_loo(Lasso(0.1, positive=True).fit(X, y), X, y)
    with pytest.raises(ValueError, match="kernel='linear'"):
        approximate_loo(SVC().fit(X, y > 0), X, y > 0)


def test_models_that_minimised_something_else(data):
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=1000).fit(X, y)
    # What scikit-learn up to 1.7 fits against the rest.
    model.solver = "liblinear"
    with pytest.raises(ValueError, match="one multinomial model"):
        approximate_loo(model, X, y)
    joint = LinearSVC(multi_class="crammer_singer", max_iter=10**5).fit(X, y)
    with pytest.raises(ValueError, match="multi_class='ovr'"):
        approximate_loo(joint, X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        average = LogisticRegressionCV(Cs=2, refit=False, max_iter=1000).fit(X, y)
    with pytest.raises(ValueError, match="refit=False"):
        approximate_loo(average, X, y)


@pytest.mark.filterwarnings("ignore:The largest leverage is")
@pytest.mark.parametrize(
    ("model", "kind", "methods"),
    [
        (Ridge(0.7), "real", ["alo", "ij"]),
        (ElasticNet(0.1, tol=1e-12), "real", ["alo", "ij"]),
        (HuberRegressor(tol=1e-10, max_iter=10**4), "real", ["alo", "ij"]),
        (PoissonRegressor(alpha=0.1, tol=1e-12), "counts", ["alo", "ij"]),
        (logistic(0.5, tol=1e-12), "labels", ["alo", "ij"]),
        (LinearSVC(C=0.1, tol=1e-10), "labels", ["alo", "ij"]),
        (LinearSVC(C=0.1, loss="hinge", tol=1e-8), "labels", ["alo"]),
        (SVC(kernel="linear", C=0.1, tol=1e-10), "labels", ["alo"]),
    ],
    ids=lambda value: str(value).split("(")[0],
)
def test_rows_of_weight_zero_are_not_there(model, kind, methods, data, rng):
    X, y, weights = data
    y = {
        "real": y,
        "counts": rng.poisson(np.exp(np.clip(y / 3, -2, 2))),
        "labels": labels_of(y, rng),
    }[kind]
    if kind == "labels":  # more columns than a hinge has rows on the margin
        X = np.hstack([X, rng.standard_normal((60, 20))])
    gone = np.arange(60) % 3 == 0
    weights = np.where(gone, 0, weights)
    model = clone(model)
    if "max_iter" in model.get_params():
        model.set_params(max_iter=10**6)
    model.fit(X, y, sample_weight=weights)
    if kind == "labels":  # to a margin, where rows would stay if they counted
        direction = model.coef_ / (model.coef_ @ model.coef_.T)
        X = X + (gone * (1 - model.decision_function(X)))[:, None] * direction
    stay = {"X": X[~gone], "y": y[~gone], "sample_weight": weights[~gone]}
    alone = clone(model).fit(**stay)
    for method in methods:
        found = approximate_loo(model, X, y, method=method, sample_weight=weights)
        rest = approximate_loo(alone, **stay, method=method)
        expected = outcome(model, X[gone])
        assert_allclose(found.predictions[gone], expected, rtol=0, atol=1e-4)
        for name in ("predictions", "loss", "leverages"):
            expected = getattr(rest, name)
            assert_allclose(getattr(found, name)[~gone], expected, rtol=0, atol=1e-5)
        assert found.mean == pytest.approx(rest.mean, rel=1e-5)
        assert found.standard_error == pytest.approx(rest.standard_error, rel=1e-5)


def test_data_that_do_not_fit_the_model(data):
    X, y, weights = data
    model = Ridge().fit(X, y)
    with pytest.raises(ValueError, match="features"):
        approximate_loo(model, X[:, :3], y)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        approximate_loo(model, X, y[:-1])
    with pytest.raises(ValueError, match="2 outputs"):
        approximate_loo(model, X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        approximate_loo(model, X, y, sample_weight=-weights)
    with pytest.raises(ValueError, match="weight"):
        approximate_loo(model, X, y, sample_weight=np.zeros(60))
    with pytest.raises(ValueError, match="n_probes"):
        approximate_loo(model, X, y, n_probes=1)
    labels = (y > 1).astype(int)
    with pytest.raises(ValueError, match=r"does not know: \[2\]"):
        approximate_loo(logistic().fit(X, labels), X, labels + 1)
    counts = PoissonRegressor().fit(X, labels)
    with pytest.raises(ValueError, match="negative values"):
        approximate_loo(counts, X, labels - 1)
    support = SVC(kernel="linear").fit(X, labels)
    with pytest.raises(ValueError, match="fewer rows"):
        approximate_loo(support, X[:5], labels[:5])


def test_subclasses_are_found_through_their_bases(data):
    class Named(Ridge):
        pass

    X, y, _ = data
    expected = approximate_loo(Ridge().fit(X, y), X, y).predictions
    assert_allclose(approximate_loo(Named().fit(X, y), X, y).predictions, expected)
