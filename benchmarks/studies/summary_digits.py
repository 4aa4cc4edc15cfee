"""How many digits have runs on moments, beside runs on the rows?"""

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit

from skacv import IterativeRidge, RowSummary, TrajectoryLasso

from ..framework import header, line

N_ROWS, N_COLUMNS, N_FOLDS = 4000, 30, 5
PATHS = "coef_path_", "train_path_", "risk_path_", "cv_path_"
SETTINGS = {"loo": False, "risk": "exact", "risk_row_scales": False, "tol": 0.0}
MODELS = {
    "least squares": IterativeRidge(0.0, solver="nesterov", max_iter=300, **SETTINGS),
    "lasso": TrajectoryLasso(0.1, max_iter=300, **SETTINGS),
}


def summary_digits():
    """Runs on a summary of rows and on the rows: the largest relative difference.

    4000 x 30 Gaussian rows, up to 300 updates of two models on a RowSummary and on the
    arrays with the same folds. Means of the columns in units of their spread, the
    condition number of the columns, the share of the variance of y that X does not
    explain. Differences are relative to the largest entry; of the training error also
    iterate by iterate.
    """
    settings = "means", "condition", "unexplained"
    yield from header("model", *settings, *PATHS, "train_path_, each")
    cases = [(mean, cond, 1.0) for mean in (0, 1e3, 1e6) for cond in (1, 1e4, 1e8)]
    cases += [(0, 1, noise) for noise in (1e-2, 1e-4, 1e-6)]
    for name, model in MODELS.items():
        for mean, condition, noise in cases:
            X, y = _drawn(mean, condition, noise)
            share = noise**2 / (noise**2 + (y - mean).var())
            numbers = mean, condition, share, *_differences(model, X, y)
            yield line(name, *(f"{number:.0e}" for number in numbers))


def _drawn(mean, condition, noise):
    rng = np.random.default_rng(0)
    latent = rng.standard_normal((N_ROWS, N_COLUMNS))
    turn, _ = np.linalg.qr(rng.standard_normal((N_COLUMNS, N_COLUMNS)))
    sizes = np.logspace(0, -np.log10(condition), N_COLUMNS)
    centred = latent * sizes @ turn.T
    y = centred @ turn @ np.ones(N_COLUMNS) + noise * rng.standard_normal(N_ROWS)
    return centred + mean, y + mean


def _differences(model, X, y):
    summary = RowSummary(N_FOLDS, n_sampled=200).fit(X, y)
    folds = PredefinedSplit(summary.fold_of(np.arange(N_ROWS)))
    results = clone(model).set_params(cv=N_FOLDS).fit(summary)
    baseline = clone(model).set_params(cv=folds).fit(X, y)
    # A run ends where nothing moves, to rounding, which one of them may see earlier.
    n_both = min(len(results.train_path_), len(baseline.train_path_))
    for name in PATHS:
        ours, expected = (
            getattr(model, name)[:n_both] for model in (results, baseline)
        )
        yield np.abs(ours - expected).max() / np.abs(expected).max()
    yield np.abs(results.train_path_[:n_both] / baseline.train_path_[:n_both] - 1).max()
