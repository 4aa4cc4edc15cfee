"""Held-out predictions that are computed when an iterate of theirs is asked for."""

from operator import index

import numpy as np

from ..risk.left_out.replicas import replayed


class HeldOutPath:
    """Predictions of held-out rows by every iterate, one iterate at a time.

    It is read like an array of shape (n_iterates, n_held_out) or (n_iterates,
    n_held_out, n_targets): an iterate ``path[t]`` is computed when it is asked for,
    ``np.asarray(path)`` and other indices take all of them. X is kept as it was
    passed, not copied, and must not be changed.

    Parameters
    ----------
    design : Design
        Of the samples.
    folds : list of ndarray of int
        Rows that every fold holds out.
    fits : callable
        ``fits()`` gives the iterates of all folds, as :func:`replayed`.
    finish : callable
        From linear predictors (n_held_out, n_targets) to predictions.
    shape : tuple of int
    dtype : numpy dtype
    """

    def __init__(self, data, trajectory, weights):
        self._trajectory, self._weights, self._problem = trajectory, weights, data.problem
        self._design, self._offset = data.plain.problem.design, data.offset
        self._folds = [judged for _, judged in data.plain_folds]
        self._is_flat = data.has_flat_predictions
        self._coef, self._last = None, (None, None)
        n_held_out = sum(map(len, self._folds))
        shape = len(trajectory.coef), n_held_out, data.problem.target.shape[1]
        self.shape = shape[:2] if self._is_flat else shape
        self.dtype = data.problem.target.dtype

    @classmethod
    def of(cls, run, data):
        """Those of a finished run on rows that stand for the samples."""
        stays = np.zeros((len(data.problem.target), len(run.folds)), dtype=bool)
        for number, (fitted, _) in enumerate(run.folds):
            stays[fitted, number] = True
        refit = run.estimator._refit(data).of_run(run.trajectory)
        return cls(data, run.trajectory, refit.without(data.problem, stays))

    @property
    def ndim(self):
        return len(self.shape)

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, key):
        try:
            t = range(len(self))[index(key)]
        except TypeError:
            return np.asarray(self)[key]
        if self._last[0] != t:
            self._last = t, self._predictions(t)
        return self._last[1]

    def __array__(self, dtype=None, copy=None):
        found = np.empty(self.shape, self.dtype if dtype is None else dtype)
        for t in range(len(self)):
            found[t] = self._predictions(t)
        return found

    def __repr__(self):
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype})"

    def _predictions(self, t):
        """Those of one iterate, fold after fold."""
        coef, intercept = self._fitted()
        found = [
            self._design.rows(rows).dot(coef[t, :, :, number])
            + intercept[t, :, number]
            for number, rows in enumerate(self._folds)
        ]
        found = (np.concatenate(found) + self._offset).astype(self.dtype, copy=False)
        return found[:, 0] if self._is_flat else found

    def _fitted(self):
        """Coefficients and intercepts of all iterates of all folds, run again once."""
        if self._coef is None:
            row = self._problem.design.rows(np.arange(1))
            coef, intercept = [], []
            for iterate in replayed(self._problem, self._trajectory, self._weights):
                linear = row.dot(iterate.coef.reshape(len(iterate.coef), -1))
                coef.append(iterate.coef)
                intercept.append(
                    iterate.predictor[0] - linear.reshape(iterate.coef.shape[1:])
                )
            self._coef = np.stack(coef), np.stack(intercept)
        return self._coef
