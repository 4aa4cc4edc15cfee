"""The rows that every replica leaves out, and the weights of the others."""

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import check_cv

from .._estimator.estimates.folds import ShuffledFolds, folds_of, row_numbers
from ..optim.blocks import CACHE_BYTES, n_per_block


@dataclass(frozen=True, eq=False)
class Folds:
    """Held-out rows of every replica, and training rows (None: all other rows)."""

    n_rows: int
    held_out: tuple
    training: tuple | None = None

    @classmethod
    def of(cls, folds, y):
        """Folds from a number, a splitter, or pairs of training and held-out rows."""
        n_rows = len(y)
        if isinstance(folds, int | np.integer):
            if not 2 <= folds <= n_rows:
                raise ValueError(
                    f"folds={folds} must be at least 2 and at most the {n_rows} rows."
                )
            folds = ShuffledFolds(stratified=False, n_splits=int(folds))
        splits = check_cv(folds).split(np.zeros((n_rows, 0)), y)
        training, held_out = zip(*folds_of(splits, np.arange(n_rows)))
        return cls(n_rows, held_out, training)

    @classmethod
    def of_rows(cls, rows, n_rows):
        """Folds of single rows; None means all rows."""
        rows = np.arange(n_rows) if rows is None else rows
        rows = row_numbers(rows, n_rows, "rows")
        if not len(rows):
            raise ValueError("rows has none to leave out.")
        return cls(n_rows, tuple(rows[:, None]))

    def __len__(self):
        return len(self.held_out)

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
        return counts / counts.sum(axis=1, keepdims=True)

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
            yield Folds(self.n_rows, held_out, training), min(size, len(self) - first)

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
