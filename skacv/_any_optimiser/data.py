"""The rows of a run and of its updates: drawn once, the same for all replicas."""

from typing import Any, NamedTuple

import numpy as np


class RunRows(NamedTuple):
    """X and y of n_rows rows, and batches of row numbers, repeated cyclically.

    Shapes: weights (n_rows,), those of the rows in a mean, which sum to one.
    """

    X: Any
    y: Any
    batches: Any
    weights: Any = None

    @property
    def n_rows(self):
        return len(self.y)

    def rows_at(self, t):
        """Rows of update ``t``; None is all."""
        return None if self.batches is None else self.batches[t % len(self.batches)]

    def at_update(self, t, weights):
        """X, y and the rows' weights, (..., n_batch), of update ``t``."""
        return self.on(self.rows_at(t), weights)

    def on(self, rows, weights):
        """X, y and weights of a batch; None means all rows."""
        if rows is None:
            return self.X, self.y, weights
        # Weights are times n_rows / n_batch: a replica's weighted sum over a random
        # batch is unbiased for its sum over all rows.
        return self.take_batch(rows, weights)


def shuffled_batches(
    n_rows: int, batch_size: int, n_epochs: int, seed: int = 0
) -> list[np.ndarray]:
    """Batches for a run that shuffles the rows in every epoch.

    Parameters
    ----------
    n_rows : int
    batch_size : int
        Number of rows in a batch; the last batch of an epoch may be smaller.
    n_epochs : int
    seed : int, default=0

    Returns
    -------
    list of ndarray of int
        One batch for each update, for ``batches`` of a run.

    Examples
    --------
    >>> [len(rows) for rows in shuffled_batches(10, 4, n_epochs=2)]
    [4, 4, 2, 4, 4, 2]
    """
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(n_rows) for _ in range(n_epochs)]
    starts = range(0, n_rows, batch_size)
    return [order[first : first + batch_size] for order in orders for first in starts]


def check_batches(batches, n_rows):
    """Batches as a list of arrays; an iterator that draws them is read only once."""
    if batches is None:
        return None
    checked = [np.asarray(rows) for rows in batches]
    if not checked:
        raise ValueError("batches is empty: pass at least one, or None for all rows.")
    for number, rows in enumerate(checked):
        is_integer = rows.ndim == 1 and np.issubdtype(rows.dtype, np.integer)
        if not (is_integer and rows.size):
            raise ValueError(
                f"Batch {number} must be a 1d array of row numbers (integers)."
            )
        if rows.min() < 0 or rows.max() >= n_rows:
            raise ValueError(
                f"Batch {number} has rows beyond the {n_rows} of the data."
            )
    return checked


def pad_batches(batches, n_rows):
    """Batches as one array, (n_batches, largest size), filled up with ``n_rows``."""
    size = max(len(rows) for rows in batches)
    fill = {"constant_values": n_rows}
    return np.stack([np.pad(rows, (0, size - len(rows)), **fill) for rows in batches])
