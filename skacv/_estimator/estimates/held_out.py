"""Held-out predictions of all iterates, read from rows of X or kept; their losses."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from ...optim.array_path import ArrayPath, Predictors, StoredPath
from ...optim.blocks import LARGE_BYTES, blocks
from ...risk.held_out_rows import (
    error_of_repeats,
    losses_of,
    mean_with_error,
    units_of,
)


class RunningPath(ArrayPath):
    """Held-out predictions while a fit runs, which may be computed from rows of X."""

    # Whether the predictions of all iterates are available.
    has_all = True
    # Whether predictions are computed from rows of X when they are read.
    reads_rows: bool

    def load(self):
        """These predictions as values in memory."""
        return StoredPath(np.asarray(self))

    def one_by_one(self):
        """A path with these predictions, to read one iterate of it in little memory."""
        return self


class OfOneIterate(ArrayPath):
    """Held-out predictions of one iterate, where those of others are not kept.

    Shapes: path (n_iterates, ...).
    """

    def __init__(self, path, t):
        self.shape, self.dtype = path.shape, path.dtype
        path = path.one_by_one() if isinstance(path, RunningPath) else path
        self._t, self._predictions = t, np.array(path[t])

    def _compute(self, iterates):
        if range(len(self))[iterates] != range(self._t, self._t + 1):
            raise ValueError(
                "TrajectoryEarlyStoppingCV keeps the held-out predictions of the "
                f"chosen iterate, {self._t}, only: fit its estimator by itself for "
                "those of the other iterates."
            )
        return self._predictions[None]


class HeldOutPath(RunningPath):
    """Predictions of held-out rows by every iterate, fold after fold.

    Shapes: paths (n_iterates, n_held_out, n_outputs).
    """

    def __init__(self, paths, finished):
        self._paths, self._finished = paths, finished
        self.reads_rows, n_held_out = False, 0
        for path in paths:
            # Products of coefficients with rows of X, unless they are stored.
            self.reads_rows |= isinstance(path, Predictors)
            n_held_out += path.shape[1]
        row = finished(np.zeros((1, n_held_out, paths[0].shape[2])))
        self.shape, self.dtype = (len(paths[0]), *row.shape[1:]), row.dtype

    def one_by_one(self):
        return type(self)([path.one_by_one() for path in self._paths], self._finished)

    def _compute(self, iterates):
        parts = [path[iterates] for path in self._paths]
        return self._finished(np.concatenate(parts, axis=1))


@dataclass(frozen=True, eq=False)
class HeldOutLosses:
    """Losses ``of(iterates)`` of held-out rows under iterates fitted without them.

    Shapes: rows, folds, weights (n_held_out,); of(iterates) (n_iterates, n_held_out).
    """

    rows: np.ndarray  # a row occurs as often as it was held out
    folds: np.ndarray  # rows that are left out one by one are folds
    weights: np.ndarray
    n_iterates: int
    of: Callable
    n_outputs: int = 1

    def restrict_to(self, samples):
        """The losses of some samples only."""
        kept = np.isin(self.rows, samples)
        return replace(
            self,
            rows=self.rows[kept],
            folds=self.folds[kept],
            weights=self.weights[kept],
            of=lambda iterates: self.of(iterates)[:, kept],
        )

    def sums(self, labels, n_labels):
        """Losses times weights, summed over the rows of every label, and the weights.

        Shapes: labels (n_held_out,); returned (n_iterates, n_labels), (n_labels,).
        """
        n_rows = len(labels)
        entries = self.weights, labels, np.arange(n_rows + 1)
        summing = sparse.csc_array(entries, shape=(n_labels, n_rows))
        sums = np.empty((self.n_iterates, n_labels))
        # 16 bytes: a loss, and the predictor that it is computed from. Trees predict
        # many stages at once faster than one.
        n_bytes = 16 * n_rows * self.n_outputs
        for block in blocks(self.n_iterates, n_bytes, LARGE_BYTES, least=8):
            sums[block] = (summing @ self.of(block).T).T
        return sums, np.bincount(labels, self.weights, n_labels)

    def averages(self, groups=None):
        """Mean loss of every iterate, and its standard error over folds.

        Shapes: groups (n_samples,); returned (n_iterates,), (n_iterates,).
        """
        _, labels = np.unique(self.folds, return_inverse=True)
        factor = error_of_repeats(self.rows, self.weights)
        if labels.max() == 0:  # no spread over folds, but over rows or groups
            labels, factor = units_of(self.rows, groups), 1.0
        losses, weights = self.sums(labels, labels.max() + 1)
        mean, error = mean_with_error(losses / weights, weights)
        return mean, error * factor


def row_losses(loss, target, predictions, weights=None):
    """Losses of predictions for some rows, averaged over outputs.

    Losses of coupled rows need their weights. Shapes: target (n_rows, n_outputs),
    predictions (n_iterates, n_rows[, n_outputs]), weights (n_rows,), returned
    (n_iterates, n_rows).
    """
    predictors = loss.predictor(predictions.astype(np.float64))
    predictors = predictors.reshape(*predictions.shape[:2], -1)
    return losses_of(loss, target, predictors, weights)


def held_out_losses_of(estimator, estimate, y):
    """HeldOutLosses of an estimate, their means its path; None without predictions.

    There are none of summaries and of rows on workers, and not all of them are kept
    where they are many.
    """
    record, held_out = estimator.record_, estimate.of(estimator)
    if held_out is None or held_out.prediction is None:
        return None
    if record.loss is None or record.weights is None:
        return None
    if not getattr(held_out.prediction, "has_all", True):
        return None
    indices, predictions, path = held_out.indices, held_out.prediction, held_out.path
    rows = np.hstack(indices)
    folds = np.repeat(np.arange(len(indices)), [*map(np.size, indices)])
    weights = record.weights[rows]
    target = estimator._target(estimator._validate_target(y))[rows]

    def of(iterates):
        losses = estimator._row_losses(target, predictions[iterates], weights)
        mean = losses @ weights / weights.sum()
        return losses + (path[iterates] - mean)[:, None]

    n_outputs = math.prod(predictions.shape[2:])
    return HeldOutLosses(rows, folds, weights, len(path), of, n_outputs)
