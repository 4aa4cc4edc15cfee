"""Ours beside what other packages have, in one process: ``make bench-peers``.

All on one thread. A ratio is theirs over ours. A peer that does not install, or
does not run with these versions, has a row that says so.
"""

import argparse
import sys
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import Lasso, Ridge, RidgeCV, SGDRegressor
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneOut,
    train_test_split,
)
from threadpoolctl import threadpool_limits

from skacv import (
    IterativeRidge,
    KernelEigenProClassifier,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    approximate_loo,
)

from .data import sparse_regression, true_risk
from .report import Row, report
from .timing import medians, seconds

N_SEEDS = 5
N_ALPHAS = 30
SMALLEST = 1e-3  # of a path of alphas, over its largest


@dataclass(frozen=True)
class Bar:
    """What we ask of ourselves: of the ratio of times, and of our true risk."""

    ratio: str = ""
    risk: str = ""


def worse(ours, theirs, bound):
    """Our true risk over theirs, a value per seed."""
    ratios = np.divide(ours, theirs)
    allowed = f" ({bound})" if bound else ""
    median = f"true risk {np.median(ratios):.3f} of its{allowed}"
    return f"{median}, at most {ratios.max():.3f}"


def compared(work, against, times, risks, bar):
    """A row from seconds and true risks of both sides, ours first, over seeds."""
    ours, theirs = np.transpose(times)
    return Row(
        work,
        against,
        np.median(ours),
        np.median(theirs),
        float(np.median(theirs / ours)),
        bar.ratio,
        worse(*np.transpose(risks), bar.risk),
    )


def stopped_lasso(criterion, max_iter, seed):
    """Alpha and iteration from one run, as the benchmarks against LassoCV have it."""
    if criterion == "risk":
        inner = TrajectoryLasso("path", max_iter=20, random_state=seed)
        return TrajectoryEarlyStoppingCV(inner, criterion="risk", patience=None)
    if criterion == "auto":
        return TrajectoryEarlyStoppingCV(TrajectoryLasso("path", max_iter=max_iter))
    inner = TrajectoryLasso("path", max_iter=max_iter, cv=10)
    return TrajectoryEarlyStoppingCV(inner, criterion="cv", patience=2 * max_iter)


