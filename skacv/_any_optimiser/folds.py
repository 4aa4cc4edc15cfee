"""The rows that every replica leaves out, and the weights of the others."""

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import check_cv

from .._estimator.estimates.folds import ShuffledFolds
from .._estimator.estimates.left_out import folds_of, row_numbers

# Memory for what the replicas of a block predict; more of them at a time gain nothing.
BLOCK_BYTES = 1 << 20
FEWEST_AT_A_TIME = 16


@dataclass(frozen=True, eq=False)
class Folds:
    """Folds, each with a replica fitted on its training rows.

    Attributes
    ----------
    n_rows : int
        Number of rows of the data.
    held_out : tuple of ndarray of int
        Held-out rows of every replica.
    fitted : tuple of ndarray of int, or None
        Training rows of every replica; None means all rows but the held-out ones.
    """

    n_rows: int
    held_out: tuple
    fitted: tuple | None = None

    @classmethod
    def of(cls, folds, y):
        """The folds that a user has asked for; splitters may use y.

        A number of random folds with a fixed seed; a splitter of scikit-learn; or pairs
        of training rows and held-out rows.

        Raises
        ------
        ValueError
            If there are no folds, or a fold has no training or held-out rows, has a row
            in both, or has rows beyond the data.
        """
        n_rows = len(y)
        if isinstance(folds, int | np.integer):
            if not 2 <= folds <= n_rows:
                raise ValueError(
                    f"folds={folds} must be at least 2 and at most the {n_rows} rows."
                )
            folds = ShuffledFolds(stratified=False, n_splits=int(folds))
        splits = check_cv(folds).split(np.zeros((n_rows, 0)), y)
        fitted, held_out = zip(*folds_of(splits, np.arange(n_rows)))
        return cls(n_rows, held_out, fitted)

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
        """The held-out rows, fold after fold, (n_held_out,)."""
        return np.concatenate(self.held_out)

    @property
    def numbers(self):
        """The fold of each of these rows, (n_held_out,)."""
        return np.repeat(np.arange(len(self)), [len(rows) for rows in self.held_out])

    def weights(self):
        """Weights of the rows in the mean loss of every replica, (n_folds, n_rows)."""
        if self.fitted is None:
            counts = np.ones((len(self), self.n_rows))
            for count, rows in zip(counts, self.held_out):
                count[rows] = 0
        else:  # a row that is drawn twice counts twice
            counts = np.stack(
                [np.bincount(rows, minlength=self.n_rows) for rows in self.fitted]
            )
        return counts / counts.sum(axis=1, keepdims=True)

    @property
    def most_held_out(self):
        """The largest number of held-out rows of a fold."""
        return max(len(rows) for rows in self.held_out)

    def padded(self, size):
        """The held-out rows, (n_folds, size), padded by repeating the last one."""
        return np.stack(
            [np.pad(rows, (0, size - len(rows)), mode="edge") for rows in self.held_out]
        )

    def unpadded(self, found):
        """Values of the first replicas for :meth:`padded` rows, fold after fold.

        From (n_iterates, n_first, size, ...) to (n_iterates, n_held_out, ...).
        """
        first = enumerate(self.held_out[: found.shape[1]])
        parts = [found[:, fold, : len(rows)] for fold, rows in first]
        return np.concatenate(parts, axis=1)

    def blocks(self, most=None, n_bytes=BLOCK_BYTES):
        """So many folds at a time, all blocks alike in size: the last fold fills up.

        Blocks of one shape are compiled once. ``most`` is None where they are as large
        as predictions of all rows in ``n_bytes`` allow.

        Yields
        ------
        block : Folds
        n_own : int
            The folds of it that are not there to fill it up.
        """
        if most is None:
            most = at_a_time(self.n_rows, n_bytes)
        n_blocks = -(-len(self) // max(1, most))
        size = -(-len(self) // n_blocks)
        for first in range(0, len(self), size):
            places = np.arange(first, first + size)
            n_own = int((places < len(self)).sum())
            places = np.minimum(places, len(self) - 1)
            held_out, fitted = (
                part and tuple(part[place] for place in places)
                for part in (self.held_out, self.fitted)
            )
            yield Folds(self.n_rows, held_out, fitted), n_own

    def by_block(self, held_out, most=None):
        """Predictions for all held-out rows, (n_iterates, n_held_out, ...).

        Those of a block, (n_iterates, n_block, size, ...), are ``held_out(weights,
        rows)``, of weights (n_block, n_rows) and rows (n_block, size).
        """
        found = []
        for block, n_own in self.blocks(most):
            part = held_out(block.weights(), block.padded(self.most_held_out))
            found.append(block.unpadded(part[:, :n_own]))
        return np.concatenate(found, axis=1)


def at_a_time(n_rows, n_bytes=BLOCK_BYTES):
    """Number of replicas whose predictions fit in memory, a few at least."""
    return max(FEWEST_AT_A_TIME, n_bytes // (8 * n_rows))
