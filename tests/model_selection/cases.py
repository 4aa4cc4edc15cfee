"""An estimator, a splitter and names that several files share."""

from copy import copy

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state

from skacv import SelfStoppingClassifier, SelfStoppingRegressor
from skacv.model_selection import RecordsTrajectory
from skacv.risk.held_out_rows import mean_with_error
from tests.internals import RULES

OF_BOTH_TASKS = {"kernel", "feature machine", "boosted trees", "extra trees"}
# The default members, where a table lets all of them take part.
MEMBERS = {
    SelfStoppingRegressor: {"lasso", "ridge", *OF_BOTH_TASKS},
    SelfStoppingClassifier: {"logistic", *OF_BOTH_TASKS},
}

# Draws of the corrected score, and the parts of a partition that it leaves out.
N_DRAWS, N_PARTS = 200, 5


def left_out_parts(n_units, rng, classes=None):
    """The units that each draw of the corrected score leaves out of the choice."""
    place = rng.permutation(n_units)
    rng.randint(n_units, size=(N_DRAWS, n_units))  # for the bound of later gains
    for _ in range(N_DRAWS // N_PARTS):
        order = rng.permutation(n_units)
        if classes is not None:
            order = sorted(order, key=lambda group: classes[place == group].item())
        part_of = np.empty(n_units, dtype=int)
        part_of[order] = np.arange(n_units) % N_PARTS
        part_of = part_of[place]
        for part in range(N_PARTS):
            yield np.flatnonzero(part_of == part)


def by_loops(costs, weights, errors, rule, seed, drawn_before, classes=None):
    """Choose without each part of the rows, judge by that part, row by row.

    ``costs`` of every candidate, (n_iterates, n_rows), the rows those of X.
    """
    rng = check_random_state(seed)
    for high in drawn_before:
        rng.randint(high)
    n_rows = len(weights)
    judged = [[] for _ in range(n_rows)]
    for part in left_out_parts(n_rows, rng, classes):
        rows = np.setdiff1d(np.arange(n_rows), part)
        found = []
        for own, error in zip(costs, errors):
            path = np.average(own[:, rows], axis=1, weights=weights[rows])
            t = RULES[rule](path, lambda t, error=error: error[t])
            found.append((path[t], own[t]))
        chosen = min(found, key=lambda pair: pair[0])[1]
        for i in part:
            judged[i].append(chosen[i])
    return np.average([np.mean(each) for each in judged], weights=weights)


class NestedLeastSquares(RecordsTrajectory, RegressorMixin, BaseEstimator):
    """Iterate t is least squares on the first t columns; the protocol does the rest."""

    def __init__(self, loo="auto"):
        self.loo = loo

    def fit(self, X, y):
        Q, R = np.linalg.qr(X)
        self.n_iter_ = X.shape[1]
        self.coef_path_ = np.zeros((self.n_iter_ + 1, self.n_iter_))
        for t in range(1, self.n_iter_ + 1):
            self.coef_path_[t, :t] = np.linalg.solve(R[:t, :t], Q[:, :t].T @ y)
        self.coef_ = self.coef_path_[-1]
        if self.loo:
            leverages = np.pad((Q**2).cumsum(axis=1).T, [(1, 0), (0, 0)])
            residuals = (y - self.coef_path_ @ X.T) / (1 - leverages)
            self.loo_prediction_path_ = y - residuals
            self.loo_indices_ = np.arange(len(y))
            self.loo_path_, self.loo_se_path_ = mean_with_error(
                residuals**2, np.ones(len(y))
            )
        return self

    def predict(self, X):
        return X @ self.coef_

    def at_iteration(self, t):
        stopped = copy(self)
        stopped.coef_ = self.coef_path_[t]
        return stopped


class Drawn:
    """A splitter that counts how often its splits are drawn."""

    n_draws = 0

    def __init__(self, splitter):
        self.splitter = splitter

    def __deepcopy__(self, memo):  # what clone does of splitters
        return self

    def split(self, X, y=None, groups=None):
        self.n_draws += 1
        return self.splitter.split(X, y, groups)

    def get_n_splits(self, X=None, y=None, groups=None):
        return self.splitter.get_n_splits(X, y, groups)
