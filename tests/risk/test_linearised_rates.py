"""The linearised run without a row errs as the theory page derives."""

import numpy as np
import pytest
from scipy.special import expit

from skacv import TrajectoryLogisticRegression

N_LEFT_OUT, N_UPDATES = 100, 400
BASE = {"n": 500, "p": 10, "alpha": 0.1}


def unit_logits(n, p, seed):
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
    settings = {"solver": "gd", "fit_intercept": False, "max_iter": N_UPDATES}
    settings |= {"tol": 0, "risk": False, "loo": N_LEFT_OUT, "loo_correction": False}
    results = []
    for seed in seeds:
        X, y = unit_logits(n, p, seed)
        model = TrajectoryLogisticRegression(
            1 / (n * alpha), random_state=seed, **settings
        ).fit(X, y)
        rows, step = model.loo_indices_, model.step_size_
        exact = predictors_without(X, y, rows, alpha, step, model.n_iter_)
        fitted = X[rows] @ model.coef_path_[1:, 0].T
        linearised = model.loo_prediction_path_[1:]
        distances = np.abs(exact - fitted.T), np.abs(exact - linearised)
        results.append([values.mean(axis=1).max() for values in distances])
    return np.mean(results, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "of_change", "of_error"),
    # p^(3/2) and alpha^-3 are bounds: rows rarely conspire, and the loss is curved.
    [("n", (-1.2, -0.8), (-2.3, -1.7)), ("p", (0.7, 1.3), (0.7, 1.5))],
)
def test_powers_of_change_and_error(name, of_change, of_error):
    first = mean_errors(**BASE, seeds=range(3))
    larger = mean_errors(**BASE | {name: 4 * BASE[name]}, seeds=range(3))
    powers = np.log(larger / first) / np.log(4)
    for power, (least, most) in zip(powers, (of_change, of_error)):
        assert least < power < most
