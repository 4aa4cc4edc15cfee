"""Held-out predictions of all iterates: read from rows of X, or kept."""

from abc import abstractmethod

import numpy as np

from ...optim.array_path import ArrayPath, Predictors, StoredPath


class RunningPath(ArrayPath):
    """Held-out predictions while a fit runs, which may be computed from rows of X."""

    # Whether the predictions of all iterates are available.
    has_all = True

    @property
    @abstractmethod
    def reads_rows(self):
        """Whether predictions are computed from rows of X when they are read."""

    def stored(self):
        """The same predictions as values in memory.

        Returns
        -------
        StoredPath
        """
        return StoredPath(np.asarray(self))

    def one_by_one(self):
        """The same path, to read one iterate of it in little memory."""
        return self


class OfOneIterate(ArrayPath):
    """Held-out predictions of one iterate, where those of others are not kept.

    Parameters
    ----------
    path : ArrayPath or ndarray of shape (n_iterates, ...)
        Those of all iterates.
    t : int
    """

    def __init__(self, path, t):
        self.shape, self.dtype = path.shape, path.dtype
        path = path.one_by_one() if isinstance(path, RunningPath) else path
        self._t, self._predictions = t, np.array(path[t])

    def _of(self, iterates):
        if range(len(self))[iterates] != range(self._t, self._t + 1):
            raise ValueError(
                "TrajectoryEarlyStoppingCV keeps the held-out predictions of the "
                f"chosen iterate, {self._t}, alone: those of others are had from its "
                "estimator, fitted by itself."
            )
        return self._predictions[None]


class HeldOutPath(RunningPath):
    """Predictions of held-out rows by every iterate, fold after fold.

    The shape is (n_iterates, n_held_out) or (n_iterates, n_held_out, n_targets).

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

    @property
    def reads_rows(self):
        """Whether they are products of coefficients with rows of X."""
        return any(isinstance(path, Predictors) for path in self._paths)

    def one_by_one(self):
        return type(self)([path.one_by_one() for path in self._paths], self._finished)

    def _of(self, iterates):
        parts = [path[iterates] for path in self._paths]
        return self._finished(np.concatenate(parts, axis=1))
