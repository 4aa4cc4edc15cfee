"""The choice of gamma for ``gamma="auto"``: the best of a few scales.

One run for every scale, with shared squared distances, is evaluated by folds. The half
of the runs with the lower losses of their best iterates continues, until one run is
left. The choice does not depend on ``max_iter``, so that a run that is continued keeps
its gamma.
"""

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import KFold

from .._estimator.data.training_data import positions
from .._estimator.run.stopping import halved
from ..optim.namespaces import rows_in, to_numpy
from .kernels import scale_gamma

# Multiples of gamma="scale": 1/64 to 16.
FACTORS = 4.0 ** np.arange(-3, 3)
# The most rows on which scales are compared; and the least, even if the kernel matrix
# and the distances of so many rows exceed the memory budget.
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

    ``folds`` are those of the estimator as rows of ``samples``; without any, five are
    drawn. ``seed`` draws rows and folds.
    """
    rng = np.random.RandomState(seed)
    # The budget has room for two square arrays of so many rows.
    n_that_fit = int(np.sqrt(estimator._budget() / (2 * np.dtype(np.float64).itemsize)))
    n_rows = max(LEAST_ROWS, min(n_that_fit, MOST_ROWS))
    if len(samples.y) <= n_rows:
        rows = np.arange(len(samples.y))
    else:
        rows = rng.permutation(len(samples.y))[:n_rows]
        if is_classifier(estimator):  # every class has a row
            _, first_rows = np.unique(samples.y, return_index=True)
            rows = np.concatenate([rows, first_rows])
        rows = np.unique(rows)
    data = to_numpy(rows_in(samples.X, rows)), samples.y[rows], samples.weights[rows]
    gammas = gammas_of(estimator.kernel, samples.X)
    params = estimator.get_params(deep=False)
    params = {name: params[name] for name in SHARED_PARAMETERS if name in params}
    if folds:  # the estimator's folds, restricted to the rows drawn
        index = positions(rows, len(samples.y))
        parts = [[index[part][index[part] >= 0] for part in fold] for fold in folds]
        splits = [fold for fold in parts if all(map(len, fold))]
    else:
        n_folds = min(KFold().n_splits, len(rows))
        splits = list(KFold(n_folds, shuffle=True, random_state=rng).split(rows))
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

    # In a tie the smaller gamma wins: its functions are smoother.
    best, scores, _ = halved(len(gammas), go_on, lambda n: candidates[n]._release())
    return float(gammas[best]), {"gammas_": gammas, "gamma_scores_": scores}


def gammas_of(kernel, X):
    """The values of gamma to compare, (n_scales,)."""
    return np.array([scale_gamma(kernel, X, factor) for factor in FACTORS])
