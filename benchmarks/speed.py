"""How fast and how small are we beside each opponent, in one process? ``make bench``.

Every row alternates the two sides and takes the median of their times, BLAS threads as
found. A ratio is opponent over ours, or ours over a reference that says "cost".
"""

from functools import partial

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_digits, make_friedman1
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LassoCV
from sklearn.model_selection import GridSearchCV, KFold, train_test_split

from skacv import (
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
)

from .data import sparse_regression, three_directions, true_risk
from .framework import (
    Row,
    arguments,
    medians,
    named_rows,
    peak_bytes,
    race,
    race_over_seeds,
    report,
    seconds,
)
from .real_data import LABEL_NOISE, digits_as_numbers, split, with_products

LASSO = 'TrajectoryEarlyStoppingCV(TrajectoryLasso("path", max_iter=20))'
LASSO_CV = "LassoCV(cv=5, 30 alphas)"
# Rows, columns, and updates of a value of alpha where held-out rows judge.
SIZES = {"path": (2000, 3000, 10), "path-small": (500, 2000, 20)}


def lasso_cv():
    """LassoCV with 30 alphas; the parameter's name changed in 1.7."""
    name = "alphas" if sklearn.__version__ >= "1.7" else "n_alphas"
    return LassoCV(cv=5, **{name: 30})


def stopped_lasso(criterion="auto", max_iter=20):
    """Alpha and iteration from one run, by a criterion, and what to call it."""
    settings, patience = {}, "auto"
    called = f"{max_iter=}, the criterion and patience of default,"
    if criterion == "risk":
        patience, max_iter, called = None, 20, "risk_path_, max_iter=20,"
    elif criterion != "auto":
        patience = 2 * max_iter
        settings, paths = {
            "loo": ({"loo": True}, "exact loo_path_ of all rows"),
            "cv": ({"cv": 10}, "cv_path_ of 10 folds"),
        }[criterion]
        called = f"{paths}, {max_iter=}, {patience=},"
    inner = TrajectoryLasso("path", max_iter=max_iter, random_state=0, **settings)
    model = TrajectoryEarlyStoppingCV(inner, criterion=criterion, patience=patience)
    return model, called


