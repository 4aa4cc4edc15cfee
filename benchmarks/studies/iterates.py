"""Do intervals of iterates cover as often as they say, where data chose the iterate?"""

from functools import partial

import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

from skacv import (
    IterativeRidge,
    TrajectoryEarlyStoppingCV,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
)

from ..framework import header, line, study

ITERATES = {"keep_data": True, "max_iter": 60, "tol": 0}
EFFECTS = np.array([1.0, -0.5, 0.25, 0.0, 0.0, 0.5])


def gaussian(n, rho, rng):
    X = rng.standard_normal((n, len(EFFECTS)))
    for j in range(1, X.shape[1]):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    return X


def numbers(n, rng, rho=0.0):
    X = gaussian(n, rho, rng)
    return X, X @ EFFECTS + 2 * rng.standard_normal(n), None, None


def weighted(n, rng):
    X = gaussian(n, 0.5, rng)
    noise = 2 * np.exp(X[:, 0] / 2) * rng.standard_normal(n)
    return X, X @ EFFECTS + noise, rng.uniform(0.5, 2, n), None


def grouped(n, rng):
    group = np.arange(n) // 5
    n_groups = group[-1] + 1
    X = (gaussian(n, 0.5, rng) + gaussian(n_groups, 0.5, rng)[group]) / np.sqrt(2)
    noise = rng.standard_normal(n) + 1.5 * rng.standard_normal(n_groups)[group]
    return X, X @ EFFECTS + noise, None, group


def labels(n, rng):
    X = gaussian(n, 0.5, rng)
    return X, rng.random(n) < expit(X @ EFFECTS), None, None


def counts(n, rng):
    X = gaussian(n, 0.5, rng)
    return X, rng.poisson(np.exp(X @ EFFECTS / 2)), None, None


SETTINGS = {
    "independent columns": (numbers, IterativeRidge(0.0, step_size=0.2), 200),
    "AR(.9) columns": (
        partial(numbers, rho=0.9),
        IterativeRidge(0.0, step_size=0.1),
        200,
    ),
    "unequal variances, weights": (weighted, IterativeRidge(0.0, step_size=0.2), 200),
    "groups of five rows": (grouped, IterativeRidge(0.0, step_size=0.2), 300),
    "logistic": (labels, TrajectoryLogisticRegression(np.inf, step_size=0.8), 300),
    "Poisson": (counts, TrajectoryPoissonRegressor(0.0, step_size=0.2), 300),
}


@study()
def iterates(n_repeats=300):
    """Coverage of intervals of the iterate that folds have chosen, nominal .95.

    Six columns; the same iterate of the same run on 100,000 rows takes the place of
    that on the population. "Fixed": intervals of which each holds for an iterate that
    is fixed beforehand. "All": intervals that hold for all iterates at once. Columns
    are correlated as an AR(.5) where nothing else is said. Groups of five rows share a
    part of their columns and of their noise; folds and intervals know the groups. The
    standard error of a coverage is about .007: intervals of a repeat are not
    independent.
    """
    yield from header(
        "setting", "rows", "chosen iterates", "fixed", "all", "least column", "width"
    )
    for name, (draw, model, n_rows) in SETTINGS.items():
        rng = np.random.default_rng(1)
        X, y, weights, _ = draw(100_000, rng)
        model = model.set_params(**ITERATES)
        population = clone(model).fit(X, y, sample_weight=weights).coef_path_
        chosen, covers, widths = [], {True: [], False: []}, {True: [], False: []}
        for _ in range(n_repeats):
            X, y, weights, groups = draw(n_rows, rng)
            cv = 5 if groups is None else list(GroupKFold(5).split(X, y, groups))
            stopped = TrajectoryEarlyStoppingCV(model, criterion="cv", cv=cv)
            stopped.fit(X, y, sample_weight=weights)
            t = stopped.best_iter_
            chosen.append(t)
            for is_of_all in (True, False):
                ends = stopped.estimator_.coef_path_interval(
                    groups=groups, n_groups=100, simultaneous=is_of_all
                )[t]
                truth = population[t].ravel()
                covers[is_of_all].append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
                widths[is_of_all].append(ends[:, 1] - ends[:, 0])
        low, middle, high = np.percentile(chosen, [5, 50, 95]).astype(int)
        shares = [np.mean(covers[False]), np.mean(covers[True])]
        shares.append(np.mean(covers[True], axis=0).min())
        width = np.mean(widths[True]) / np.mean(widths[False])
        cells = [f"{share:.3f}" for share in shares]
        yield line(
            name, n_rows, f"{low}, {middle}, {high}", *cells, f"{width:.2f} of fixed"
        )
