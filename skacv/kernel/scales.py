"""The choice of the kernel, and of gamma: the best of a few kernels and scales.

One run for each, with shared squared distances, is evaluated by folds. The half of the
runs with the lower losses of their best iterates continues, until one run is left. The
choice does not depend on ``max_iter``, so that a run that is continued keeps it.
"""

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import KFold

from .._estimator.data.training_data import positions
from .._estimator.estimates.terms import terms_of
from .._estimator.parameters import is_auto
from .._estimator.run.stopping import halve_runs
from ..optim.namespaces import rows_in, to_numpy
from .kernels import scale_gamma

# Multiples of gamma="scale": 1/64 to 16.
FACTORS = 4.0 ** np.arange(-3, 3)
# What kernel="auto" compares: functions from rough to smooth.
KERNELS_TO_COMPARE = "laplacian", "matern", "rbf"
# The most rows on which scales are compared; and the least, even if the kernel matrix
# and the distances of so many rows exceed the memory budget.
MOST_ROWS, LEAST_ROWS = 1000, 100
# A machine with centres compares scales on more rows with fewer centres, which takes
# half the time, in longer runs: small scales are slower to converge, and an update of
# so few coefficients takes little time.
OF_CENTERS = {"n_rows": 2000, "n_centers": 200, "n_updates": 100}
# Parameters that determine the fitted functions and their evaluation. The other
# parameters of the candidates are automatic.
SHARED_PARAMETERS = (
    "degree",
    "coef0",
    "loss",
    "alpha",
    "fit_intercept",
    "class_weight",
    "memory_budget",
    "n_jobs",
)


class SharedDistances:
    """Squared distances of all rows, which runs of this process share.

    Another process gets none, and computes what it needs: they would take longer to
    send. Shapes: values (n_samples, n_samples).
    """

    def __init__(self, values):
        self.values = values

    def __reduce__(self):
        return no_distances, ()


def no_distances():
    """What another process gets of shared distances."""
    return


def choose_kernel(estimator, task, samples, folds):
    """The kernel and gamma of least loss on folds, and fitted attributes about all.

    ``folds`` are those of the estimator as rows of ``samples``; without any, five are
    drawn. The seed of ``task``, a FitTask, draws rows and folds.
    """
    seed, halving = task.seed, {}
    rng, most_rows = np.random.RandomState(seed), MOST_ROWS
    has_centers = estimator._spec().solver.centers_on(len(samples.y)) is not None
    if has_centers:
        most_rows = OF_CENTERS["n_rows"]
        halving = {"n_updates": OF_CENTERS["n_updates"]}
    # The budget has room for two square arrays of so many rows.
    n_that_fit = int(np.sqrt(estimator._budget() / (2 * np.dtype(np.float64).itemsize)))
    n_rows = max(LEAST_ROWS, min(n_that_fit, most_rows))
    if len(samples.y) <= n_rows:
        rows = np.arange(len(samples.y))
    else:
        rows = rng.permutation(len(samples.y))[:n_rows]
        if is_classifier(estimator):  # every class has a row
            _, first_rows = np.unique(samples.y, return_index=True)
            rows = np.concatenate([rows, first_rows])
        rows = np.unique(rows)
    data = to_numpy(rows_in(samples.X, rows)), samples.y[rows], samples.weights[rows]
    pairs = kernels_and_gammas(estimator.kernel, samples)
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
    params["n_centers"] = OF_CENTERS["n_centers"] if has_centers else None
    models = [type(estimator)(**pair, **params) for pair in pairs]
    if task.distances is None:
        shared = terms_of(estimator).share_work(models, *data[:2])
    else:
        distances = task.distances.values
        distances = distances[np.ix_(samples.rows[rows], samples.rows[rows])]
        shared = {"distances": SharedDistances(distances)}
    runs = {}

    def go_on(number, n_updates):
        if number not in runs:
            runs[number] = models[number].begin(*data, **shared)
        is_over = runs[number].go_on(n_updates)
        return runs[number].record()["cv"].path.min(), is_over

    # In a tie the smaller gamma wins: its functions are smoother.
    best, scores, _ = halve_runs(len(pairs), go_on, runs.pop, **halving)
    attributes = {
        "kernels_": [pair["kernel"] for pair in pairs],
        "gammas_": np.array([pair["gamma"] for pair in pairs]),
        "gamma_scores_": scores,
    }
    return pairs[best], attributes


def kernels_and_gammas(kernel, samples):
    """Parameters ``kernel`` and ``gamma`` to compare, for one of them or "auto"."""
    pairs = []
    for name in KERNELS_TO_COMPARE if is_auto(kernel) else (kernel,):
        for factor in FACTORS:
            gamma = scale_gamma(name, samples.X, samples.weights, factor)
            pairs.append({"kernel": name, "gamma": gamma})
    return pairs
