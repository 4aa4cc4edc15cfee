"""Are leave-one-out and folds faster than the runs by hand that they stand for?

Ten times as fast as one run for each row (a thousand times where rows are 2000 and
more), 2.5 times as fast as ten runs for ten folds, and the same numbers.
"""

from functools import partial

import numpy as np
from scipy.special import expit
from sklearn.model_selection import KFold

from skacv import IterativeRidge, TrajectoryLasso, TrajectoryLogisticRegression

from ..data import sparse_regression
from ..framework import Row, medians, race, seconds

ISTA = {"solver": "ista", "tol": 0, "fit_intercept": False, "risk": False}


def predicted_ista(X, y, held_out, step_size, n_updates, alpha):
    """ISTA by hand, with the predictions that every iterate has of other rows."""
    b = np.zeros(X.shape[1])
    predictions = [held_out @ b]
    for _ in range(n_updates):
        u = b + step_size / len(y) * (X.T @ (y - X @ b))
        b = np.sign(u) * np.maximum(np.abs(u) - step_size * alpha, 0)
        predictions.append(held_out @ b)
    return np.array(predictions)


def leave_one_out(n=500, p=2000, n_updates=100, by_hand=10):
    """The exact path of all rows against a run by hand for each."""
    alpha = 0.1
    X, y, _ = sparse_regression(n, p, 50, 0)
    model = TrajectoryLasso(alpha, max_iter=n_updates, loo=True, **ISTA)
    ((ours, _),) = medians(partial(model.fit, X, y), repeats=3)
    rows = np.linspace(0, n - 1, by_hand).astype(int)

    def runs():
        step = model.step_size_, n_updates, alpha
        return [
            predicted_ista(np.delete(X, i, axis=0), np.delete(y, i), X[i], *step)
            for i in rows
        ]

    elapsed, predictions = seconds(runs)
    error = np.abs(np.transpose(predictions) - model.loo_prediction_path_[:, rows])
    work = f"TrajectoryLasso fit + exact loo_path_, {n} x {p}, T={n_updates}"
    against, theirs = f"{n} runs by hand (from {by_hand})", elapsed * n / by_hand
    said = f"predictions differ by {error.max():.0e}"
    yield Row.speed(work, against, ours, theirs, ">= 10", said)


def folds(n=2000, p=3000, n_updates=100):
    """cv_path_ of ten folds against ten runs by hand."""
    alpha = 0.01
    X, y, _ = sparse_regression(n, p, n // 10, 0)
    baseline = {"max_iter": n_updates, "loo": False, **ISTA}
    step_size = TrajectoryLasso(alpha, **baseline).fit(X, y).step_size_

    def fit(cv):
        return TrajectoryLasso(alpha, cv=cv, step_size=step_size, **baseline).fit(X, y)

    def runs():
        return [
            predicted_ista(X[fitted], y[fitted], X[judged], step_size, n_updates, alpha)
            for fitted, judged in KFold(10).split(X)
        ]

    (with_folds, fitted), (without, _), (theirs, predictions) = medians(
        partial(fit, 10), partial(fit, None), runs, repeats=7
    )
    error = np.abs(np.concatenate(predictions, axis=1) - fitted.cv_prediction_path_)
    work = f"cv_path_ of 10 folds, {n} x {p}, T={n_updates}, beside the fit"
    said = f"predictions differ by {error.max():.0e}"
    ours = with_folds - without
    yield Row.speed(work, "10 runs by hand", ours, theirs, ">= 2.5", said)


def ridge(n, p, n_updates):
    """Fit, risk_path_ and exact loo_path_ against refits, and one SVD plus the run."""
    X, y, _ = sparse_regression(n, p, 50, 0)

    def fit(**readings):
        return IterativeRidge(1.0, max_iter=n_updates, tol=0, **readings).fit(X, y)

    (ours, _), (run, _), (svd, _) = medians(
        partial(fit, risk="auto", loo=True),
        # On the rows themselves, not on others of the same moments.
        partial(fit, risk=False, loo=False, keep_data=True),
        partial(np.linalg.svd, X, full_matrices=False),
        repeats=5,
    )
    work = (
        f"IterativeRidge fit + risk_path_ + exact loo_path_, {n} x {p}, T={n_updates}"
    )
    refits, against = n * run, f"{n} refits (extrapolated)"
    yield Row.speed(work, against, ours, refits, ">= 1000", "exact")
    against = "one thin SVD + the run (cost)"
    yield Row.cost(work, against, ours, svd + run, "<= 3", "exact")


def logistic_by_replicas(X, y, step_size, strength, n_updates):
    """Every row left out of gradient descent: all replicas of a run at once."""
    n, p = X.shape
    signs, coef = np.where(y == 1, 1.0, -1.0), np.zeros((p, n))
    path = [np.full(n, np.log(2))]
    for _ in range(n_updates):
        slope = expit(X @ coef) - y[:, None]
        np.fill_diagonal(slope, 0)
        coef = coef - step_size * (X.T @ slope + strength * coef) / (n - 1)
        ours = np.einsum("ij,ji->i", X, coef)
        path.append(np.logaddexp(0, -signs * ours))
    return np.mean(path, axis=1)


def logistic(n=1000, p=20, n_updates=1000):
    """The linearised and corrected path against exact replicas of all rows."""
    rng = np.random.default_rng(0)
    X, coef = rng.standard_normal((n, p)), np.zeros(p)
    coef[:5] = rng.standard_normal(5)
    y = (rng.random(n) < expit(X @ coef)).astype(int)
    settings = {"solver": "gd", "max_iter": n_updates, "tol": 0, "risk": False}

    def fit(loo):
        model = TrajectoryLogisticRegression(C=1.0, loo=loo, **settings)
        return model.set_params(fit_intercept=False).fit(X, y)

    def said(fitted, path):
        return (
            f"path differs by {np.abs(fitted.loo_path_ / path - 1).max():.0e} (<= 1e-6)"
        )

    step_size = fit(False).step_size_
    yield race(
        f"TrajectoryLogisticRegression fit + loo_path_, {n} x {p}, T={n_updates}",
        "exact leave-one-out, all replicas at once",
        partial(fit, True),
        partial(logistic_by_replicas, X, y, step_size, 1.0, n_updates),
        ">= 10",
        said,
    )
