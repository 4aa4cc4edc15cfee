"""Folds alongside a user's training loop, with the loss of iterates as they come."""

from typing import Any

import numpy as np

from .._estimator.run.stopping import Patience
from .._warnings import warn
from .checks import check_run
from .estimates import PathEstimate
from .folds import Folds

# An update that differs from the loop's raises an error up to this update. Later an
# error could cost hours of training, and the difference may be rounding where all rows
# are fitted to the last digit: then it is a warning.
N_REFUSED = 10


def is_same_update(distance, length, rounding):
    """Whether two updates differ by less than those of other batches or step sizes."""
    return distance <= 0.05 * length + 10 * rounding


class HeldOutCurve:
    """The loss of held-out rows along a run, evaluation by evaluation."""

    def __init__(self) -> None:
        self._path: list = []
        self._se_path: list = []
        self._iterations: list = []
        self._patience = Patience(None)

    def _add(self, value, error, n_updates, uncertainty=0.0):
        """Add an evaluation; return whether it is the best one so far."""
        self._path.append(value)
        self._se_path.append(error)
        self._iterations.append(n_updates)
        self._patience.update(value, uncertainty)
        return self._patience.best == len(self._path) - 1

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
        return np.array(self._iterations)

    @property
    def best_iteration_(self) -> int:
        """Number of updates at the (first) minimum of the path."""
        return self._iterations[self._patience.best]


class FollowedLoop(HeldOutCurve):
    """Replicas updated along with a training loop, and evaluated every few updates."""

    # The parameters of the best evaluation: a subclass shows them by a name of its own.
    _best_params: Any

    def __init__(
        self, model: Any, start: Any, data: Any, folds: Any, every: int
    ) -> None:
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every}.")
        super().__init__()
        self._model, self._data = model, data
        self._folds, self._every = folds, every
        # The first replica has all rows: it is the loop's own run.
        of_loop = folds.row_weights / folds.row_weights.sum()
        weights = np.concatenate([of_loop[None], folds.weights()])
        self._weights = model.weights(start, data, weights)
        self._replicas = model.begin_replicas(start, self._weights)
        self._X = model.rows_of(data.X, folds.pad(folds.most_held_out))
        self._y = model.rows_of(data.y, folds.indices)
        self._is_warned = False
        self._loop_params, self.n_steps_ = start, 0
        self._evaluate()

    @classmethod
    def _begin(cls, model, start, X, y, folds, every, sample_weight):
        """Check the data, and begin the replicas of a loop at its start."""
        data, row_weights = check_run(model, start, X, y, sample_weight=sample_weight)
        folds = Folds.of(folds, model.to_numpy(data.y), row_weights)
        return cls(model, start, data, folds, every)

    def _follow(self, params, rows):
        """Update the replicas by the rows of the loop's update to ``params``.

        ``rows`` are numbers; None means all. Raise or warn if the first replica, which
        has all rows, has made another update than the loop.
        """
        last, self._loop_params = self._loop_params, params
        batch = self._data.on(rows, self._weights)
        replicas = self._model.step_replicas(self._replicas, *batch)
        # The loop and the first replica begin every update at the same parameters, so
        # that rounding does not add up.
        result = self._model.reset_first(replicas, last, params)
        self._replicas, distance, length, rounding = result
        self.n_steps_ += 1
        is_same = is_same_update(distance, length, rounding)
        if not (is_same or self._is_warned):
            message = (
                f"After update {self.n_steps_} the loop's parameters differ from those "
                "of the same update made here on all rows: pass step() the rows of "
                "every update, and use the loss (a mean over them), penalty, optimiser "
                "and schedule of the loop"
            )
            if self.n_steps_ <= N_REFUSED:
                raise ValueError(f"{message}.")
            self._is_warned = True
            warn(
                f"{message}. The folds no longer follow the loop, unless its updates "
                "are mere rounding errors, as when all rows are fitted, or use the "
                "signs of gradients.",
                UserWarning,
            )
        if self.n_steps_ % self._every == 0:
            self._evaluate()

    def _evaluate(self):
        model = self._model
        # The first replica has no held-out rows.
        predictions = model.to_numpy(model.predictions(self._replicas, self._X, 1))
        predictions = self._folds.unpad(predictions[None])
        losses = model.losses(model.loss, self._y, predictions)
        estimate = PathEstimate.of(losses, predictions, self._folds, self.n_steps_)
        if self._add(estimate.path[0], estimate.se_path[0], self.n_steps_):
            self._best_params = self._loop_params

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
