"""What does a race of settings save, what is lost, and does a mean of copies pay?"""

from importlib.util import find_spec
from time import perf_counter

import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.base import is_classifier
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.metrics import log_loss

from skacv import Staged, TableEncoder, TrajectoryEarlyStoppingCV

from ..framework import header, line
from ..unseen.tables import listed, read

# Of the half of the unseen tables that nothing is tuned to, of 500 rows or more.
TABLES = (
    "ames",
    "computers",
    "concrete",
    "airbnb",
    "cells",
    "credit",
    "email",
    "spam7",
)
N_SETTINGS, MOST_STAGES = 30, 3000
SHARES = {"learning_rate": loguniform(0.02, 0.3)}
HISTOGRAMS = {
    "max_leaf_nodes": randint(4, 64),
    "min_samples_leaf": randint(2, 60),
    "l2_regularization": loguniform(1e-3, 30),
    "max_features": uniform(0.3, 0.7),
}
LIGHTGBM = {
    "num_leaves": randint(4, 64),
    "min_child_samples": randint(2, 60),
    "reg_lambda": loguniform(1e-3, 30),
    "colsample_bytree": uniform(0.3, 0.7),
}


def boosters(task):
    """Boosted trees by their names, and distributions of their settings."""
    is_regression = task == "regression"
    classes = HistGradientBoostingClassifier, HistGradientBoostingRegressor
    trees = classes[is_regression](max_iter=MOST_STAGES, random_state=0)
    yield "HistGradientBoosting", trees, SHARES | HISTOGRAMS
    if find_spec("lightgbm"):
        import lightgbm

        classes = lightgbm.LGBMClassifier, lightgbm.LGBMRegressor
        settings = {"verbose": -1, "n_jobs": 1, "random_state": 0}
        trees = classes[is_regression](n_estimators=MOST_STAGES, **settings)
        yield "LightGBM", trees, SHARES | LIGHTGBM


def halves(name, most=3000):
    """The task of a table, and codes and targets of rows to train, and of new ones."""
    (table,) = listed(names=(name,))
    frame, y, _ = read(table)
    rows = np.random.default_rng(0).permutation(len(y))[:most]
    frame, y = frame.iloc[rows], y[rows]
    n = len(y) // 2
    encoder = TableEncoder().fit(frame.iloc[:n])
    train, new = (encoder.transform(part) for part in (frame.iloc[:n], frame.iloc[n:]))
    return (
        table.task,
        (np.asarray(train, float), y[:n]),
        (np.asarray(new, float), y[n:]),
    )


def error_of(model, X, y):
    """The mean squared error, or the log loss."""
    if is_classifier(model):
        return log_loss(y, model.predict_proba(X), labels=model.classes_)
    return np.mean((y - model.predict(X)) ** 2)


def races(names=TABLES, n_settings=N_SETTINGS):
    """Thirty settings of boosted trees: a race beside all of them.

    Tables of benchmarks/unseen, at most 1500 rows of each, in five folds; half of the
    rows are new. Settings are drawn by ``n_candidates=30``: learning rate, leaves, rows
    of a leaf, l2 penalty and share of columns. "Left" are those that the race runs in
    full. Seconds of ``search="race"`` over those of ``search="all"``, in one process;
    and by how much the held-out score, the score corrected for the choice, and the
    error of the new rows are larger. The last lines have geometric means.
    """
    yield from header(
        "table", "trees", "left", "seconds", "score", "corrected", "new rows"
    )
    ratios = {}
    for name in names:
        task, train, new = halves(name)
        for kind, trees, settings in boosters(task):
            results = []
            for search in ("race", "all"):
                begun = perf_counter()
                model = TrajectoryEarlyStoppingCV(
                    trees,
                    cv=5,
                    param_grid=settings,
                    n_candidates=n_settings,
                    search=search,
                    random_state=0,
                ).fit(*train)
                elapsed = perf_counter() - begun
                scores = model.best_score_, model.best_score_corrected_
                results.append([elapsed, *scores, error_of(model, *new)])
                if search == "race":
                    n_left = len(model.results_["left_out"]) - sum(
                        map(bool, model.results_["left_out"])
                    )
            ratio = np.divide(*results)
            ratios.setdefault(kind, []).append(ratio)
            yield line(name, kind, n_left, *(f"{value:.3f}" for value in ratio))
    for kind, of_tables in ratios.items():
        means = np.exp(np.mean(np.log(of_tables), axis=0))
        yield line("all", kind, "", *(f"{value:.3f}" for value in means))
    yield ""


def means_of_copies(names=TABLES):
    """The mean of boosted trees and of the folds' copies, against the model alone.

    Errors on new rows of ``Staged(trees, keep="mean")`` over those of the same trees
    without, both stopped by five folds; tables as above. The coverage of CV+ intervals,
    nominal .9, and their width over that of "scaled" ones of the model alone.
    """
    yield from header("table", "trees", "error", "coverage", "width")
    ratios = {}
    for name in names:
        task, train, (X, y) = halves(name)
        for kind, trees, _ in boosters(task):
            models = []
            for estimator in (Staged(trees, keep="mean"), trees):
                model = TrajectoryEarlyStoppingCV(estimator, cv=5, random_state=0)
                models.append(model.fit(*train))
            ratio = np.divide(*(error_of(model, X, y) for model in models))
            ratios.setdefault(kind, []).append(ratio)
            cells = "", ""
            if task == "regression":
                ends = models[0].predict_interval(X, method="cv+")
                share = np.mean((ends[:, 0] <= y) & (y <= ends[:, 1]))
                widths = [
                    np.ptp(e, axis=1).mean()
                    for e in (ends, models[1].predict_interval(X))
                ]
                cells = f"{share:.2f}", f"{np.divide(*widths):.2f}"
            yield line(name, kind, f"{ratio:.3f}", *cells)
    for kind, of_tables in ratios.items():
        yield line("all", kind, f"{np.exp(np.mean(np.log(of_tables))):.3f}", "", "")
    yield ""
