"""Leave-one-out and folds against runs by hand."""

import numpy as np
from scipy.special import expit
from sklearn.model_selection import KFold

from skacv import IterativeRidge, TrajectoryLasso, TrajectoryLogisticRegression

from .data import sparse_regression
from .timing import medians, seconds


def predicted_ista(X, y, held_out, step_size, n_updates, alpha):
    """The same on other rows, with the predictions of every iterate kept."""
    b = np.zeros(X.shape[1])
    predictions = [held_out @ b]
    for _ in range(n_updates):
        u = b + step_size / len(y) * (X.T @ (y - X @ b))
        b = np.sign(u) * np.maximum(np.abs(u) - step_size * alpha, 0)
        predictions.append(held_out @ b)
    return np.array(predictions)


def leave_one_out():
    """The exact path of all rows against a run by hand for each."""
    n, p, n_updates, alpha, by_hand = 500, 2000, 100, 0.1, 10
    X, y, _ = sparse_regression(n, p, 50, 0)
    model = TrajectoryLasso(
        alpha,
        solver="ista",
        max_iter=n_updates,
        tol=0,
        fit_intercept=False,
        risk=False,
        loo=True,
    )
    ((ours, _),) = medians(lambda: model.fit(X, y), repeats=3)
    rows = np.linspace(0, n - 1, by_hand).astype(int)

    def runs():
        return [
            predicted_ista(
                *(np.delete(X, i, axis=0), np.delete(y, i), X[i]),
                *(model.step_size_, n_updates, alpha),
            )
            for i in rows
        ]

    elapsed, predictions = seconds(runs)
    error = np.abs(np.transpose(predictions) - model.loo_prediction_path_[:, rows])
    theirs = elapsed * n / by_hand
    yield (
        f"TrajectoryLasso fit + exact loo_path_, {n} x {p}, T={n_updates}",
        f"{n} runs by hand (from {by_hand})",
        ours,
        theirs,
        theirs / ours,
        ">= 10",
        f"predictions differ by {error.max():.0e}",
    )


def folds():
    """cv_path_ of ten folds against ten runs by hand."""
    n, p, n_updates, alpha = 2000, 3000, 100, 0.01
    X, y, _ = sparse_regression(n, p, 200, 0)

    def model(cv):
        return TrajectoryLasso(
            alpha,
            solver="ista",
            max_iter=n_updates,
            tol=0,
            fit_intercept=False,
            risk=False,
            loo=False,
            cv=cv,
        )

    step_size = model(None).fit(X, y).step_size_

    def runs():
        return [
            predicted_ista(X[fitted], y[fitted], X[judged], step_size, n_updates, alpha)
            for fitted, judged in KFold(10).split(X)
        ]

    (with_folds, fitted), (without, _), (theirs, predictions) = medians(
        lambda: model(10).set_params(step_size=step_size).fit(X, y),
        lambda: model(None).set_params(step_size=step_size).fit(X, y),
        runs,
        repeats=7,
    )
    ours = with_folds - without
    error = np.abs(np.concatenate(predictions, axis=1) - fitted.cv_prediction_path_)
    yield (
        f"cv_path_ of 10 folds, {n} x {p}, T={n_updates}, beside the fit",
        "10 runs by hand",
        ours,
        theirs,
        theirs / ours,
        ">= 2.5",
        f"predictions differ by {error.max():.0e}",
    )


def ridge(n, p, n_updates):
    """Fit, risk_path_ and exact loo_path_ against refits, and one SVD plus the run."""
    X, y, _ = sparse_regression(n, p, 50, 0)

    def model(**reading):
        return IterativeRidge(1.0, max_iter=n_updates, tol=0, **reading)

    (ours, _), (run_time, _), (svd_time, _) = medians(
        lambda: model(risk="auto", loo=True).fit(X, y),
        # On the rows themselves, not on others of the same moments.
        lambda: model(risk=False, loo=False, keep_data=True).fit(X, y),
        lambda: np.linalg.svd(X, full_matrices=False),
        repeats=5,
    )
    work = (
        f"IterativeRidge fit + risk_path_ + exact loo_path_, {n} x {p}, T={n_updates}"
    )
    refits = n * run_time
    yield (
        work,
        f"{n} refits (extrapolated)",
        ours,
        refits,
        refits / ours,
        ">= 1000",
        "exact",
    )
    reference = svd_time + run_time
    yield (
        work,
        "one thin SVD + the run (cost)",
        ours,
        reference,
        ours / reference,
        "<= 3",
        "exact",
    )


def logistic_by_replicas(X, y, step_size, strength, n_updates):
    """Every row left out of gradient descent: all replicas of a run at once."""
    n, p = X.shape
    signs, coef = np.where(y == 1, 1.0, -1.0), np.zeros((p, n))
    path = [np.full(n, np.log(2))]
    for _ in range(n_updates):
        slope = expit(X @ coef) - y[:, None]
        np.fill_diagonal(slope, 0)
        coef = coef - step_size * (X.T @ slope + strength * coef) / (n - 1)
        own = np.einsum("ij,ji->i", X, coef)
        path.append(np.logaddexp(0, -signs * own))
    return np.mean(path, axis=1)


def logistic(n=1000, p=20, n_updates=1000):
    """The linearised and corrected path against exact replicas of all rows."""
    rng = np.random.default_rng(0)
    X, coef = rng.standard_normal((n, p)), np.zeros(p)
    coef[:5] = rng.standard_normal(5)
    y = (rng.random(n) < expit(X @ coef)).astype(int)

    def model(loo):
        return TrajectoryLogisticRegression(
            C=1.0,
            solver="gd",
            max_iter=n_updates,
            tol=0,
            fit_intercept=False,
            risk=False,
            loo=loo,
        )

    step_size = model(False).fit(X, y).step_size_
    (ours, fitted), (theirs, path) = medians(
        lambda: model(True).fit(X, y),
        lambda: logistic_by_replicas(X, y, step_size, 1.0, n_updates),
        repeats=3,
    )
    error = np.abs(fitted.loo_path_ / path - 1).max()
    yield (
        f"TrajectoryLogisticRegression fit + loo_path_, {n} x {p}, T={n_updates}",
        "exact leave-one-out, all replicas at once",
        ours,
        theirs,
        theirs / ours,
        ">= 10",
        f"path differs by {error:.0e} (<= 1e-6)",
    )
