"""Does one run choose a lasso's alpha and iteration faster than LassoCV, as well?

Against ``LassoCV(cv=5)`` with 30 alphas: five times as fast where rows or columns are
many, as fast elsewhere, at 1.02 of its true risk, and in 1.3 of the memory of tall X.
"""

from functools import partial

import numpy as np
import sklearn
from sklearn.linear_model import LassoCV

from skacv import TrajectoryEarlyStoppingCV, TrajectoryLasso

from ..data import sparse_regression, true_risk
from ..framework import COLUMNS, Row, peak_bytes, race, race_over_seeds, seconds
from ..real_data import digits_as_numbers, split, with_products

LASSO = 'TrajectoryEarlyStoppingCV(TrajectoryLasso("path", max_iter=20))'
LASSO_CV = "LassoCV(cv=5, 30 alphas)"
# Rows, columns, and updates of a value of alpha where held-out rows judge.
SIZES = {"path": (2000, 3000, 10), "path-small": (500, 2000, 20)}
RISK_REQUIRED = {"path": ">= 5", "path-small": ">= 1"}
TALL = (300_000, 50), (1_000_000, 20)


def lasso_cv():
    """LassoCV with 30 alphas; the parameter's name changed in 1.7."""
    name = "alphas" if sklearn.__version__ >= "1.7" else "n_alphas"
    return LassoCV(cv=5, **{name: 30})


def stopped_lasso(criterion="auto", max_iter=20):
    """Alpha and iteration from one run, by a criterion, and what to call it."""
    if criterion == "risk":
        settings, patience, called = {}, None, "risk_path_, max_iter=20,"
        max_iter = 20
    elif criterion == "auto":
        settings, patience = {}, "auto"
        called = f"{max_iter=}, the criterion and patience of default,"
    else:
        patience = 2 * max_iter
        settings, paths = {
            "loo": ({"loo": True}, "exact loo_path_ of all rows"),
            "cv": ({"cv": 10}, "cv_path_ of 10 folds"),
        }[criterion]
        called = f"{paths}, {max_iter=}, {patience=},"
    inner = TrajectoryLasso("path", max_iter=max_iter, random_state=0, **settings)
    model = TrajectoryEarlyStoppingCV(inner, criterion=criterion, patience=patience)
    return model, called


def choices(size, theirs, against, required, bound, n_seeds, note=""):
    """Rows of all criteria against another choice of a lasso.

    Parameters
    ----------
    size : tuple
        Rows, columns and updates, as in ``SIZES``.
    theirs : callable
        Takes X, y and a seed, and gives coefficients and intercept.
    against : str
    asked : dict
        By criterion, what the ratio of seconds should be.
    bound : str
        What the ratio of true risks should be.
    n_seeds : int
    note : str
        For the end of the name of the work.
    """
    n, p, max_iter = size
    models = {name: stopped_lasso(name, max_iter) for name in required}
    results, expected = {name: [] for name in required}, []
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
        yield race_over_seeds(
            work, against, results[name], expected, required[name], bound
        )


def path(name, n_seeds):
    """All alphas in one trajectory, stopped by every criterion, against LassoCV."""

    def theirs(X, y, seed):
        model = lasso_cv().fit(X, y)
        return model.coef_, model.intercept_

    required = {
        "risk": RISK_REQUIRED[name],
        "loo": ">= 1",
        "cv": ">= 1",
        "auto": ">= 1",
    }
    note = f", median of {n_seeds} seeds"
    return choices(SIZES[name], theirs, LASSO_CV, required, "<= 1.02", n_seeds, note)


def alpha_and_iteration(n_seeds=10):
    """A lasso's alpha and iteration from one run against LassoCV, over ten seeds.

    As ``python -m benchmarks path path-small`` has it over fewer.
    """
    yield from COLUMNS
    for name in SIZES:
        for row in path(name, n_seeds):
            yield row.markdown(name)


def against_lasso_cv(X, y, size, required, accuracy, repeats):
    """A row of the default against LassoCV."""
    ours, _ = stopped_lasso()
    fits = partial(ours.fit, X, y), partial(lasso_cv().fit, X, y)
    return race(f"{LASSO}, {size}", LASSO_CV, *fits, required, accuracy, repeats)


def tall_data(n, p):
    """A tenth of the columns matter, with as much noise as signal."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    beta = np.zeros(p)
    beta[: p // 10] = 1 / np.sqrt(p // 10)
    return X, X @ beta + rng.standard_normal(n), beta


def tall(shapes=TALL):
    """Many more rows than columns, against LassoCV; and what memory it takes."""
    for n, p in shapes:
        X, y, beta = tall_data(n, p)

        def said(*models, beta=beta):
            ours, its = (true_risk(m.coef_, m.intercept_, beta) for m in models)
            return f"true risk {ours / its:.4f} of its"

        yield against_lasso_cv(X, y, f"{n} x {p}", ">= 5", said, repeats=3)
        yield memory_row(stopped_lasso()[0], X, y, "<= 1.3")


def memory_row(model, X, y, required=""):
    """What a fit has in use at most, besides its data."""
    work = f"its peak memory above the start, {X.shape[0]} x {X.shape[1]} (MB)"
    sizes = 1e-6 * peak_bytes(model.fit, X, y), 1e-6 * X.nbytes
    return Row.cost(work, "X itself", *sizes, required)


def small():
    """Two small regressions, against LassoCV."""
    sets = {"diabetes with products": with_products, "digits": digits_as_numbers}
    for name, data in sets.items():
        X, y, X_test, y_test = split(data, 0, test_size=0.25)

        def said(*models, X=X_test, y=y_test):
            ours, its = (np.mean((m.predict(X) - y) ** 2) for m in models)
            return f"test error {ours / its:.3f} of its"

        size = f"{name}, {X.shape[0]} x {X.shape[1]}"
        yield against_lasso_cv(X, y, size, ">= 1", said, repeats=5)
