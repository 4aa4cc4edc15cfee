"""The choice of gamma for ``gamma="auto"``: the best of a few scales.

The estimator is run with each of them, with shared squared distances, and folds
estimate the loss of its best iterate. The better half of the scales continues until one
is left. How far the estimator's own run goes has no part in that: a run that is
continued keeps its gamma.
"""

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import KFold

from .._estimator.run.stopping import halved
from ..optim.namespaces import rows_in, to_numpy
from .kernels import scale_gamma

# Multiples of gamma="scale".
FACTORS = 1 / 64, 1 / 16, 1 / 4, 1.0, 4.0, 16.0
# Scales are tried on at most so many rows, and no more than a kernel matrix and its
# distances have room for, if these are not fewer than the least.
MOST_ROWS, LEAST_ROWS = 1000, 100
# By so many folds of them, unless the estimator has folds of its own.
N_FOLDS = 5
# Parameters that determine the fitted functions and their evaluation. How a run goes
# through the rows is the automatic way for a scale that is tried.
SHARED = (
    "kernel",
    "degree",
    "coef0",
    "loss",
    "alpha",
    "fit_intercept",
    "class_weight",
    "memory_budget",
    "n_jobs",
)


def chosen_scale(estimator, samples, folds, seed):
    """Run an estimator with each of the scales, and compare their errors on folds.

    Parameters
    ----------
    folds : list of (ndarray of int, ndarray of int)
        Folds of the estimator, if any, as rows of ``samples``.
    seed : int
        Draws rows and folds.

    Returns
    -------
    gamma : float
        The chosen value.
    found : dict
        Fitted attributes: all values tried, and the loss on folds of the best iterate
        of each, as far as it was run.
    """
    rng = np.random.RandomState(seed)
    rows = _drawn(samples.y, _most_rows(estimator), is_classifier(estimator), rng)
    data = to_numpy(rows_in(samples.X, rows)), samples.y[rows], samples.weights[rows]
    gammas = gammas_of(estimator.kernel, samples.X)
    settings = estimator.get_params(deep=False)
    settings = {name: settings[name] for name in SHARED if name in settings}
    splits = _folds_of(rows, folds, len(samples.y), rng)
    settings |= {"loo": False, "cv": splits, "random_state": seed}
    candidates = [type(estimator)(gamma=gamma, **settings) for gamma in gammas]
    _share_distances(candidates, estimator, *data[:2], samples.rows[rows])

    def go_on(number, n_updates):
        is_over = candidates[number].fit_up_to(n_updates, *data)
        return candidates[number].cv_path_.min(), is_over

    # Among equals the smaller gamma is kept: its functions are smoother.
    best, scores, _ = halved(len(gammas), go_on, lambda n: candidates[n]._release())
    return float(gammas[best]), {"gammas_": gammas, "gamma_scores_": scores}


def gammas_of(kernel, X):
    """Values of gamma that are tried, (n_scales,)."""
    return np.array([scale_gamma(kernel, X, factor) for factor in FACTORS])


def _most_rows(estimator):
    """Rows that scales are tried on at most."""
    fitting = int(np.sqrt(estimator._budget() / (2 * np.dtype(np.float64).itemsize)))
    return max(LEAST_ROWS, min(fitting, MOST_ROWS))


def _drawn(y, n_most, has_classes, rng):
    """Rows that scales are tried on, in order: all, or some with one of each class."""
    if len(y) <= n_most:
        return np.arange(len(y))
    rows = rng.permutation(len(y))[:n_most]
    if has_classes:
        rows = np.concatenate([rows, np.unique(y, return_index=True)[1]])
    return np.unique(rows)


def _folds_of(rows, folds, n_rows, rng):
    """The folds that evaluate the scales: parts of the estimator's folds, or others."""
    if not folds:
        n_folds = min(N_FOLDS, len(rows))
        return list(KFold(n_folds, shuffle=True, random_state=rng).split(rows))
    place = np.full(n_rows, -1)
    place[rows] = np.arange(len(rows))
    parts = [[place[part][place[part] >= 0] for part in fold] for fold in folds]
    return [fold for fold in parts if all(map(len, fold))]


def _share_distances(candidates, estimator, X, y, samples):
    """Squared distances once for all: those of the estimator, if it has any."""
    if estimator._distances is None:
        candidates[0]._share_work(candidates, X, y)
        return
    distances = estimator._distances[np.ix_(samples, samples)]
    for candidate in candidates:
        candidate._distances = distances
