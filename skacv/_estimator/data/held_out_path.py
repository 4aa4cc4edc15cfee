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
    finished : callable
        ``finished(predictors)`` are predictions, in the place of linear predictors.
    """

    def __init__(self, paths, finished):
        self._paths, self._finished = paths, finished
        n_held_out = sum(path.shape[1] for path in paths)
        row = finished(np.zeros((1, n_held_out, paths[0].shape[2])))
        self.shape, self.dtype = (len(paths[0]), *row.shape[1:]), row.dtype

    def _of(self, iterates):
        parts = [path[iterates] for path in self._paths]
        return self._finished(np.concatenate(parts, axis=1))
