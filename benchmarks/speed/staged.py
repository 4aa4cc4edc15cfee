"""Does it cost a model of stages, such as boosting, nothing to stop itself?

Against five clones and one fit, of as many stages, by hand: at most 1.1 times as long.
"""

from functools import partial

from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.model_selection import KFold

from skacv import TrajectoryEarlyStoppingCV

from ..framework import Row, medians

FOLDS = KFold(5, shuffle=True, random_state=0)
N_ROWS, REPEATS = 1500, 5
MODELS = [
    (20, HistGradientBoostingRegressor(max_iter=2000, random_state=0)),
    (100, HistGradientBoostingRegressor(max_iter=2000, random_state=0)),
    (20, GradientBoostingRegressor(n_estimators=2000, subsample=0.7, random_state=0)),
    (20, RandomForestRegressor(n_estimators=200, random_state=0)),
]


def by_hand(model, X, y):
    """One fit, and a clone for each fold that predicts its rows."""
    for rows, judged in FOLDS.split(X):
        clone(model).fit(X[rows], y[rows]).predict(X[judged])
    return clone(model).fit(X, y)


def staged():
    """Folds and run together, against clones fitted at once to as many stages."""
    for n_columns, model in MODELS:
        X, y = make_friedman1(N_ROWS, n_columns, noise=1.0, random_state=0)
        stopping = TrajectoryEarlyStoppingCV(model, cv=FOLDS)
        n_stages = stopping.fit(X, y).estimator_.n_iter_
        count = "max_iter" if hasattr(model, "max_iter") else "n_estimators"
        same = clone(model).set_params(**{count: n_stages})
        if hasattr(model, "early_stopping"):
            same.set_params(early_stopping=False)
        (ours, results), (theirs, _) = medians(
            partial(stopping.fit, X, y), partial(by_hand, same, X, y), repeats=REPEATS
        )
        yield Row.cost(
            f"{type(model).__name__} that stops itself, {N_ROWS} x {n_columns}",
            f"five clones and one fit of {n_stages} stages",
            ours,
            theirs,
            "<= 1.1",
            f"stopped at stage {results.best_iter_}",
        )
