"""Held-out predictions that are computed when an iterate of theirs is asked for."""

import numpy as np

from ..optim.fits import Fits
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

    def _of(self, iterates):
        """Those of some iterates, fold after fold: one product for each fold."""
        if self._fitted is None:
            self._fitted = _fitted(*self._replicas)
        coef, intercept = (path[iterates] for path in self._fitted)
        n_iterates, n_columns, n_outputs, _ = coef.shape
        found = []
        for fold, rows in enumerate(self._judged):
            own = np.moveaxis(coef[..., fold], 0, 1).reshape(n_columns, -1)
            product = self._design.rows(rows).dot(own)
            product = product.reshape(len(rows), n_iterates, n_outputs)
            found.append(np.moveaxis(product + intercept[..., fold], 0, 1))
        found = np.concatenate(found, axis=1) + self._offset
        found = found.astype(self.dtype, copy=False)
        return found[:, :, 0] if self._is_flat else found


def _fitted(problem, trajectory, weights):
    """What all folds have at every iterate, run again on few rows.

    Returns
    -------
    coef : ndarray of shape (n_iterates, n_columns, n_outputs, n_folds)
    intercept : ndarray of shape (n_iterates, n_outputs, n_folds)
        For centred rows.
    """
    row, coef, intercept = problem.design.rows([0]), [], []
    fits = Fits(problem, weights)
    for own, predictor in replayed(problem, trajectory, weights):
        own = fits.of_design(own)
        linear = row.dot(own.reshape(len(own), -1)).reshape(own.shape[1:])
        coef.append(own)
        intercept.append(predictor[0] - linear)
    return np.stack(coef), np.stack(intercept)
