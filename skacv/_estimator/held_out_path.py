"""Held-out predictions that are computed when an iterate of theirs is asked for."""

import numpy as np

from ..risk.left_out.replicas import replayed
from .array_path import ArrayPath


class HeldOutPath(ArrayPath):
    """Predictions of held-out rows by every iterate, where a run has no single rows.

    The shape is (n_iterates, n_held_out) or (n_iterates, n_held_out, n_targets),
    computed from the coefficients of all folds. X is kept as ``fit`` has had it,
    without a copy: it must not be changed in place.

    Parameters
    ----------
    data : PseudoRowData
    trajectory : Trajectory
        The run on these data.
    weights : Weights
        Weights of the folds, as refits of that run.
    """

    def __init__(self, data, trajectory, weights):
        self._replicas = data.problem, trajectory, weights
        self._design, self._offset = data.observed.design, data.offset
        self._judged = [judged for _, judged in data.plain_folds]
        self._is_flat = data.has_flat_predictions
        self._fitted = None
        n_outputs = data.problem.target.shape[1]
        shape = len(trajectory.coef), sum(map(len, self._judged)), n_outputs
        self.shape = shape[:2] if self._is_flat else shape
        self.dtype = data.problem.target.dtype

    def _at(self, t):
        """Those of one iterate, fold after fold."""
        if self._fitted is None:
            self._fitted = _fitted(*self._replicas)
        coef, intercept = (path[t] for path in self._fitted)
        found = np.concatenate(
            [
                self._design.rows(rows).dot(coef[:, :, fold]) + intercept[:, fold]
                for fold, rows in enumerate(self._judged)
            ]
        )
        found = (found + self._offset).astype(self.dtype, copy=False)
        return found[:, 0] if self._is_flat else found


def _fitted(problem, trajectory, weights):
    """What all folds have at every iterate, run again on few rows.

    Returns
    -------
    coef : ndarray of shape (n_iterates, n_columns, n_outputs, n_folds)
    intercept : ndarray of shape (n_iterates, n_outputs, n_folds)
        For centred rows.
    """
    row, coef, intercept = problem.design.rows([0]), [], []
    for own, predictor in replayed(problem, trajectory, weights):
        linear = row.dot(own.reshape(len(own), -1)).reshape(own.shape[1:])
        coef.append(own)
        intercept.append(predictor[0] - linear)
    return np.stack(coef), np.stack(intercept)
