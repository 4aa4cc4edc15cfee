"""Folds beside a training loop of a user's own: what iterates cost, as they come."""

from abc import ABC, abstractmethod

import numpy as np

from .._estimator.stopping import Patience
from .estimates import PathEstimate

# A replica on all rows is the loop's own run. The first updates of both are compared:
# they may be off by that share of how far they have come. Rounding is less; another
# batch or step size is more.
N_COMPARED = 10
LARGEST_SHARE = 0.05


class AlongsideLoop(ABC):
    """Replicas that are advanced with a training loop, update by update.

    Parameters
    ----------
    folds : Folds
    every : int
        After how many updates held-out rows are predicted.
    """

    def __init__(self, folds, every):
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every}.")
        self._folds, self._every = folds, every
        self._path, self._se_path = [], []
        self._patience = Patience(None)
        self.n_steps_ = 0
        self._evaluate()

    @abstractmethod
    def _advance(self, rows):
        """Make one update of all replicas on some rows; None is all."""

    @abstractmethod
    def _parted(self):
        """How far the loop is from its replica, and both from the start."""

    @abstractmethod
    def _held_out(self):
        """What replicas predict of rows that they leave out, and what that costs."""

    @abstractmethod
    def _keep(self):
        """Keep the parameters that the loop has now: they are the best so far."""

    def _follow(self, rows):
        """Take note of an update of the loop."""
        self._advance(rows)
        self.n_steps_ += 1
        if self.n_steps_ <= N_COMPARED:
            self._check_followed()
        if self.n_steps_ % self._every == 0:
            self._evaluate()

    def _check_followed(self):
        distance, length = self._parted()
        if not distance <= LARGEST_SHARE * length:
            raise ValueError(
                f"After update {self.n_steps_} the loop's parameters are not those of "
                "the same update made here on all rows: step() must be told the rows "
                "of every update, and the loss (a mean over them), penalty, optimiser "
                "and schedule must be those of the loop."
            )

    def _evaluate(self):
        predictions, costs = self._held_out()
        found = PathEstimate.of(costs, predictions, self._folds, self.n_steps_)
        self._path.append(found.path[0])
        self._se_path.append(found.se_path[0])
        self._patience.update(found.path[0])
        if self._patience.best == len(self._path) - 1:
            self._keep()

    @property
    def path_(self):
        """What the iterates are expected to cost on unseen rows, (n_evaluations,)."""
        return np.array(self._path)

    @property
    def se_path_(self):
        """Its standard error over folds, (n_evaluations,)."""
        return np.array(self._se_path)

    @property
    def iterations_(self):
        """After how many updates each entry of the path was, (n_evaluations,)."""
        return self._every * np.arange(len(self._path))

    @property
    def best_iteration_(self):
        """The update after which the path was least; the earliest of them."""
        return self._every * self._patience.best

    def should_stop(self, patience):
        """Whether the best iterate has been followed by so many others.

        Parameters
        ----------
        patience : int
            Entries of ``path_`` without an improvement.

        Returns
        -------
        bool
        """
        self._patience.patience = patience
        return self._patience.has_ended
