"""Are we faster than other packages with an answer of theirs? ``make bench-peers``.

All on one thread. A ratio is theirs over ours. A peer that does not install, or does
not run with these versions, has a row that says so.
"""

from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import Lasso, Ridge, RidgeCV, SGDRegressor
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneOut,
    cross_val_predict,
)
from threadpoolctl import threadpool_limits

from skacv import (
    IterativeRidge,
    TrajectoryEarlyStoppingCV,
    approximate_loo,
)

from .data import sparse_regression, true_risk
from .framework import (
    Row,
    arguments,
    named_rows,
    race,
    race_over_seeds,
    report,
    seconds,
)
from .speed import SIZES, choices

N_SEEDS = 5
N_ALPHAS = 30
SMALLEST = 1e-3  # of a path of alphas, over its largest


def sparse_choices(theirs, against):
    """Alpha chosen for a lasso; ``theirs(X, y, seed)`` gives coefficients."""
    theirs(*sparse_regression(60, 90, 6, 0)[:2], 0)  # what compiles, compiles here
    for size in SIZES.values():
        yield from choices(size, theirs, against, ("risk", "cv", "auto"), N_SEEDS)


def skglm():
    """Five folds along 30 alphas, and a refit up to the best of them."""
    from skglm import Lasso as WorkingSetLasso

    def path(X, y, alphas):
        centre = X.mean(axis=0), y.mean()
        model = WorkingSetLasso(fit_intercept=False)
        coefs = model.path(X - centre[0], y - centre[1], alphas)[1]
        return coefs.T, centre[1] - centre[0] @ coefs

    def choose(X, y, seed):
        largest = np.abs(X.T @ (y - y.mean())).max() / len(y)
        alphas = largest * np.geomspace(1, SMALLEST, N_ALPHAS)
        errors = np.zeros(N_ALPHAS)
        for train, test in KFold(5).split(X):
            coefs, intercepts = path(X[train], y[train], alphas)
            predictions = X[test] @ coefs.T + intercepts
            errors += ((y[test, None] - predictions) ** 2).sum(axis=0)
        coefs, intercepts = path(X, y, alphas[: errors.argmin() + 1])
        return coefs[-1], intercepts[-1]

    against = "skglm's Lasso, 5 folds, 30 alphas, refit"
    yield from sparse_choices(choose, against)


def adelie():
    """Its own cross-validation, and its fit up to the best alpha."""
    from adelie.cv import cv_grpnet
    from adelie.glm import gaussian

    def choose(X, y, seed):
        X, y = np.asfortranarray(X), gaussian(y)
        settings = {"lmda_path_size": N_ALPHAS, "min_ratio": SMALLEST, "seed": seed}
        folds = cv_grpnet(X, y, n_folds=5, progress_bar=False, **settings)
        state = folds.fit(X, y, progress_bar=False)
        return state.betas[-1].toarray().ravel(), state.intercepts[-1]

    against = "adelie's cv_grpnet, 5 folds, 30 alphas, fit"
    yield from sparse_choices(choose, against)