def sparse_choices(theirs, against, bar):
    """Alpha chosen for a lasso; ``theirs(X, y, seed)`` gives coefficients."""
    theirs(*sparse_regression(60, 90, 6, 0)[:2], 0)  # what compiles, compiles here
    for n, p, max_iter in ((2000, 3000, 10), (500, 2000, 20)):
        works = {
            "risk": "risk_path_, max_iter=20,",
            "cv": f"cv_path_ of 10 folds, {max_iter=}, patience={2 * max_iter},",
            "auto": f"{max_iter=}, the criterion and patience of default,",
        }
        times, risks = ({name: [] for name in works} for _ in range(2))
        for seed in range(N_SEEDS):
            X, y, beta = sparse_regression(n, p, n // 10, seed)
            their_time, (coef, intercept) = seconds(theirs, X, y, seed)
            their_risk = true_risk(coef, intercept, beta)
            for name in works:
                elapsed, model = seconds(stopped_lasso(name, max_iter, seed).fit, X, y)
                times[name].append((elapsed, their_time))
                own = true_risk(model.coef_, model.intercept_, beta)
                risks[name].append((own, their_risk))
        for name, work in works.items():
            work = f'alpha="path" with {work} and stop, {n} x {p}'
            yield compared(work, against, times[name], risks[name], bar)


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
    yield from sparse_choices(choose, against, Bar())


def adelie():
    """Its own cross-validation, and its fit up to the best alpha."""
    from adelie.cv import cv_grpnet
    from adelie.glm import gaussian

    def choose(X, y, seed):
        X, y = np.asfortranarray(X), gaussian(y)
        folds = cv_grpnet(
            X,
            y,
            n_folds=5,
            lmda_path_size=N_ALPHAS,
            min_ratio=SMALLEST,
            seed=seed,
            progress_bar=False,
        )
        state = folds.fit(X, y, progress_bar=False)
        return state.betas[-1].toarray().ravel(), state.intercepts[-1]

    against = "adelie's cv_grpnet, 5 folds, 30 alphas, fit"
    yield from sparse_choices(choose, against, Bar(">= 1", "<= 1.01"))


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
        (own_time, result), (their_time, estimate) = medians(
            partial(approximate_loo, model, X, y, method=method, random_state=0),
            partial(theirs, model, X, y),
            repeats=3,
        )
        own = result.mean
        if is_truth_known:
            truth = refitted_loo(model, X, y)
            errors = f"{own / truth - 1:+.1e} and {estimate / truth - 1:+.1e}"
            accuracy = f"off refits by {errors}"
        else:
            accuracy = f"they differ by {abs(estimate / own - 1):.1e}"
        name = type(model).__name__
        yield Row(
            f'approximate_loo of a fitted {name}, "{method}", {n} x {p}',
            "RandALO, 100 probes",
            own_time,
            their_time,
            their_time / own_time,
            accuracy=accuracy,
        )


def refitted_loo(model, X, y):
    """Leave-one-out error by a refit without each row of a lasso with a mean loss."""
    costs = []
    for train, test in LeaveOneOut().split(X):
        coef = Lasso(model.alpha, fit_intercept=False, tol=1e-8)
        prediction = coef.fit(X[train], y[train]).predict(X[test])
        costs.append((y[test] - prediction) ** 2)
    return np.mean(costs)


def mapie():
    """Jackknife+ intervals of gradient descent at its 30th iterate."""
    from mapie.regression import CrossConformalRegressor

    X, y, _ = sparse_regression(400, 450, 30, 0)
    X, y, X_test = X[:300], y[:300], X[300:]
    settings = {"alpha": 0.0, "max_iter": 30, "tol": 0}
    step_size = IterativeRidge(**settings).fit(X, y).step_size_
    settings["step_size"] = step_size

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

    (own_time, own), (their_time, expected) = medians(ours, theirs, repeats=3)
    error = np.abs(own - expected).max() / (own[:, 1] - own[:, 0]).mean()
    yield Row(
        "jackknife+ intervals, IterativeRidge at iterate 30, 300 x 450, 100 new rows",
        "MAPIE's CrossConformalRegressor, leave-one-out",
        own_time,
        their_time,
        their_time / own_time,
        accuracy=f"ends differ by {error:.0e} of a width",
    )


def eigenpro():
    """Digits with a fifth of the training labels random; when to stop."""
    from sklearn_extra.kernel_methods import EigenProClassifier

    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    rng = np.random.default_rng(0)
    y = np.where(rng.random(len(y)) < 0.2, rng.integers(0, 10, len(y)), y)
    theirs = GridSearchCV(
        EigenProClassifier(gamma=1e-3, random_state=0),
        {"n_epoch": [1, 2, 5, 10, 20, 50]},
        error_score="raise",
    )
    ours = TrajectoryEarlyStoppingCV(
        KernelEigenProClassifier(gamma=1e-3, random_state=0)
    )
    (own_time, _), (their_time, _) = medians(
        lambda: ours.fit(X, y), lambda: theirs.fit(X, y), repeats=3
    )
    errors = [1 - model.score(X_test, y_test) for model in (ours, theirs)]
    yield Row(
        "KernelEigenProClassifier, stopped by leave-one-out, digits, noisy labels",
        "scikit-learn-extra's EigenProClassifier, grid of 6 n_epoch, 5 folds",
        own_time,
        their_time,
        their_time / own_time,
        accuracy=f"test error {errors[0]:.3f}, theirs {errors[1]:.3f}",
    )


def early_stopping():
    """Least squares with a dense signal, stopped early, beside scikit-learn's ways."""
    n, p, max_iter = 1000, 1500, 200
    plain = IterativeRidge(0.0, max_iter=max_iter, tol=0, risk=False, loo=False)

    def recorded_folds(X, y, seed):
        """One recorded run per fold, and one on all rows."""
        errors = np.zeros(max_iter + 1)
        for train, test in KFold(5).split(X):
            model = plain.fit(X[train], y[train])
            staged = np.array(list(model.staged_predict(X[test])))
            errors += ((y[test] - staged) ** 2).sum(axis=1)
        return plain.fit(X, y).at_iteration(errors.argmin())

    def grid_search(X, y, seed):
        grid = {"max_iter": np.unique(np.geomspace(1, max_iter, 20).astype(int))}
        return GridSearchCV(plain, grid, cv=5).fit(X, y).best_estimator_

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
    times, risks = ({name: [] for name in opponents} for _ in range(2))
    for seed in range(N_SEEDS):
        rng = np.random.default_rng(seed)
        X, beta = rng.standard_normal((n, p)), rng.standard_normal(p)
        beta *= np.sqrt(10) / np.linalg.norm(beta)
        y = X @ beta + rng.standard_normal(n)
        own_time, _ = seconds(ours.fit, X, y)
        own = true_risk(ours.coef_, ours.intercept_, beta, 1.0)
        for name, fit in opponents.items():
            elapsed, model = seconds(fit, X, y, seed)
            times[name].append((own_time, elapsed))
            theirs = true_risk(model.coef_, np.ravel(model.intercept_)[0], beta, 1.0)
            risks[name].append((own, theirs))
    work = f"IterativeRidge(0), {max_iter} updates, exact loo_path_, stop, {n} x {p}"
    # The folds by hand, which cost fewer runs than any other choice by refits.
    bars = {"a recorded run per fold (5), and one on all rows": Bar(">= 1")}
    for name in opponents:
        bar = bars.get(name, Bar())
        yield compared(work, name, times[name], risks[name], bar)


BENCHMARKS = {
    "early-stopping": early_stopping,
    "skglm": skglm,
    "adelie": adelie,
    "randalo": randalo,
    "mapie": mapie,
    "scikit-learn-extra": eigenpro,
}


def rows(names):
    """Rows of the benchmarks, or of why there are none."""
    for name in names:
        try:
            for row in BENCHMARKS[name]():
                yield name, row
        except ImportError as error:
            yield name, missing(name, "does not install", error)
        except (TypeError, AttributeError, ValueError) as error:
            yield name, missing(name, "does not run with these versions", error)


def missing(name, what, error):
    reason = str(error).splitlines()[0]
    return Row("", name, None, None, None, accuracy=f"{what}: {reason}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(BENCHMARKS))
    parser.add_argument("--output", help="Markdown file for the table, JSON beside it")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(BENCHMARKS):
        sys.exit(f"unknown: {', '.join(sorted(unknown))}")
    names = arguments.names or list(BENCHMARKS)
    peers = ["skglm", "adelie", "randalo", "torch", "mapie", "scikit-learn-extra"]
    with threadpool_limits(1):
        report("Against other packages", rows(names), arguments.output, peers)
