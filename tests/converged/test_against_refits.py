"""Leave-one-out of fitted models against refits by their own classes."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LassoCV,
    PoissonRegressor,
    TweedieRegressor,
)
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from skacv import approximate_loo
from skacv.optim.losses import Gamma, Tweedie
from tests.refits import (
    hinge,
    log_loss,
    logistic,
    multinomial_loss,
    poisson_deviance,
    refitted,
    squared_error,
    squared_hinge,
)

from .cases import fit, labels_of


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


@pytest.mark.filterwarnings("ignore:LogisticRegression changes a lot")
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


@pytest.mark.filterwarnings("ignore:LogisticRegression changes a lot")
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


AMOUNTS = {
    "gamma": (GammaRegressor(alpha=0.1, tol=1e-9, max_iter=1000), Gamma()),
    "tweedie": (
        TweedieRegressor(power=1.5, alpha=0.1, tol=1e-9, max_iter=1000),
        Tweedie(1.5),
    ),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", AMOUNTS)
def test_amounts(name, weighted, data, rng):
    X, y, weights = data
    amounts = rng.gamma(3.0, np.exp(np.clip(y / 3, -2, 2)))
    if name == "tweedie":
        amounts[::5] = 0
    model, loss = AMOUNTS[name]

    def deviance(target, mean):
        return loss.value(target, np.log(mean))

    weights = weights if weighted else None
    error = median_error(clone(model), X, amounts, deviance, np.arange(40), weights)
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


def test_hinge_warns_of_rows_on_the_margin(rng):
    X = rng.standard_normal((200, 5))
    y = labels_of(2 * X[:, 0], rng)
    model = SVC(kernel="linear", C=100.0, tol=1e-6).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="on the margin"):
        approximate_loo(model, X, y)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_median_errors_hold_over_seeds(seed):
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
