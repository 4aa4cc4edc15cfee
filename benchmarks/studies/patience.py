"""After how many values of alpha without an improvement may a path end?

Against the least test loss of the whole path: what ending costs, and what it saves.
"""

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold

from skacv._estimator.run.stopping import Patience

from ..framework import header, line
from ..real_data import halves
from .criteria import GROUPS, OFF

PATIENCES = (3, 5, 10)


def patience(n_splits=10):
    """After how many strengths without an improvement a path may end.

    The default paths of the lasso and of logistic regression, judged by five random
    folds; half of the rows train, 10 splits. Of every patience, in values of alpha (or
    C), the mean regret (test loss of the choice over the least on the path, less one)
    and the share of the path that is run. "whole" ends nowhere.
    """
    names = [*map(str, PATIENCES), "whole"]
    heads = (head for name in names for head in (f"{name}: regret", "run"))
    yield from header("data", *heads)
    paths = "lasso path", "logistic path"
    for model, (sets, models, test_losses, stratified) in zip(paths, GROUPS):
        for name, data in sets.items():
            settings = data, clone(models[model]), test_losses, stratified
            results = [_ended(*settings, seed) for seed in range(n_splits)]
            yield line(name, *(f"{value:.3f}" for value in np.mean(results, axis=0)))


def _ended(data, model, test_losses, stratified, seed):
    """Regret and share of the path that is run, patience by patience, on one split."""
    X, y, X_test, y_test = halves(data, seed, stratified)
    folds = (StratifiedKFold if stratified else KFold)(5, shuffle=True, random_state=0)
    model.set_params(**{**OFF, "cv": folds}, random_state=seed)
    path = model.fit(X, y).cv_path_
    losses, results = test_losses(model, X_test, y_test), []
    for n_strengths in (*PATIENCES, None):
        n_wanted = None if n_strengths is None else n_strengths * model.max_iter
        judge, n_run = Patience(n_wanted), 0
        while n_run < len(path) and not judge.has_ended:
            judge.update(path[n_run])
            n_run += 1
        results += [losses[judge.best] / losses.min() - 1, n_run / len(path)]
    return results
