"""Does the bound on what later iterates may gain hold, and how tight is it?"""

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler

from skacv import (
    IterativeRidge,
    TableEncoder,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
)

from ..framework import header, line
from ..unseen.tables import listed, read

TABLES = ("ais", "airbnb", "computers", "concrete", "quakes", "wish")
# Runs to their end: a bound is of the iterates that have been run.
RUNS = {
    "gradient descent": IterativeRidge(0.0, solver="nesterov", max_iter=100, tol=0),
    "lasso path": TrajectoryLasso("path", max_iter=5),
    "boosted trees": GradientBoostingRegressor(
        n_estimators=80, learning_rate=0.2, random_state=0
    ),
}
N_NEW = 5000


def simulated(n_rows, n_columns, rng):
    """Rows and targets, of which the rest are new."""
    X = rng.standard_normal((n_rows + N_NEW, n_columns))
    y = X[:, :5].sum(axis=1) + X[:, 0] * X[:, 1] + 2 * rng.standard_normal(len(X))
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def part_of_table(name, n_rows, rng):
    """Half of at most 2 n rows of a table, standardised; the rest are new."""
    (table,) = listed(names=(name,))
    frame, y, _ = read(table)
    rows = rng.permutation(len(y))
    n_rows = min(n_rows, len(y) // 2)
    X = np.nan_to_num(np.asarray(TableEncoder().fit_transform(frame), float))
    X = StandardScaler().fit(X[rows[:n_rows]]).transform(X)
    fitted, new = rows[:n_rows], rows[n_rows : n_rows + N_NEW]
    return X[fitted], y[fitted], X[new], y[new]


def gains(model, X, y, X_new, y_new):
    """The bound of a fitted model, what later iterates gain on new rows, the error."""
    stopped = TrajectoryEarlyStoppingCV(
        model, criterion="cv", cv=5, patience=None, random_state=0
    ).fit(X, y)
    whole = stopped.estimator_
    if not hasattr(whole, "coef_path_"):  # trees that have followed their folds
        whole = type(whole)(whole.estimator).fit(X, y)
    errors = whole.staged_loss(X_new, y_new)[-(len(stopped.path_)) :]
    first = len(stopped.path_) - len(errors)  # trees have no stage 0
    after = errors[stopped.best_iter_ - first :]
    return stopped.possible_gain_, after[0] - after.min(), after[0]


def later_gains(n_draws=100):
    """Bounds on what later iterates may gain, nominal .95.

    ``possible_gain_`` of runs to their ends, stopped by five folds, over 100 draws of
    training rows (25 for trees): the share of draws in which no later iterate is better
    on 5000 new rows by more than the bound, the mean bound, and the mean of what the
    best later iterate has gained, both over the error. Tables are of benchmarks/unseen:
    300 rows, or half of a table, train, and others are new.
    """
    yield from header("rows", "run", "share held", "bound", "gained")
    draws = {
        f"simulated, {n} x {p}": (simulated, n, p)
        for n, p in ((100, 10), (100, 50), (300, 50), (1000, 50))
    }
    draws |= {name: (part_of_table, name, 300) for name in TABLES}
    for label, (draw, *arguments) in draws.items():
        for kind, model in RUNS.items():
            results = []
            for seed in range(n_draws if kind != "boosted trees" else n_draws // 4):
                data = draw(*arguments, np.random.default_rng(seed))
                results.append(gains(model, *data))
            bound, gained, error = np.transpose(results)
            shares = (f"{np.mean(part / error):.3f}" for part in (bound, gained))
            yield line(label, kind, f"{np.mean(gained <= bound):.3f}", *shares)
    yield ""


def in_groups(n_groups, n_rows, rng, n_columns=10):
    """Rows of groups, each with an intercept and with coefficients of its own."""
    groups = np.repeat(np.arange(n_groups), n_rows)
    X = rng.standard_normal((len(groups), n_columns))
    X += rng.standard_normal((n_groups, n_columns))[groups]
    coefficients = 0.5 * rng.standard_normal((n_groups, n_columns))
    coefficients[:, :2] += 1
    y = (X * coefficients[groups]).sum(axis=1) + rng.standard_normal(len(groups))
    return X, y + 1.5 * rng.standard_normal(n_groups)[groups], groups


def gains_of_groups(n_draws=60):
    """Bounds on what later iterates may gain for new groups, nominal .95.

    Gradient descent on 20 rows of every group, whose intercepts and coefficients differ
    between groups, stopped by folds of groups, over 60 draws: the share of draws in
    which no later iterate is better on 150 new groups by more than ``possible_gain_``,
    and the median bound over the error.
    """
    yield from header("groups", "share held", "bound")
    for n_groups in (2, 3, 4, 5, 8, 10, 15, 20, 30):
        held, bounds = [], []
        for seed in range(n_draws):
            rng = np.random.default_rng([n_groups, seed])
            X, y, groups = in_groups(n_groups, 20, rng)
            X_new, y_new, _ = in_groups(150, 10, rng)
            run = IterativeRidge(0.0, solver="nesterov", max_iter=60, tol=0)
            run.set_params(risk=False, loo=False)
            folds = GroupKFold(min(n_groups, 5))
            stopped = TrajectoryEarlyStoppingCV(
                run, criterion="cv", cv=folds, patience=None, random_state=0
            ).fit(X, y, groups=groups)
            errors = stopped.estimator_.staged_loss(X_new, y_new)[stopped.best_iter_ :]
            held.append(errors[0] - errors.min() <= stopped.possible_gain_)
            bounds.append(stopped.possible_gain_ / errors[0])
        yield line(n_groups, f"{np.mean(held):.3f}", f"{np.median(bounds):.2f}")
    yield ""
