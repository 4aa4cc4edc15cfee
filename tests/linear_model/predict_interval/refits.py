"""Models, and their prediction intervals by refits without each row."""

import numpy as np
from scipy import sparse
from sklearn.base import clone

from skacv import IterativeRidge, TrajectoryElasticNet, TrajectoryLasso
from tests.oracles import refitted_predictions

MODELS = {
    "gd": IterativeRidge(2.0, solver="gd"),
    "nesterov": IterativeRidge(2.0, solver="nesterov"),
    "heavy_ball": IterativeRidge(2.0, solver="heavy_ball"),
    "ista": TrajectoryLasso(0.05, solver="ista"),
    "fista": TrajectoryLasso(0.05, solver="fista"),
    "elastic_net": TrajectoryElasticNet(0.1),
}
ITERATES = [0, 3, 30]
METHODS = ["jackknife+", "loo", "cv", "risk"]
EXACT = {"rtol": 0, "atol": 1e-8}


def drawn(shape, rng, n_targets=None):
    """Training rows, their target, and five rows to predict."""
    n_rows, n_columns = shape
    X = rng.standard_normal((n_rows + 5, n_columns)) + 0.5
    X *= rng.random(X.shape) < 0.7
    y = 2 * X[:n_rows, 0] - X[:n_rows, 1] + rng.standard_normal(n_rows) + 3
    if n_targets:
        y = y[:, None] + rng.standard_normal((n_rows, n_targets))
    return X[:n_rows], y, X[n_rows:]


def model_of(name, **params):
    settings = {"max_iter": 30, "tol": 0, "risk": False, "loo": True, **params}
    return clone(MODELS[name]).set_params(keep_data=True, **settings)


def by_refits(model, X, y, X_new, coverage, rows=None, sample_weight=None):
    """Jackknife+ intervals of every iterate from a refit without each row.

    Returns
    -------
    ndarray of shape (n_iter + 1, n_new, [n_targets,] 2)
    """
    every = np.arange(len(y))
    rows = every if rows is None else rows
    stack = sparse.vstack if sparse.issparse(X) else np.vstack
    X_all = stack([X, X_new]).tocsr() if sparse.issparse(X) else stack([X, X_new])
    new = np.arange(len(y), X_all.shape[0])
    below, above = [], []
    for i in rows:
        found = refitted_predictions(
            model, X_all, y, every[every != i], np.r_[i, new], sample_weight
        )
        residual = np.abs(found[:, :1] - y[i])
        below.append(found[:, 1:] - residual)
        above.append(found[:, 1:] + residual)
    rank = int(np.ceil(round(coverage * (len(rows) + 1), 9)))
    lower = np.sort(below, axis=0)[len(rows) - rank]
    upper = np.sort(above, axis=0)[rank - 1]
    return np.stack([lower, upper], axis=-1)