def choices(size, theirs, against, criteria, n_seeds, note=""):
    """Rows of criteria against another choice of a lasso, by seeds.

    ``theirs(X, y, seed)`` gives coefficients and intercept; size is as in ``SIZES``.
    """
    n, p, max_iter = size
    models = {name: stopped_lasso(name, max_iter) for name in criteria}
    results, expected = {name: [] for name in models}, []
    for seed in range(n_seeds):
        X, y, beta = sparse_regression(n, p, n // 10, seed)
        elapsed, (coef, intercept) = seconds(theirs, X, y, seed)
        expected.append((elapsed, true_risk(coef, intercept, beta)))
        for name, (model, _) in models.items():
            elapsed, _ = seconds(model.fit, X, y)
            risk = true_risk(model.coef_, model.intercept_, beta)
            results[name].append((elapsed, risk))
    for name, (_, called) in models.items():
        work = f'alpha="path" with {called} and stop, {n} x {p}{note}'
        yield race_over_seeds(work, against, results[name], expected)


def path(name, n_seeds):
    """All alphas in one trajectory, stopped by every criterion, against LassoCV."""

    def theirs(X, y, seed):
        model = lasso_cv().fit(X, y)
        return model.coef_, model.intercept_

    note, criteria = f", median of {n_seeds} seeds", ("risk", "loo", "cv", "auto")
    return choices(SIZES[name], theirs, LASSO_CV, criteria, n_seeds, note)


def tall(shapes=((300_000, 50), (1_000_000, 20))):
    """Many more rows than columns, against LassoCV; and what memory it takes."""
    for n, p in shapes:
        rng = np.random.default_rng(0)
        X, beta = rng.standard_normal((n, p)), np.zeros(p)
        beta[: p // 10] = 1 / np.sqrt(p // 10)
        y = X @ beta + rng.standard_normal(n)

        def said(*models, beta=beta):
            ours, its = (true_risk(m.coef_, m.intercept_, beta) for m in models)
            return f"true risk {ours / its:.4f} of its"

        ours, _ = stopped_lasso()
        fits = partial(ours.fit, X, y), partial(lasso_cv().fit, X, y)
        yield race(f"{LASSO}, {n} x {p}", LASSO_CV, *fits, said)
        yield memory_row(ours, X, y)


def memory_row(model, X, y):
    """What a fit has in use at most, besides its data."""
    work = f"its peak memory above the start, {X.shape[0]} x {X.shape[1]} (MB)"
    return Row.cost(
        work, "X itself", 1e-6 * peak_bytes(model.fit, X, y), 1e-6 * X.nbytes
    )


def small():
    """Two small regressions, against LassoCV."""
    sets = {"diabetes with products": with_products, "digits": digits_as_numbers}
    for name, data in sets.items():
        X, y, X_test, y_test = split(data, 0, test_size=0.25)

        def said(*models, X=X_test, y=y_test):
            ours, its = (np.mean((m.predict(X) - y) ** 2) for m in models)
            return f"test error {ours / its:.3f} of its"

        work, (ours, _) = (
            f"{LASSO}, {name}, {X.shape[0]} x {X.shape[1]}",
            stopped_lasso(),
        )
        fits = partial(ours.fit, X, y), partial(lasso_cv().fit, X, y)
        yield race(work, LASSO_CV, *fits, said, repeats=5)


ISTA = {"solver": "ista", "tol": 0, "fit_intercept": False, "risk": False}


def ista(X, y, held_out, step_size, n_updates, alpha):
    """ISTA by hand, with the predictions that every iterate has of other rows."""
    b = np.zeros(X.shape[1])
    predictions = [held_out @ b]
    for _ in range(n_updates):
        u = b + step_size / len(y) * (X.T @ (y - X @ b))
        b = np.sign(u) * np.maximum(np.abs(u) - step_size * alpha, 0)
        predictions.append(held_out @ b)
    return np.array(predictions)


def leave_one_out(n=500, p=2000, n_updates=100, by_hand=10, alpha=0.1):
    """The exact path of all rows against a run by hand for each."""
    X, y, _ = sparse_regression(n, p, 50, 0)
    model = TrajectoryLasso(alpha, max_iter=n_updates, loo=True, **ISTA)
    ((ours, _),) = medians(partial(model.fit, X, y), repeats=3)
    rows, step = np.linspace(0, n - 1, by_hand).astype(int), model.step_size_

    def runs():
        without = [(np.delete(X, i, axis=0), np.delete(y, i), X[i]) for i in rows]
        return [ista(*row, step, n_updates, alpha) for row in without]

    elapsed, predictions = seconds(runs)
    error = np.abs(np.transpose(predictions) - model.loo_prediction_path_[:, rows])
    work = f"TrajectoryLasso fit + exact loo_path_, {n} x {p}, T={n_updates}"
    against, theirs = f"{n} runs by hand (from {by_hand})", elapsed * n / by_hand
    yield Row.speed(
        work, against, ours, theirs, f"predictions differ by {error.max():.0e}"
    )


def folds(n=2000, p=3000, n_updates=100, alpha=0.01):
    """cv_path_ of ten folds against ten runs by hand."""
    X, y, _ = sparse_regression(n, p, n // 10, 0)
    baseline = TrajectoryLasso(alpha, max_iter=n_updates, loo=False, **ISTA)
    step_size = clone(baseline).fit(X, y).step_size_
    baseline.set_params(step_size=step_size)

    def runs():
        splits = KFold(10).split(X)
        settings = step_size, n_updates, alpha
        return [ista(X[fit], y[fit], X[out], *settings) for fit, out in splits]

    (with_folds, fitted), (without, _), (theirs, predictions) = medians(
        lambda: clone(baseline).set_params(cv=10).fit(X, y),
        lambda: clone(baseline).fit(X, y),
        runs,
        repeats=7,
    )
    error = np.abs(np.concatenate(predictions, axis=1) - fitted.cv_prediction_path_)
    work = f"cv_path_ of 10 folds, {n} x {p}, T={n_updates}, beside the fit"
    said, ours = f"predictions differ by {error.max():.0e}", with_folds - without
    yield Row.speed(work, "10 runs by hand", ours, theirs, said)


def kernel(n=10_000):
    """A fit that stops itself by leave-one-out against one KernelRidge fit."""
    X, y = three_directions(n + 4000)
    X, y, X_test, y_test = X[:n], y[:n], X[n:], y[n:]
    stopping = KernelEigenProRegressor(gamma="scale", random_state=0)
    stopping = TrajectoryEarlyStoppingCV(stopping)
    ridge = KernelRidge(alpha=1, kernel="rbf", gamma=1 / X.shape[1])
    ((mine, model),) = medians(partial(stopping.fit, X, y), repeats=3)
    theirs = min(seconds(ridge.fit, X, y)[0] for _ in range(3))
    error, its = (np.mean((m.predict(X_test) - y_test) ** 2) for m in (model, ridge))
    yield Row.speed(
        f"KernelEigenProRegressor with loo_path_ and stop, {n} x {X.shape[1]}",
        "KernelRidge(alpha=1), the fastest of 3 fits",
        mine,
        theirs,
        f"test error {error:.4f}, {error / its:.3f} of its; estimated "
        f"{model.best_score_:.4f}; stopped at epoch {model.best_iter_}",
    )


def digits(n_splits=5):
    """Noisy labels: one run against KernelRidge, ten alphas in five folds."""
    times, errors = [], []
    for seed in range(n_splits):
        X, y = load_digits(return_X_y=True)
        X, X_test, y, y_test = train_test_split(
            X / 16, y, test_size=500, random_state=seed, stratify=y
        )
        rng = np.random.default_rng(seed)
        is_noisy = rng.random(len(y)) < LABEL_NOISE
        y = np.where(is_noisy, rng.integers(10, size=len(y)), y)
        ridge = KernelRidge(kernel="rbf", gamma=1 / (X.shape[1] * X.var()))
        grid = GridSearchCV(ridge, {"alpha": np.geomspace(1e-3, 1e2, 10)}, cv=5)
        model = KernelEigenProClassifier(gamma="scale", random_state=seed)
        model = TrajectoryEarlyStoppingCV(model)
        mine, theirs = seconds(model.fit, X, y), seconds(grid.fit, X, np.eye(10)[y])
        times.append((mine[0], theirs[0]))
        labels = model.predict(X_test), grid.predict(X_test).argmax(axis=1)
        errors.append([100 * np.mean(item != y_test) for item in labels])
    mine, theirs = np.transpose(times)
    noisy = "digits with 20% label noise"
    yield Row(
        f"KernelEigenProClassifier with stop, {noisy}, {n_splits} splits",
        "KernelRidge, 10 alphas x 5 folds",
        np.median(mine),
        np.median(theirs),
        float(np.median(theirs / mine)),
        "test error {:.2f}% (theirs {:.2f}%)".format(*np.mean(errors, axis=0)),
    )


SEEDED = {"random_state": 0}
STAGED = [
    (20, HistGradientBoostingRegressor(max_iter=2000, **SEEDED)),
    (100, HistGradientBoostingRegressor(max_iter=2000, **SEEDED)),
    (20, GradientBoostingRegressor(n_estimators=2000, subsample=0.7, **SEEDED)),
    (20, RandomForestRegressor(n_estimators=200, **SEEDED)),
]


def staged(models=STAGED, n_rows=1500):
    """Folds and run together, against clones fitted at once to as many stages."""
    folds = KFold(5, shuffle=True, random_state=0)
    for n_columns, model in models:
        X, y = make_friedman1(n_rows, n_columns, noise=1.0, random_state=0)
        stopping = TrajectoryEarlyStoppingCV(model, cv=folds)
        n_stages = stopping.fit(X, y).estimator_.n_iter_
        count = "max_iter" if hasattr(model, "max_iter") else "n_estimators"
        same = clone(model).set_params(**{count: n_stages})
        if hasattr(model, "early_stopping"):
            same.set_params(early_stopping=False)

        def by_hand(model=same, X=X, y=y):
            for rows, judged in folds.split(X):
                clone(model).fit(X[rows], y[rows]).predict(X[judged])
            return clone(model).fit(X, y)

        (ours, results), (theirs, _) = medians(
            partial(stopping.fit, X, y), by_hand, repeats=5
        )
        yield Row.cost(
            f"{type(model).__name__} that stops itself, {n_rows} x {n_columns}",
            f"five clones and one fit of {n_stages} stages",
            *(ours, theirs, f"stopped at stage {results.best_iter_}"),
        )


BENCHMARKS = {
    "path": partial(path, "path", n_seeds=3),
    "path-small": partial(path, "path-small", n_seeds=5),
    "loo": leave_one_out,
    "folds": folds,
    "kernel": kernel,
    "digits": digits,
    "tall": tall,
    "small": small,
    "staged": staged,
}


if __name__ == "__main__":
    args = arguments(__doc__, BENCHMARKS)
    report("Speed and memory", named_rows(BENCHMARKS, args.names), args.output)
