"""With which powers of n, p and the penalty does linearised leave-one-out improve?"""

import numpy as np
from scipy.special import expit

from skacv import TrajectoryLogisticRegression

from ..framework import header, line

N_LEFT_OUT, T = 100, 400
BASE = {"n": 500, "p": 10, "alpha": 0.1}


def drawn(n, p, seed):
    """Gaussian rows and labels whose logits have variance one, whatever p."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    coef = rng.standard_normal(p)
    return X, (rng.random(n) < expit(X @ coef / np.linalg.norm(coef))).astype(int)


def predictors_without(X, y, rows, alpha, step, n_updates):
    """Linear predictors of rows in runs without them, (n_updates, n_rows).

    Gradient descent on the mean of the other losses; the penalty is that of a sum.
    """
    stays = np.ones((len(rows), len(y)))
    stays[np.arange(len(rows)), rows] = 0
    coef, predictors = np.zeros((len(rows), X.shape[1])), []
    for _ in range(n_updates):
        slopes = stays * (expit(coef @ X.T) - y)
        gradient = (slopes @ X + len(y) * alpha * coef) / (len(y) - 1)
        coef = coef - step * gradient
        predictors.append(np.einsum("ij,ij->i", coef, X[rows]))
    return np.array(predictors)


def mean_errors(n, p, alpha, seeds):
    """Mean change by leaving out a row, and mean error, where they are largest."""
    results = []
    for seed in seeds:
        X, y = drawn(n, p, seed)
        model = TrajectoryLogisticRegression(
            1 / (n * alpha),
            solver="gd",
            fit_intercept=False,
            max_iter=T,
            tol=0,
            risk=False,
            loo=N_LEFT_OUT,
            loo_correction=False,
            random_state=seed,
        ).fit(X, y)
        rows, step = model.loo_indices_, model.step_size_
        exact = predictors_without(X, y, rows, alpha, step, model.n_iter_)
        fitted = X[rows] @ model.coef_path_[1:, 0].T
        linearised = model.loo_prediction_path_[1:]
        distances = np.abs(exact - fitted.T), np.abs(exact - linearised)
        results.append([values.mean(axis=1).max() for values in distances])
    return np.mean(results, axis=0)


def loo_rates(n_doublings=3, n_seeds=5):
    """With which powers of n, p and alpha does linearised leave-one-out improve?

    Logistic regression with a ridge penalty alpha / 2 on the mean loss, gradient
    descent, Gaussian rows: the absolute change of a row's linear predictor when it is
    left out, and the error of the linearised run (loo_correction=False) against runs
    without each row, 100 rows and five data sets. Means over rows, at the update where
    they are largest. One of n=500, p=10, alpha=0.1 is doubled three times; the power is
    the slope of the logarithms.
    """
    yield from header("doubled", "change", "error", "power of change", "power of error")
    for name in BASE:
        values, results = BASE[name] * 2.0 ** np.arange(n_doublings + 1), []
        for value in values:
            setting = BASE | {name: type(BASE[name])(value)}
            results.append(mean_errors(**setting, seeds=range(n_seeds)))
        cells = []
        for of_size in np.transpose(results):
            cells.append(" ".join(f"{value:.1e}" for value in of_size))
        powers = np.polyfit(np.log(values), np.log(results), 1)[0]
        shown = ", ".join(f"{value:g}" for value in values)
        yield line(f"{name}: {shown}", *cells, *(f"{power:.1f}" for power in powers))
    yield ""
