"""Folds alongside a user's training loop, with the loss of iterates as they come."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from .._estimator.run.stopping import Patience
from .._warnings import warn
from .checks import checked, folds_of
from .estimates import PathEstimate

# A replica on all rows makes every update as the loop does, from the loop's own
# parameters, so that rounding does not add up. It may be off by that share of its
# length, and by so many units of rounding of the parameters: less is rounding, another
# batch or step size is more.
LARGEST_SHARE = 0.05
UNITS = 10.0
# What is off from the first is refused. Later it may cost hours of training, or be
# rounding after all, where all rows are fitted to the last digit: that is warned of.
N_REFUSED = 10


class AlongsideLoop(ABC):
    """Replicas that are advanced with a training loop, update by update.

    The folds are evaluated on their held-out rows after every ``every`` updates.
    """

    def __init__(self, folds: Any, every: int) -> None:
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every}.")
        self._folds, self._every = folds, every
        self._path, self._se_path = [], []
        self._patience = Patience(None)
        self._is_warned = False
        self.n_steps_ = 0
        self._evaluate()

    @abstractmethod
    def _advance(self, rows):
        """Make one update of all replicas on some rows; None is all."""

    @abstractmethod
    def _parted(self):
        """How far the loop and its replica are apart, and put them together again.

        The distance between both after the update, which both began at the same
        parameters; the length of the replica's update; and one unit of rounding.
        """

    @abstractmethod
    def _held_out(self):
        """Predictions of replicas for their held-out rows, and their losses."""

    @abstractmethod
    def _keep(self):
        """Keep the loop's current parameters, the best so far."""

    def _follow(self, rows):
        """Follow an update of the loop."""
        self._advance(rows)
        self.n_steps_ += 1
        self._check_followed()
        if self.n_steps_ % self._every == 0:
            self._evaluate()

    def _check_followed(self):
        distance, length, rounding = self._parted()
        if self._is_warned or distance <= LARGEST_SHARE * length + UNITS * rounding:
            return
        said = (
            f"After update {self.n_steps_} the loop's parameters are not those of "
            "the same update made here on all rows: step() must be passed the rows "
            "of every update, and the loss (a mean over them), penalty, optimiser "
            "and schedule must be those of the loop"
        )
        if self.n_steps_ <= N_REFUSED:
            raise ValueError(f"{said}.")
        self._is_warned = True
        warn(
            f"{said}. Folds no longer follow it, unless its updates are rounding "
            "themselves: where all rows are fitted, or by signs of gradients.",
            UserWarning,
        )

    def _evaluate(self):
        predictions, losses = self._held_out()
        found = PathEstimate.of(losses, predictions, self._folds, self.n_steps_)
        self._path.append(found.path[0])
        self._se_path.append(found.se_path[0])
        self._patience.update(found.path[0])
        if self._patience.best == len(self._path) - 1:
            self._keep()

    @property
    def path_(self) -> np.ndarray:
        """Estimated mean loss of the iterates on unseen rows, (n_evaluations,)."""
        return np.array(self._path)

    @property
    def se_path_(self) -> np.ndarray:
        """Standard error of ``path_`` over folds, (n_evaluations,)."""
        return np.array(self._se_path)

    @property
    def iterations_(self) -> np.ndarray:
        """Number of updates at each entry of the path, (n_evaluations,)."""
        return self._every * np.arange(len(self._path))

    @property
    def best_iteration_(self) -> int:
        """Number of updates at the (first) minimum of the path."""
        return self._every * self._patience.best

    def should_stop(self, patience: int) -> bool:
        """Whether the path has not improved for a given number of entries.

        Parameters
        ----------
        patience : int
            Number of entries of ``path_`` without improvement.

        Returns
        -------
        bool
        """
        self._patience.patience = patience
        return self._patience.has_ended


class ReplicatedLoop(AlongsideLoop):
    """The same with replicas of a model in any library.

    A subclass sets ``_now``, the loop's parameters, before it follows an update.
    """

    def __init__(
        self, model: Any, start: Any, data: Any, folds: Any, every: int
    ) -> None:
        self._model, self._data = model, data
        self._last = self._now = start
        # The first replica has all rows: it is the loop's own run.
        equal = np.full((1, data.n_rows), 1 / data.n_rows)
        weights = np.concatenate([equal, folds.weights()])
        self._replicas = model.replicas(start, data, weights)
        self._X = model.rows_of(data.X, folds.padded(folds.most_held_out))
        self._y = model.rows_of(data.y, folds.indices)
        super().__init__(folds, every)

    @classmethod
    def _of(cls, model, start, X, y, folds, every):
        """The replicas of a loop that begins now, from data that are checked first."""
        data = checked(model, start, X, y)
        return cls(model, start, data, folds_of(folds, model, data), every)

    def _advance(self, rows):
        self._replicas.step(*self._data.on(rows, self._replicas.weights))

    def _parted(self):
        last, self._last = self._last, self._now
        return self._replicas.reset_first(last, self._now)

    def _held_out(self):
        predictions = self._replicas.held_out(self._X)
        found = self._folds.unpadded(predictions[:, None])
        return found, self._model.losses(self._model.loss, self._y, found)
