"""Predictions of the stages of folds for their held-out rows."""

from copy import copy

import numpy as np

from .._compat import _num_samples
from .._estimator.estimates.held_out_paths import RunningPath
from ..optim.array_path import StoredPath, with_room

# Predictions are kept up to so many numbers. Beyond it those of a stage are made again
# by its trees, where they are asked for.
MOST_KEPT = 1 << 23
ENTRIES_PER_BLOCK = 1 << 22


class HeldOutStages(RunningPath):
    """Held-out predictions of every stage, fold after fold.

    Parameters
    ----------
    folds : list of Growing
        With one stage at least.
    classes : ndarray or None
    constants : list of ndarray
        Predictions of every fold without any stage, one value per output or class: row
        0.
    most_kept : int
        Largest number of predictions kept.
    """

    # The stage that is made next, and what folds go on from there.
    _next = 0, ()

    def __init__(self, folds, classes, constants, most_kept):
        self._folds, self._classes = folds, classes
        self._most_kept = most_kept
        first = self._made(slice(1, 2))[0]
        n_held_out = [_num_samples(fold.held_out) for fold in folds]
        numbers = np.repeat(constants, n_held_out, axis=0)
        if numbers.size != first.size:
            raise ValueError(
                f"The estimator predicts {first.size // len(numbers)} numbers for a "
                f"row, and y has {numbers.shape[1]}: stages are judged by as many."
            )
        self._constant = numbers.reshape(first.shape)
        self._kept, self._n = self._constant[None].astype(np.float64), 1
        self.dtype = self._kept.dtype

    @property
    def shape(self):
        """(n_stages + 1, n_held_out), or with outputs or classes behind."""
        return self._n, *self._constant.shape

    def first_read(self, n_stages):
        """Predictions by stages that have grown since this was last called.

        Parameters
        ----------
        n_stages : int
            In all.

        Yields
        ------
        ndarray of shape (n, n_held_out, ...)
            One after the other, of a few stages each.
        """
        size = max(1, ENTRIES_PER_BLOCK // self._constant.size)
        while self._n <= n_stages:
            first, last = self._n, min(self._n + size, n_stages + 1)
            found = self._made(slice(first, last))
            self._n = last
            if self._kept is None or last * self._constant.size > self._most_kept:
                self._kept = None
            else:
                self._kept = with_room(self._kept, first, last)
                self._kept[first:last] = found
            yield found

    def first_stages(self, n_stages):
        """The same path with ``n_stages`` stages, which does not grow with this one."""
        found = copy(self)
        found._n, found._last = n_stages + 1, (None, None)
        return found

    def _of(self, iterates):
        if self._kept is not None:
            return self._kept[: self._n][iterates]
        wanted = np.arange(self._n)[iterates]
        first, last = wanted.min(initial=self._n), wanted.max(initial=0)
        found = self._made(slice(max(first, 1), last + 1))
        if first == 0:
            found = np.concatenate([self._constant[None], found])
        return found[wanted - first]

    def _made(self, stages):
        """Predictions of stages, continued from the last ones."""
        if stages.stop <= stages.start:
            return np.empty((0, *self._constant.shape))
        place, side_runs = self._next
        if place != stages.start:
            side_runs = [None] * len(self._folds)
        found = [
            fold.held_out_predictions(
                stages.start - 1, stages.stop - 1, self._classes, own
            )
            for fold, own in zip(self._folds, side_runs)
        ]
        self._next = stages.stop, [own for _, own in found]
        return np.concatenate([each for each, _ in found], axis=1)

    @property
    def has_all(self):
        """Whether the predictions of all stages can be had."""
        n_stages = self._n - 1
        return self._kept is not None or all(
            len(fold.stages.recorded()) >= min(n_stages, fold.stages.n_stages)
            for fold in self._folds
        )

    def released(self):
        """The same path without what only further stages need."""
        found = copy(self)
        found._next = 0, ()
        if self._kept is not None:
            found._kept, found._folds = self._kept[: self._n], []
        else:
            found._folds = [fold.without_training_rows() for fold in self._folds]
        return found

    @property
    def reads_rows(self):
        """Whether they are made again, from the held-out rows."""
        return self._kept is None

    def stored(self):
        """The same predictions as values in memory."""
        if self._kept is None:
            return super().stored()
        return StoredPath(self._kept[: self._n])
