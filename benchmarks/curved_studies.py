"""Leave-one-out of curved losses along the run, and of converged models."""

import warnings

import numpy as np
from scipy.special import expit
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
from sklearn.model_selection import GridSearchCV, LeaveOneOut
from sklearn.svm import SVC, LinearSVC

from skacv import (
    TrajectoryHuberRegressor,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    approximate_loo,
)
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

LOGISTIC, OWN_SVC = TrajectoryLogisticRegression, TrajectoryLinearSVC
OURS = [
    ("logistic, l2", "binary", LOGISTIC()),
    ("logistic, l1", "binary", LOGISTIC(0.1, l1_ratio=1.0)),
    ("three classes, l2", "classes", LOGISTIC()),
    ("three classes, l1", "classes", LOGISTIC(0.1, l1_ratio=1.0)),
    ("squared hinge", "binary", OWN_SVC()),
    ("smoothed hinge", "binary", OWN_SVC(loss="smoothed_hinge")),
    ("Huber", "real", TrajectoryHuberRegressor()),
    ("Poisson", "counts", TrajectoryPoissonRegressor(0.01)),
]


def drawn(kind, shape, n_nonzero, seed):
    """Standard normal rows, normal coefficients, and a target of a kind."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape)
    n_scores = 3 if kind == "classes" else 1
    scores = X[:, :n_nonzero] @ rng.standard_normal((n_nonzero, n_scores))
    scores *= np.sqrt(5 / n_nonzero)
    signal = scores[:, 0]
    targets = {
        "binary": lambda: (rng.random(len(X)) < expit(signal)).astype(int),
        "classes": lambda: np.argmax(scores + rng.gumbel(size=scores.shape), axis=1),
        "real": lambda: signal + rng.standard_t(2, len(X)),
        "counts": lambda: rng.poisson(np.exp(signal / 3)),
    }
    return X, targets[kind]()


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
    yield "| loss | n x p | solver | corrected | published | nothing taken out |"
    yield "|---|---|---|---|---|---|"
    for name, kind, model in OURS:
        for solver, n_updates in (("gd", 500), ("nesterov", 500), ("sgd", 40)):
            model.set_params(solver=solver, max_iter=n_updates)
            yield curved_row(name, kind, (200, 20), model, n_repeats)
    hard = [
        ((1000, 20), 1e3, 1000),
        ((200, 100), 100.0, 500),
        ((600, 150), 100.0, 500),
    ]
    for shape, C, n_updates in hard:
        for solver in ("gd", "nesterov"):
            model = LOGISTIC(C, solver=solver, max_iter=n_updates, fit_intercept=False)
            name = f"logistic, C={C:g}"
            yield curved_row(name, "binary", shape, model, n_repeats)


def curved_row(name, kind, shape, model, n_repeats):
    """One line of the table: errors of the three paths over seeds."""
    found = []
    for seed in range(n_repeats):
        own = clone(model).set_params(tol=0, loo=True, random_state=seed)
        found.append(largest_errors(own, *drawn(kind, shape, 5, seed)))
    cells = [f"{np.median(e):.1e} ({max(e):.1e})" for e in zip(*found)]
    size = f"{shape[0]} x {shape[1]}"
    return f"| {' | '.join([name, size, model.solver, *cells])} |"


def largest_errors(model, X, y):
    """Over the path: of the corrected one, the published one, the training error."""
    published = clone(model).set_params(loo_correction=False).fit(X, y)
    model.set_params(cv=LeaveOneOut()).fit(X, y)
    paths = model.loo_path_, published.loo_path_, model.train_path_
    # Iterates that change no more end a run, one rounding earlier or later.
    n_iterates = min(map(len, paths))
    truth = model.cv_path_[:n_iterates]
    return [np.abs(path[:n_iterates] / truth - 1).max() for path in paths]


def published_levels():
    """How far the published approximation is off along gradient descent, by draw.

    Luo, Ren & Barber's setting: logistic regression, n=250, p=20, five standard
    normal coefficients, no intercept, 1e-6 n ||b||^2 / 2 beside the sum of losses,
    steps of .5 / n on that sum. |loo_path_ / exact path - 1| with
    loo_correction=False at one iterate (measured before for one draw: 2.5e-4 and
    3e-3), and of loo_path_ as it is by default. Replicas take their steps on the
    mean over the rows that stay; those of the paper on the sum, as they do here with
    solver="sgd" and all rows in a batch.
    """
    quantiles = (0, 25, 50, 75, 100)
    names = ["least", "quartile", "median", "quartile", "largest"]
    yield f"| iterate | draws | estimate | {' | '.join(names)} |"
    yield f"|---|---|---|{'---|' * len(names)}"
    for t, n_draws in ((50, 40), (2000, 10)):
        found = []
        for seed in range(n_draws):
            X, y = drawn("binary", (250, 20), 5, seed)
            own = LOGISTIC(1e6 / len(X), solver="gd", step_size=0.5, max_iter=t)
            own.set_params(fit_intercept=False, tol=0, loo=True, cv=LeaveOneOut())
            published = clone(own).set_params(loo_correction=False)
            summed = clone(published).set_params(solver="sgd", batch_size=len(X))
            fitted = [m.fit(X, y) for m in (summed, published, own)]
            found.append([m.loo_path_[-1] / m.cv_path_[-1] - 1 for m in fitted])
        names = "published, on the sum", "published, on the mean", "corrected"
        for name, errors in zip(names, np.transpose(found)):
            cells = [f"{q:.1e}" for q in np.percentile(np.abs(errors), quantiles)]
            yield f"| {t} | {n_draws} | {name} | {' | '.join(cells)} |"


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
        l1_ratio=1.0,
        solver="liblinear",
        intercept_scaling=10,
        tol=1e-6,
        random_state=0,
    )
    loose = clone(model).set_params(tol=1e-4)
    search = GridSearchCV(loose, {"C": CS}, scoring="neg_log_loss").fit(X, y)
    return model.set_params(**search.best_params_), log_loss


def huber(X, y):
    """With the loss at the scale of the fit on all rows."""
    model = HuberRegressor(alpha=0.1, tol=1e-8, max_iter=10_000).fit(X, y)
    return model, Huber(model.epsilon * model.scale_).value


LINEAR_SVC = LinearSVC(random_state=0, **PRECISE)
THEIRS = [
    ("`Ridge`, alpha = 1", "real", 30, fixed(Ridge(1.0), squared_error)),
    ("`Ridge`, alpha = 100", "real", 600, fixed(Ridge(100.0), squared_error)),
    ("`LogisticRegression`, l2, C = 1", "binary", 30, fixed(logistic(), log_loss)),
    ("the same, three classes", "classes", 30, fixed(logistic(), multinomial_loss)),
    (
        "`PoissonRegressor`, alpha = 0.1",
        "counts",
        30,
        fixed(PoissonRegressor(alpha=0.1, tol=1e-9, max_iter=10_000), poisson_deviance),
    ),
    ("`HuberRegressor` (the scale is held), alpha = 0.1", "real", 30, huber),
    ("`Lasso`, alpha from `LassoCV`", "real", 600, lasso),
    ("`ElasticNet`, alpha from `ElasticNetCV`", "real", 600, elastic_net),
    (
        "`LogisticRegression`, l1, C from five folds",
        "binary",
        600,
        sparse_logistic,
    ),
    (
        "`LinearSVC`, squared hinge, C = 1",
        "binary",
        30,
        fixed(LINEAR_SVC, squared_hinge),
    ),
    (
        "`LinearSVC`, squared hinge, C = 1",
        "binary",
        600,
        fixed(LINEAR_SVC, squared_hinge),
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
    yield f"| model | p | {' | '.join(METHODS)} |"
    yield "|---|---|---|---|---|"
    for name, kind, p, model_for in THEIRS:
        methods = METHODS_OF.get(kind, METHODS)
        found = [
            median_errors(model_for, methods, seed, n_held_out, *data_of(kind, p, seed))
            for seed in range(n_repeats)
        ]
        cells = [f"{min(errors):.1e} to {max(errors):.1e}" for errors in zip(*found)]
        cells += ["-"] * (len(METHODS) - len(cells))
        yield f"| {name} | {p} | {' | '.join(cells)} |"
    yield ""
    yield "| p | C | share of coefficients | median row | mean loss | warned |"
    yield "|---|---|---|---|---|---|"
    for p, C in HINGES:
        found = [
            hinge_errors(SVC(kernel="linear", C=C, tol=1e-8), *data, n_held_out)
            for data in (data_of("binary", p, seed) for seed in range(n_repeats))
        ]
        share, median, mean, warned = zip(*found)
        yield (
            f"| {p} | {C:g} | {np.mean(share):.2f} "
            f"| {min(median):.1e} to {max(median):.1e} | {max(mean):.1e} "
            f"| {sum(warned)} of {n_repeats} |"
        )


def data_of(kind, p, seed):
    return drawn(kind, (300, p), 30 if p == 30 else 15, seed)


def median_errors(model_for, methods, seed, n_held_out, X, y):
    """Median relative error of the loss by each method."""
    model, loss = model_for(X, y)
    model.fit(X, y)
    exact = loss(y[:n_held_out], refitted(model, X, y, range(n_held_out)))
    with warnings.catch_warnings():
        # How far off large leverages are is what the table shows.
        warnings.filterwarnings("ignore", "The largest leverage")
        found = [
            approximate_loo(model, X, y, method=m, random_state=seed) for m in methods
        ]
    return [median_error(each.loss[:n_held_out], exact) for each in found]


def median_error(found, exact):
    costly = exact > LEAST_LOSS
    return np.median(np.abs(found[costly] / exact[costly] - 1))


def hinge_errors(model, X, y, n_held_out):
    """Share of coefficients fixed; error of the median row and the mean; warned."""
    model.fit(X, y)
    exact = hinge(y[:n_held_out], refitted(model, X, y, range(n_held_out)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        found = approximate_loo(model, X, y).loss[:n_held_out]
    on_margin = np.sum(np.abs(model.dual_coef_) < model.C * (1 - 1e-9))
    share = on_margin / (X.shape[1] + 1)
    mean_error = np.abs(found.mean() / exact.mean() - 1)
    return share, median_error(found, exact), mean_error, len(caught)
