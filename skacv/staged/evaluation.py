"""Held-out predictions of every stage, and their losses."""

from copy import copy
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from .._estimator.estimates.held_out import RunningPath, row_losses
from ..optim.array_path import StoredPath, with_room
from ..optim.blocks import MEMORY_BYTES
from ..risk.held_out_rows import error_of_repeats, mean_with_error, units_of
from .adapter import n_stages_per_block
from .losses import WrongLabel
from .query_losses import QueryLoss


class HeldOutStages(RunningPath):
    """Held-out predictions of every stage, fold after fold.

    ``fits`` predict the rows, in order: a StagedFit without each fold, or an OutOfBag.
    They have a stage at least. Row 0 has the predictions without any stage,
    ``constant``. If they are not kept, or do not fit in memory, stages predict again
    when a row is read, but for that of the best stage. Shapes: constant (n_held_out,
    n_outputs).
    """

    # The number of the best stage, and its predictions.
    best = None, None

    def __init__(self, fits, classes, constant, is_kept):
        self._fits, self._classes, self._is_kept = fits, classes, is_kept
        # The next stage to predict, and the results that the fits pass on to it.
        self._next = 0, ()
        first, _ = self._predict(1, 2)
        if constant.size != first.size:
            raise ValueError(
                f"The estimator predicts {first.size // len(constant)} numbers per "
                f"row, but y has {constant.shape[1]}: their numbers must agree."
            )
        self._constant = constant.reshape(first.shape)
        self._kept = np.concatenate([self._constant, first], dtype=float)
        self.shape, self.dtype = self._kept.shape, self._kept.dtype

    def read_new(self, n_stages):
        """Yield blocks of predictions of new stages, up to ``n_stages`` in all.

        With them come the deviations of ``held_out_predictions`` of the fits, or None.
        """
        size = n_stages_per_block(self._constant.size)
        # An eighth, for there are copies of what is kept as it grows.
        most = MEMORY_BYTES // 8
        while len(self) <= n_stages:
            first, last = len(self), min(len(self) + size, n_stages + 1)
            predictions, deviations = self._predict(first, last)
            self.shape = last, *self.shape[1:]
            n_bytes = last * self._constant.nbytes
            if self._kept is None or not self._is_kept or n_bytes > most:
                self._kept = None
            else:
                self._kept = with_room(self._kept, first, last)
                self._kept[first:last] = predictions
            yield predictions, deviations

    def _compute(self, iterates):
        if self._kept is not None:
            return self._kept[: len(self)][iterates]
        rows = np.arange(len(self))[iterates]
        number, predictions = self.best
        if len(rows) == 1 and rows[0] == number:
            return predictions[None]
        first, last = rows.min(initial=len(self)), rows.max(initial=0)
        predictions, _ = self._predict(max(first, 1), last + 1)
        if first == 0:
            predictions = np.concatenate([self._constant, predictions])
        return predictions[rows - first]

    def _predict(self, first, last):
        """Rows ``first`` to ``last`` of the path; where possible they are continued."""
        if last <= first:
            return np.empty((0, *self._constant.shape[1:])), None
        while 0 < self._next[0] < first:  # stages in between are cheaper than all
            reached, size = self._next[0], n_stages_per_block(self._constant.size)
            self._predict(reached, min(reached + size, first))
        reached, former_sums = self._next
        if reached != first:
            former_sums = [None] * len(self._fits)
        predictions, deviations, next_sums = [], [], []
        for fit, sums in zip(self._fits, former_sums):
            values, deviation, sums = fit.held_out_predictions(
                first - 1, last - 1, self._classes, sums
            )
            predictions.append(values)
            if deviation is not None:
                deviations.append(deviation)
            next_sums.append(sums)
        self._next = last, next_sums
        deviations = np.concatenate(deviations, axis=1) if deviations else None
        return np.concatenate(predictions, axis=1), deviations

    @property
    def has_all(self):
        """Whether the predictions of all stages are available."""
        n_stages = len(self) - 1
        return self._kept is not None or all(
            len(fit.stages.recorded_stages()) >= min(n_stages, fit.stages.n_stages)
            for fit in self._fits
        )

    def drop_training_rows(self):
        """A copy of the path, without data of further stages."""
        path = copy(self)
        path._next = 0, ()
        if self._kept is not None:
            path._kept, path._fits = self._kept[: len(self)], []
        else:
            path._fits = [fit.drop_training_rows() for fit in self._fits]
        return path

    @property
    def reads_rows(self):
        return self._kept is None

    def load(self):
        if self._kept is None:
            return super().load()
        return StoredPath(self._kept[: len(self)])