def randalo():
    """The leave-one-out error of a fitted model, as its mean."""
    import torch
    from randalo import RandALO

    torch.set_num_threads(1)

    def squared_error(y, prediction):
        return torch.mean((y - prediction) ** 2)

    def theirs(model, X, y):
        # Its probes are torch's.
        torch.manual_seed(0)
        return float(RandALO.from_sklearn(model, X, y).evaluate(squared_error))

    lasso = Lasso(0.15, fit_intercept=False, tol=1e-8)
    ridge = Ridge(100.0, fit_intercept=False)
    for model, method, n, p, is_truth_known in (
        (clone(lasso).set_params(alpha=0.3), "alo", 500, 1000, True),
        (lasso, "alo", 2000, 2000, False),
        (lasso, "randomized", 2000, 2000, False),
        (ridge, "alo", 2000, 2000, False),
        (ridge, "randomized", 2000, 2000, False),
        (lasso, "alo", 2000, 3000, False),
        (ridge, "alo", 2000, 3000, False),
        (ridge, "randomized", 2000, 3000, False),
    ):
        X, y, _ = sparse_regression(n, p, n // 10, 0)
        model.fit(X, y)
        theirs(model, X, y)

        def said(results, estimate, given=is_truth_known, model=model, X=X, y=y):
            mine = results.mean
            if not given:
                return f"they differ by {abs(estimate / mine - 1):.1e}"
            held_out = cross_val_predict(model, X, y, cv=LeaveOneOut())
            truth = np.mean((y - held_out) ** 2)
            return (
                f"off refits by {mine / truth - 1:+.1e} and {estimate / truth - 1:+.1e}"
            )

        name = type(model).__name__
        yield race(
            f'approximate_loo of a fitted {name}, "{method}", {n} x {p}',
            "RandALO, 100 probes",
            partial(approximate_loo, model, X, y, method=method, random_state=0),
            partial(theirs, model, X, y),
            accuracy=said,
        )


def mapie():
    """Jackknife+ intervals of gradient descent at its 30th iterate."""
    from mapie.regression import CrossConformalRegressor

    X, y, _ = sparse_regression(400, 450, 30, 0)
    X, y, X_test = X[:300], y[:300], X[300:]
    settings = {"alpha": 0.0, "max_iter": 30, "tol": 0}
    settings["step_size"] = IterativeRidge(**settings).fit(X, y).step_size_

    def ours():
        model = IterativeRidge(**settings, risk=False, loo=True, keep_data=True)
        return model.fit(X, y).predict_interval(X_test, 0.9, method="jackknife+")

    def theirs():
        model = CrossConformalRegressor(
            IterativeRidge(**settings, risk=False, loo=False),
            confidence_level=0.9,
            method="plus",
            cv=LeaveOneOut(),
        )
        return model.fit_conformalize(X, y).predict_interval(X_test)[1][:, :, 0]

    def said(mine, expected):
        error = np.abs(mine - expected).max() / (mine[:, 1] - mine[:, 0]).mean()
        return f"ends differ by {error:.0e} of a width"

    yield race(
        "jackknife+ intervals, IterativeRidge at iterate 30, 300 x 450, 100 new rows",
        "MAPIE's CrossConformalRegressor, leave-one-out",
        ours,
        theirs,
        accuracy=said,
    )


def early_stopping():
    """Least squares with a dense signal, stopped early, beside scikit-learn's ways."""
    n, p, max_iter = 1000, 1500, 200
    baseline = IterativeRidge(0.0, max_iter=max_iter, tol=0, risk=False, loo=False)

    def recorded_folds(X, y, seed):
        """One recorded run per fold, and one on all rows."""
        errors = np.zeros(max_iter + 1)
        for train, test in KFold(5).split(X):
            model = baseline.fit(X[train], y[train])
            staged = np.array(list(model.staged_predict(X[test])))
            errors += ((y[test] - staged) ** 2).sum(axis=1)
        return baseline.fit(X, y).at_iteration(errors.argmin())

    def grid_search(X, y, seed):
        grid = {"max_iter": np.unique(np.geomspace(1, max_iter, 20).astype(int))}
        return GridSearchCV(baseline, grid, cv=5).fit(X, y).best_estimator_

    def stochastic(X, y, seed):
        model = SGDRegressor(penalty=None, early_stopping=True, eta0=0.5 / p)
        return model.set_params(random_state=seed).fit(X, y)

    def ridge(X, y, seed):
        return RidgeCV(p * np.geomspace(1e-2, 1e2, N_ALPHAS)).fit(X, y)

    opponents = {
        "GridSearchCV over 20 values of max_iter, 5 folds": grid_search,
        "a recorded run per fold (5), and one on all rows": recorded_folds,
        "SGDRegressor(early_stopping=True), its step set to .5 / p": stochastic,
        "RidgeCV, 30 alphas": ridge,
    }
    ours = TrajectoryEarlyStoppingCV(
        IterativeRidge(0.0, max_iter=max_iter, tol=0), criterion="loo"
    )
    mine, theirs = [], {name: [] for name in opponents}
    for seed in range(N_SEEDS):
        rng = np.random.default_rng(seed)
        X, beta = rng.standard_normal((n, p)), rng.standard_normal(p)
        beta *= np.sqrt(10) / np.linalg.norm(beta)
        y = X @ beta + rng.standard_normal(n)
        elapsed, _ = seconds(ours.fit, X, y)
        mine.append((elapsed, true_risk(ours.coef_, ours.intercept_, beta, 1.0)))
        for name, fit in opponents.items():
            elapsed, model = seconds(fit, X, y, seed)
            intercept = np.ravel(model.intercept_)[0]
            risk = true_risk(model.coef_, intercept, beta, 1.0)
            theirs[name].append((elapsed, risk))
    work = f"IterativeRidge(0), {max_iter} updates, exact loo_path_, stop, {n} x {p}"
    for name in opponents:
        yield race_over_seeds(work, name, mine, theirs[name])


BENCHMARKS = {
    "early-stopping": early_stopping,
    "skglm": skglm,
    "adelie": adelie,
    "randalo": randalo,
    "mapie": mapie,
}
PACKAGES = ("skglm", "adelie", "randalo", "torch", "mapie")


def rows(names):
    """Rows of the benchmarks, or of why there are none."""
    for name in names or BENCHMARKS:
        try:
            yield from named_rows(BENCHMARKS, [name])
        except ImportError as error:
            yield name, missing(name, "does not install", error)
        except (TypeError, AttributeError, ValueError) as error:
            yield name, missing(name, "does not run with these versions", error)


def missing(name, what, error):
    return Row("", name, accuracy=f"{what}: {str(error).splitlines()[0]}")


if __name__ == "__main__":
    args = arguments(__doc__, BENCHMARKS)
    with threadpool_limits(1):
        report("Against other packages", rows(args.names), args.output, PACKAGES)
