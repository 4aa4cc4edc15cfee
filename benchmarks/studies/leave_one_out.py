"""How exact is leave-one-out without refits? Against runs and fits without each row."""

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import Lasso, LassoCV, Ridge
from sklearn.model_selection import GridSearchCV, LeaveOneOut

from skacv import (
    TrajectoryHuberRegressor,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    approximate_loo,
)
from tests.refits import log_loss, logistic, multinomial_loss, refitted, squared_error

from ..data import drawn_targets
from ..framework import header, line, study

LOGISTIC = TrajectoryLogisticRegression
CURVED = [
    ("logistic, l2", "binary", LOGISTIC()),
    ("logistic, l1", "binary", LOGISTIC(0.1, l1_ratio=1.0)),
    ("three classes, l2", "classes", LOGISTIC()),
    ("three classes, l1", "classes", LOGISTIC(0.1, l1_ratio=1.0)),
    ("squared hinge", "binary", TrajectoryLinearSVC()),
    ("smoothed hinge", "binary", TrajectoryLinearSVC(loss="smoothed_hinge")),
    ("Huber", "real", TrajectoryHuberRegressor()),
    ("Poisson", "counts", TrajectoryPoissonRegressor(0.01)),
]


@study()
def curved(n_repeats=3):
    """Leave-one-out along runs of curved losses, against exact replicas.

    Largest relative error over the path of loo_path_ (corrected), of the same
    with loo_correction=False (published: Luo, Ren & Barber's iterative
    approximate cross-validation) and of train_path_ (nothing taken out),
    against cv_path_ with LeaveOneOut() of the same fit, which replays the run
    exactly without every row, in the same batches. Median over seeds, the largest
    in brackets.

    n=200, p=20, five nonzero coefficients, intercept fitted, three seeds, 500
    updates or, with sgd, 40 passes. C=1 with a ridge penalty, C=.1 with the l1 norm,
    alpha=.01 for Poisson, else as the estimators have it. Below, without an intercept:
    the data and the penalty of Luo, Ren & Barber, 1e-6 n ||b||^2 / 2 beside the sum
    of losses, at steps of 1 / L (1000 x 20, 1000 updates), and rows that are nearly
    separable (.01 ||b||^2 / 2, 500 updates): 200 x 100, which is replayed exactly as
    linearising would save little, and 600 x 150, where many rows are.
    """
    estimates = "corrected", "published", "nothing taken out"
    yield from header("loss", "n x p", "solver", *estimates)
    cases = [
        (name, kind, (200, 20), clone(model).set_params(solver=solver, max_iter=n))
        for name, kind, model in CURVED
        for solver, n in (("gd", 500), ("nesterov", 500), ("sgd", 40))
    ]
    hard = [((1000, 20), 1e3, 1000), ((200, 100), 100.0, 500), ((600, 150), 100.0, 500)]
    for shape, C, n in hard:
        for solver in ("gd", "nesterov"):
            model = LOGISTIC(C, solver=solver, max_iter=n, fit_intercept=False)
            cases.append((f"logistic, C={C:g}", "binary", shape, model))
    for name, kind, shape, model in cases:
        results = []
        for seed in range(n_repeats):
            ours = clone(model).set_params(tol=0, loo=True, random_state=seed)
            results.append(largest_errors(ours, *drawn_targets(kind, shape, 5, seed)))
        cells = [f"{np.median(e):.1e} ({max(e):.1e})" for e in zip(*results)]
        yield line(name, "{} x {}".format(*shape), model.solver, *cells)


def largest_errors(model, X, y):
    """Over the path: of the corrected one, the published one, the training error."""
    published = clone(model).set_params(loo_correction=False).fit(X, y)
    model.set_params(cv=LeaveOneOut()).fit(X, y)
    paths = model.loo_path_, published.loo_path_, model.train_path_
    # Iterates that change no more end a run, one rounding earlier or later.
    n_iterates = min(map(len, paths))
    truth = model.cv_path_[:n_iterates]
    return [np.abs(path[:n_iterates] / truth - 1).max() for path in paths]


# Of rows that cost next to nothing, with or without themselves, a relative error
# says little.
LEAST_LOSS = 0.01
METHODS = ("alo", "ij", "randomized")


def fixed(model, loss):
    """A setting without anything to choose: ``model_for(X, y)`` and its loss."""
    return lambda X, y: (model, loss)


def lasso(X, y):
    return Lasso(
        LassoCV(cv=5).fit(X, y).alpha_, tol=1e-8, max_iter=10**6
    ), squared_error


def sparse_logistic(X, y):
    # To more digits LIBLINEAR may not get. It penalises the intercept, the less the
    # larger its scaling.
    model = logistic(
        l1_ratio=1.0, solver="liblinear", intercept_scaling=10, tol=1e-6, random_state=0
    )
    loose, Cs = clone(model).set_params(tol=1e-4), np.geomspace(0.03, 1, 6)
    search = GridSearchCV(loose, {"C": Cs}, scoring="neg_log_loss").fit(X, y)
    return model.set_params(**search.best_params_), log_loss


CONVERGED = [
    ("`Ridge`, alpha = 1", "real", 30, fixed(Ridge(1.0), squared_error)),
    ("`Ridge`, alpha = 100", "real", 600, fixed(Ridge(100.0), squared_error)),
    ("`LogisticRegression`, l2, C = 1", "binary", 30, fixed(logistic(), log_loss)),
    ("the same, three classes", "classes", 30, fixed(logistic(), multinomial_loss)),
    ("`Lasso`, alpha from `LassoCV`", "real", 600, lasso),
    ("`LogisticRegression`, l1, C from five folds", "binary", 600, sparse_logistic),
]


@study()
def converged(n_repeats=3, n_held_out=60):
    """Leave-one-out of models of scikit-learn, against refits without a row.

    approximate_loo of one fit to many digits, n=300, standard normal rows, 30
    nonzero coefficients (p=30) or 15 (p=600), noise with heavy tails (t2) for real
    targets; 60 rows are held out one by one. Median over those that cost more than
    .01 of the relative error of the held-out loss, over three data sets from the
    least to the largest.
    """
    yield from header("model", "p", *METHODS)
    for name, kind, p, model_for in CONVERGED:
        # Of several classes in one model there are no probes.
        methods, results = METHODS[:2] if kind == "classes" else METHODS, []
        for seed in range(n_repeats):
            X, y = drawn_targets(kind, (300, p), 30 if p == 30 else 15, seed)
            model, loss = model_for(X, y)
            model.fit(X, y)
            exact = loss(y[:n_held_out], refitted(model, X, y, range(n_held_out)))
            costly = exact > LEAST_LOSS
            losses = (
                approximate_loo(model, X, y, method=method, random_state=seed).loss
                for method in methods
            )
            ratios = (loss[:n_held_out][costly] / exact[costly] for loss in losses)
            results.append([np.median(np.abs(ratio - 1)) for ratio in ratios])
        cells = [f"{min(errors):.1e} to {max(errors):.1e}" for errors in zip(*results)]
        yield line(name, p, *cells, *["-"] * (len(METHODS) - len(cells)))
