"""The rows of a run, and which of them an update is on."""

from typing import Any, NamedTuple


class Rows(NamedTuple):
    """Rows, targets and batches of a run; a subclass implements ``of_batch``.

    Attributes
    ----------
    X : array, or collection of arrays, of n_rows rows
    batches : sequence of arrays of int, or None
        Rows of every update, repeated cyclically. None means all rows.
    """

    X: Any
    y: Any
    batches: Any

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
        """The same of some rows; None is all.

        A batch weighs as much as all rows: what is left of it in a replica estimates
        the mean over all rows that are left, without bias.
        """
        if rows is None:
            return self.X, self.y, weights
        return self.of_batch(rows, weights)
