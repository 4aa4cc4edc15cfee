"""How exact is approximate_loo of scikit-learn's fitted models? Against refits."""

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    ElasticNet,
    ElasticNetCV,
    HuberRegressor,
    Lasso,
    LassoCV,
    PoissonRegressor,
    Ridge,
)
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, LinearSVC

from skacv import approximate_loo
from skacv.optim.losses import Huber
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

from ..data import drawn_targets
from ..framework import header, line

# Of rows that cost next to nothing, with or without themselves, a relative error
# says little.
LEAST_LOSS = 0.01
METHODS = ("alo", "ij", "randomized")
PRECISE = {"tol": 1e-8, "max_iter": 10**6}
CS = np.geomspace(0.03, 1, 6)


def fixed(model, loss):
    """A setting without anything to choose: ``model_for(X, y)`` and its loss."""
    return lambda X, y: (model, loss)


def lasso(X, y):
    return Lasso(LassoCV(cv=5).fit(X, y).alpha_, **PRECISE), squared_error


def elastic_net(X, y):
    alpha = ElasticNetCV(cv=5).fit(X, y).alpha_
    return ElasticNet(alpha, **PRECISE), squared_error


def sparse_logistic(X, y):
    # To more digits LIBLINEAR may not get. It penalises the intercept, the less the
    # larger its scaling.
    model = logistic(
        l1_ratio=1.0, solver="liblinear", intercept_scaling=10, tol=1e-6, random_state=0
    )
    loose = clone(model).set_params(tol=1e-4)
    search = GridSearchCV(loose, {"C": CS}, scoring="neg_log_loss").fit(X, y)
    return model.set_params(**search.best_params_), log_loss


def huber(X, y):
    """With the loss at the scale of the fit on all rows."""
    model = HuberRegressor(alpha=0.1, tol=1e-8, max_iter=10_000).fit(X, y)
    return model, Huber(model.epsilon * model.scale_).value


LINEAR_SVC = fixed(LinearSVC(random_state=0, **PRECISE), squared_hinge)
POISSON = PoissonRegressor(alpha=0.1, tol=1e-9, max_iter=10_000)
THEIRS = [
    ("`Ridge`, alpha = 1", "real", 30, fixed(Ridge(1.0), squared_error)),
    ("`Ridge`, alpha = 100", "real", 600, fixed(Ridge(100.0), squared_error)),
    ("`LogisticRegression`, l2, C = 1", "binary", 30, fixed(logistic(), log_loss)),
    ("the same, three classes", "classes", 30, fixed(logistic(), multinomial_loss)),
    ("`PoissonRegressor`, alpha = 0.1", "counts", 30, fixed(POISSON, poisson_deviance)),
    ("`HuberRegressor` (the scale is held), alpha = 0.1", "real", 30, huber),
    ("`Lasso`, alpha from `LassoCV`", "real", 600, lasso),
    ("`ElasticNet`, alpha from `ElasticNetCV`", "real", 600, elastic_net),
    ("`LogisticRegression`, l1, C from five folds", "binary", 600, sparse_logistic),
    *(
        ("`LinearSVC`, squared hinge, C = 1", "binary", p, LINEAR_SVC)
        for p in (30, 600)
    ),
]
HINGES = [(600, 0.0005), (600, 0.002), (30, 0.001), (30, 0.01), (30, 0.1), (30, 1.0)]
# Of several classes in one model there are no probes.
METHODS_OF = {"classes": METHODS[:2]}


def converged(n_repeats=3, n_held_out=60):
    """Leave-one-out of models of scikit-learn, against refits without a row.

    approximate_loo of one fit to many digits, n=300, standard normal rows, 30
    nonzero coefficients (p=30) or 15 (p=600), noise with heavy tails (t2) for real
    targets; 60 rows are held out one by one. Median over those that cost more than
    .01 of the relative error of the held-out loss, over three data sets from the
    least to the largest.

    Below, the hinge: SVC(kernel="linear"). Rows on its margin take up that many of
    the p + 1 coefficients (share, mean over data sets). "Median row" as above; "mean
    loss" is the relative error of the mean over the 60 rows, the largest of three
    data sets; "warned", how many of the three came with a warning.
    """
    yield from header("model", "p", *METHODS)
    for name, kind, p, model_for in THEIRS:
        methods = METHODS_OF.get(kind, METHODS)
        results = [
            median_errors(model_for, methods, seed, n_held_out, *data_of(kind, p, seed))
            for seed in range(n_repeats)
        ]
        cells = [f"{min(errors):.1e} to {max(errors):.1e}" for errors in zip(*results)]
        cells += ["-"] * (len(METHODS) - len(cells))
        yield line(name, p, *cells)
    yield ""
    columns = "share of coefficients", "median row", "mean loss", "warned"
    yield from header("p", "C", *columns)
    for p, C in HINGES:
        results = [
            hinge_errors(SVC(kernel="linear", C=C, tol=1e-8), *data, n_held_out)
            for data in (data_of("binary", p, seed) for seed in range(n_repeats))
        ]
        share, median, mean, warned = zip(*results)
        medians = f"{min(median):.1e} to {max(median):.1e}"
        cells = f"{np.mean(share):.2f}", medians, f"{max(mean):.1e}"
        yield line(p, f"{C:g}", *cells, f"{sum(warned)} of {n_repeats}")


def data_of(kind, p, seed):
    return drawn_targets(kind, (300, p), 30 if p == 30 else 15, seed)


def median_errors(model_for, methods, seed, n_held_out, X, y):
    """Median relative error of the loss by each method."""
    model, loss = model_for(X, y)
    model.fit(X, y)
    exact = loss(y[:n_held_out], refitted(model, X, y, range(n_held_out)))
    results = [
        approximate_loo(model, X, y, method=m, random_state=seed) for m in methods
    ]
    return [median_error(item.loss[:n_held_out], exact) for item in results]


def median_error(results, exact):
    costly = exact > LEAST_LOSS
    return np.median(np.abs(results[costly] / exact[costly] - 1))


def hinge_errors(model, X, y, n_held_out):
    """Share of coefficients fixed; error of the median row and the mean; warned."""
    model.fit(X, y)
    exact = hinge(y[:n_held_out], refitted(model, X, y, range(n_held_out)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        results = approximate_loo(model, X, y).loss[:n_held_out]
    on_margin = np.sum(np.abs(model.dual_coef_) < model.C * (1 - 1e-9))
    share = on_margin / (X.shape[1] + 1)
    mean_error = np.abs(results.mean() / exact.mean() - 1)
    return share, median_error(results, exact), mean_error, len(caught)
