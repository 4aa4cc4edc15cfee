"""An estimator, a splitter and names that several files share."""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state

from skacv import SelfStoppingClassifier, SelfStoppingRegressor
from skacv.model_selection import RecordsTrajectory
from skacv.records import CoefPath, HeldOut, Record, Run
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


class NestedRun(Run):
    """Iterate t is least squares on the first t columns, with exact leave-one-out."""

    def __init__(self, X, y, leaves_rows_out):
        self.X, self.y, self.leaves_rows_out = X, y, leaves_rows_out
        self.Q, self.R = np.linalg.qr(X)
        self.coef = [np.zeros(X.shape[1])]

    def go_on(self, n_updates=None, progress=None):
        n_columns = self.X.shape[1]
        last = n_columns if n_updates is None else min(n_updates, n_columns)
        for t in range(len(self.coef), last + 1):
            coef = np.zeros(n_columns)
            coef[:t] = np.linalg.solve(self.R[:t, :t], self.Q[:, :t].T @ self.y)
            self.coef.append(coef)
        return last == n_columns

    def record(self):
        coef, last = np.array(self.coef), len(self.coef) - 1
        iterates, estimates = CoefPath(coef, np.zeros(len(coef))), {}
        if self.leaves_rows_out:
            leverages = np.pad((self.Q**2).cumsum(axis=1).T, [(1, 0), (0, 0)])
            residuals = (self.y - coef @ self.X.T) / (1 - leverages[: len(coef)])
            rows = np.arange(len(self.y))
            estimates["loo"] = HeldOut(
                *mean_with_error(residuals**2, np.ones(len(rows))),
                indices=rows,
                target=self.y,
                prediction=self.y - residuals,
            )
        return Record(
            iterates=iterates,
            iteration=last,
            iterate=iterates.at(last),
            n_iter=last,
            estimates=estimates,
        )


class NestedLeastSquares(RecordsTrajectory, RegressorMixin, BaseEstimator):
    """Least squares on more and more columns; the base class does the rest."""

    def __init__(self, loo="auto"):
        self.loo = loo

    def begin(self, X, y):
        return NestedRun(X, y, bool(self.loo))

    def predict(self, X):
        return X @ self.record_.iterate.coef


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
