"""Held-out predictions that are computed when an iterate of theirs is asked for."""

import numpy as np

from ...optim.array_path import ArrayPath


class HeldOutPath(ArrayPath):
    """Predictions of held-out rows by every iterate, fold after fold.

    The shape is (n_iterates, n_held_out) or (n_iterates, n_held_out, n_targets). Where
    they are computed from coefficients of the folds, X is kept as ``fit`` has had it,
    without a copy: it must not be changed in place.

    Parameters
    ----------
    paths : list of Predictors of shape (n_iterates, n_held_out, n_outputs)
    offset : ndarray of shape (1, n_outputs)
        Means of the targets, or zeros.
    is_flat : bool
        Whether a prediction is one number, without an axis for outputs.
    prediction : callable
        ``prediction(predictor, loss)``.
    """

    def __init__(self, paths, offset, is_flat, prediction, loss, dtype):
        self._paths, self._offset, self._is_flat = paths, offset, is_flat
        self._prediction, self._loss, self.dtype = prediction, loss, dtype
        n_held_out = sum(path.shape[1] for path in paths)
        row = self._finished(np.zeros((1, n_held_out, paths[0].shape[2])))
        self.shape = len(paths[0]), *row.shape[1:]

    def _predictors(self, iterates):
        return np.concatenate([path[iterates] for path in self._paths], axis=1)

    def _of(self, iterates):
        return self._finished(self._predictors(iterates))

    def _finished(self, predictors):
        """Predictions from linear predictors less the means of the targets."""
        found = (predictors + self._offset).astype(self.dtype, copy=False)
        return self._prediction(found[:, :, 0] if self._is_flat else found, self._loss)
