"""Does the bound on what later iterates may gain hold, and how tight is it?"""

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor
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
