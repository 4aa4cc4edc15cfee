"""The choice of gamma for ``gamma="auto"``: the best of a few scales.

The estimator runs with every scale, with shared squared distances, and folds estimate
the loss of its best iterate. The better half of the scales continues until one is left.
The choice does not depend on the length of the estimator's run, so a run that is
continued keeps its gamma.
"""

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import KFold

from .._estimator.run.stopping import halved
from ..optim.namespaces import rows_in, to_numpy
from .kernels import scale_gamma

# Multiples of gamma="scale": 1/64 to 16.
FACTORS = 4.0 ** np.arange(-3, 3)
# Most rows to try scales on. A kernel matrix and its distances must fit in memory, but
# at least this many rows are taken.
MOST_ROWS, LEAST_ROWS = 1000, 100
# Parameters that determine the fitted functions and their evaluation. The other
# parameters of the candidates are automatic.
SHARED_PARAMETERS = (
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
    """The gamma of least loss on folds, and fitted attributes: values and losses.

    ``folds`` are those of the estimator, if any, as rows of ``samples``; ``seed`` draws
    rows and folds.
    """
    rng = np.random.RandomState(seed)
    # Two arrays of this many rows squared fit in the budget.
    fitting = int(np.sqrt(estimator._budget() / (2 * np.dtype(np.float64).itemsize)))
    n_rows = max(LEAST_ROWS, min(fitting, MOST_ROWS))
    rows = _drawn_rows(samples.y, n_rows, is_classifier(estimator), rng)
    data = to_numpy(rows_in(samples.X, rows)), samples.y[rows], samples.weights[rows]
    gammas = gammas_of(estimator.kernel, samples.X)
    params = estimator.get_params(deep=False)
    params = {name: params[name] for name in SHARED_PARAMETERS if name in params}
    splits = _scale_folds(rows, folds, len(samples.y), rng)
    params |= {"loo": False, "cv": splits, "random_state": seed}
    candidates = [type(estimator)(gamma=gamma, **params) for gamma in gammas]
    if estimator._distances is None:
        estimator._share_work(candidates, *data[:2])
    else:
        distances = estimator._distances[np.ix_(samples.rows[rows], samples.rows[rows])]
        for candidate in candidates:
            candidate._use_distances(distances)

    def go_on(number, n_updates):
        is_over = candidates[number].fit_up_to(n_updates, *data)
        return candidates[number].cv_path_.min(), is_over

    # Among equals the smaller gamma is kept: its functions are smoother.
    best, scores, _ = halved(len(gammas), go_on, lambda n: candidates[n]._release())
    return float(gammas[best]), {"gammas_": gammas, "gamma_scores_": scores}


def gammas_of(kernel, X):
    """The values of gamma to compare, (n_scales,)."""
    return np.array([scale_gamma(kernel, X, factor) for factor in FACTORS])


def _drawn_rows(y, n_rows, has_classes, rng):
    """Sorted rows: all, or random ones and the first row of each class."""
    if len(y) <= n_rows:
        return np.arange(len(y))
    rows = rng.permutation(len(y))[:n_rows]
    if has_classes:
        rows = np.concatenate([rows, np.unique(y, return_index=True)[1]])
    return np.unique(rows)


def _scale_folds(rows, folds, n_rows, rng):
    """Folds of the drawn rows: those of the estimator, or five random ones."""
    if not folds:
        n_folds = min(KFold().n_splits, len(rows))
        return list(KFold(n_folds, shuffle=True, random_state=rng).split(rows))
    index = np.full(n_rows, -1)
    index[rows] = np.arange(len(rows))
    parts = [[index[part][index[part] >= 0] for part in fold] for fold in folds]
    return [fold for fold in parts if all(map(len, fold))]