@dataclass
class Evaluation:
    """The losses of stages on the held-out rows of folds.

    Shapes: target (n_samples, n_outputs), weights and groups (n_samples,).
    """

    loss: object
    # Training rows and held-out rows of every fold.
    splits: list
    target: np.ndarray
    weights: np.ndarray
    classes: np.ndarray | None
    # Whether predictions are kept while they fit in memory.
    keeps_predictions: bool
    groups: np.ndarray | None = None
    path: HeldOutStages | None = None
    # Blocks of mean losses of stages on each fold, (n, n_folds), and of their standard
    # errors over the rows of the first fold, or over their groups, (n,).
    losses: list = field(default_factory=list)
    row_errors: list = field(default_factory=list)
    # The least mean loss of all folds.
    least: float = np.inf

    def __post_init__(self):
        # The held-out rows of each fold, and fold after fold; weights of the folds.
        self.held_out, fold_weights = [], []
        for _, held_out in self.splits:
            self.held_out.append(held_out)
            fold_weights.append(self.weights[held_out].sum())
        self.rows = np.concatenate(self.held_out)
        self.fold_weights = np.array(fold_weights)

    def constant(self):
        """Predictions without any stage: means of the training rows of each fold.

        Those of a ranker are all equal: rows are in a random order.
        Shapes: returned (n_held_out, n_outputs).
        """
        if isinstance(self.loss, QueryLoss):
            return np.zeros((len(self.rows), 1))
        if self.loss.couples_rows:  # equal ones
            return self.loss.mean(np.zeros((len(self.rows), 1)))
        constants = np.zeros((len(self.splits), self.target.shape[1]))
        if self.loss != WrongLabel():
            for constant, (fitted, _) in zip(constants, self.splits):
                weights = self.weights[fitted]
                constant[:] = np.average(self.target[fitted], 0, weights)
        return np.repeat(constants, list(map(len, self.held_out)), axis=0)

    def read(self, fits, n_stages):
        """Evaluate the stages that are new since the last call."""
        target, weights, first = self.target, self.weights, []
        if self.path is None:
            of_path = self.classes, self.constant(), self.keeps_predictions
            self.path = HeldOutStages(fits, *of_path)
            first = [(self.path[:2], None)]
        ends = np.cumsum(list(map(len, self.held_out)))[:-1]
        weights_of_folds = np.split(weights[self.rows], ends)
        units = units_of(self.held_out[0], self.groups)
        for predictions, deviations in chain(first, self.path.read_new(n_stages)):
            with np.errstate(over="ignore", invalid="ignore"):  # of one that diverges
                of_rows = target[self.rows], predictions, weights[self.rows]
                losses = row_losses(self.loss, *of_rows)
                if deviations is not None:
                    losses -= self._excess(losses, predictions, deviations)
                # The layout, which would depend on the number of stages, decides how
                # sums are rounded.
                losses = np.ascontiguousarray(losses)
                parts = list(zip(np.split(losses, ends, axis=1), weights_of_folds))
                means = np.empty((len(losses), len(parts)))
                for mean, part in zip(means.T, parts):
                    mean[:], _ = mean_with_error(*part)
                self._keep_best(means, predictions)
                self.losses.append(means)
                self.row_errors.append(mean_with_error(*parts[0], units)[1])

    def _keep_best(self, means, predictions):
        """Keep the predictions of the best stage, if it is the best of some new ones.

        Shapes: means (n, n_folds), predictions (n, n_held_out, ...).
        """
        path, _ = mean_with_error(means, self.fold_weights)
        index = int(np.argmin(np.where(np.isnan(path), np.inf, path)))
        if path[index] < self.least:
            self.least = path[index]
            number = len(self.path) - len(predictions) + index
            self.path.best = number, predictions[index].copy()

    def _excess(self, losses, predictions, deviations):
        """The losses of rows less those of predictions that vary less, in the mean.

        The loss of a mean over n members is linear in 1 / n, the squared error exactly
        and others to second order, so that few members tell that of many (Patil and
        LeJeune 2023, "Extrapolated cross-validation for randomized ensembles").
        """
        # The second derivative is that of half the deviations: probabilities stay
        # positive, and losses with a kink have one.
        step, target = deviations / 2, self.target[self.rows]
        below = row_losses(self.loss, target, predictions - step)
        above = row_losses(self.loss, target, predictions + step)
        return 4 * ((below + above) / 2 - losses)

    def best(self, n_stages):
        """The stage of least loss among the first ``n_stages``."""
        path, _ = self.path_and_error(n_stages)
        return 1 + int(np.argmin(np.where(np.isnan(path), np.inf, path)[1:]))

    def n_finite(self, n_stages):
        """Number of stages up to the last one of a finite loss; all if none is."""
        path, _ = self.path_and_error(n_stages)
        (finite,) = np.isfinite(path[1:]).nonzero()
        return int(finite[-1]) + 1 if len(finite) else n_stages

    def path_and_error(self, n_stages):
        """The mean loss of every stage, and its standard error."""
        by_fold = np.ascontiguousarray(np.concatenate(self.losses)[: n_stages + 1])
        with np.errstate(invalid="ignore"):
            path, se_path = mean_with_error(by_fold, self.fold_weights)
        if len(self.splits) == 1:  # no spread over folds: that over rows, or groups
            return path, np.concatenate(self.row_errors)[: n_stages + 1]
        return path, se_path * error_of_repeats(self.rows, self.weights[self.rows])
