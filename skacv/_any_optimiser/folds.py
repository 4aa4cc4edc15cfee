"""The rows that every replica leaves out, and the weights of the others."""

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import check_cv

from .._estimator.estimates.folds import ShuffledFolds, folds_of, row_numbers
from ..optim.blocks import CACHE_BYTES, n_per_block


@dataclass(frozen=True, eq=False)
class Folds:
    """Held-out rows of every replica, and training rows (None: all other rows).

    Shapes: row_weights (n_rows,); rows of weight zero are in no fold.
    """

    row_weights: np.ndarray
    held_out: tuple
    training: tuple | None = None

    @classmethod
    def of(cls, folds, y, row_weights=None):
        """Folds from a number, a splitter, or pairs of training and held-out rows."""
        n_rows = len(y)
        row_weights = np.ones(n_rows) if row_weights is None else row_weights
        if isinstance(folds, int | np.integer):
            if not 2 <= folds <= n_rows:
                raise ValueError(
                    f"folds={folds} must be at least 2 and at most the {n_rows} rows."
                )
            folds = ShuffledFolds(stratified=False, n_splits=int(folds))
        splits = check_cv(folds).split(np.zeros((n_rows, 0)), y)
        position = np.where(row_weights > 0, np.arange(n_rows), -1)
        training, held_out = zip(*folds_of(splits, position))
        return cls(row_weights, held_out, training)

    @classmethod
    def of_rows(cls, rows, row_weights):
        """Folds of single rows; None means all rows of positive weight."""
        rows = np.flatnonzero(row_weights) if rows is None else rows
        rows = row_numbers(rows, len(row_weights), "rows")
        if not len(rows):
            raise ValueError("rows has none to leave out.")
        weightless = rows[row_weights[rows] == 0]
        if len(weightless):
            raise ValueError(
                f"rows has row {weightless[0]}, whose sample_weight is zero: the run "
                "is without it anyway."
            )
        return cls(row_weights, tuple(rows[:, None]))

    def __len__(self):
        return len(self.held_out)

    @property
    def n_rows(self):
        return len(self.row_weights)

    @property
    def indices(self):
        """Held-out rows, fold after fold, (n_held_out,)."""
        return np.concatenate(self.held_out)

    @property
    def numbers(self):
        """The fold of every held-out row, (n_held_out,)."""
        return np.repeat(np.arange(len(self)), [len(rows) for rows in self.held_out])

    def weights(self):
        """Weights of the rows in the mean loss of every replica, (n_folds, n_rows)."""
        if self.training is None:
            counts = np.ones((len(self), self.n_rows))
            for count, rows in zip(counts, self.held_out):
                count[rows] = 0
        else:  # a row that is drawn twice counts twice
            counts = np.stack(
                [np.bincount(rows, minlength=self.n_rows) for rows in self.training]
            )
        weights = counts * self.row_weights
        return weights / weights.sum(axis=1, keepdims=True)

    @property
    def most_held_out(self):
        return max(len(rows) for rows in self.held_out)

    def pad(self, size):
        """The held-out rows, (n_folds, size), padded by repeating the last one."""
        return np.stack(
            [np.pad(rows, (0, size - len(rows)), mode="edge") for rows in self.held_out]
        )

    def unpad(self, predictions):
        """Predictions (n_iterates, n_held_out, ...) of the first folds, unpadded."""
        # Shapes: predictions (n_iterates, n_first_folds, size, ...).
        first = enumerate(self.held_out[: predictions.shape[1]])
        parts = [predictions[:, fold, : len(rows)] for fold, rows in first]
        return np.concatenate(parts, axis=1)

    def blocks(self, most=None, n_bytes=CACHE_BYTES):
        """Blocks of equally many folds, with the number of folds that are not padding.

        Equal shapes are compiled once, so the last block is filled with the last fold.
        """
        if most is None:
            most = n_replicas_per_block(self.n_rows, n_bytes)
        n_blocks = -(-len(self) // max(1, most))
        size = -(-len(self) // n_blocks)
        for first in range(0, len(self), size):
            numbers = np.minimum(np.arange(first, first + size), len(self) - 1)
            held_out = tuple(self.held_out[number] for number in numbers)
            training = self.training
            if training is not None:
                training = tuple(training[number] for number in numbers)
            block = Folds(self.row_weights, held_out, training)
            yield block, min(size, len(self) - first)

    def predict_by_block(self, held_out, most=None):
        """Predictions of all held-out rows, block by block.

        ``held_out(weights, rows)`` predicts a block.

        Shapes: weights (n_block, n_rows), rows (n_block, size).
        """
        parts = []
        for block, n_folds in self.blocks(most):
            part = held_out(block.weights(), block.pad(self.most_held_out))
            parts.append(block.unpad(part[:, :n_folds]))
        return np.concatenate(parts, axis=1)


def n_replicas_per_block(n_rows, n_bytes=CACHE_BYTES):
    """Number of replicas whose predictions fit in ``n_bytes``, at least 16."""
    return max(16, n_per_block(8 * n_rows, n_bytes))
