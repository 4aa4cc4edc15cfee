"""Offsets of the rows of a fit: known parts of their linear predictors.

A run has changed targets and weights in their place, and predicts what these say. Its
record has the offsets too, and shows held-out rows on the scale of the targets.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ..optim.array_path import ArrayPath
from .held_out import HeldOut


@dataclass(frozen=True, eq=False)
class RowOffsets:
    """The offsets of the rows that were passed to a fit, and their targets.

    Parameters
    ----------
    values : ndarray of shape (n_samples,), or None
        None where a record has dropped its rows.
    target : ndarray of shape (n_samples,) or (n_samples, n_targets), or None
        As they were passed.
    """

    values: Any
    target: Any

    def put_back(self, held_out: HeldOut, loss: Any) -> HeldOut:
        """Held-out rows of a run on the scale of the targets that were passed.

        Parameters
        ----------
        held_out : HeldOut
            Those of the run.
        loss : Loss

        Returns
        -------
        HeldOut
        """
        if held_out.indices is None or held_out.prediction is None:
            return held_out
        rows = np.hstack(held_out.indices)
        path = PathWithOffset(held_out.prediction, loss, self.values[rows])
        return replace(held_out, target=self.target[rows], prediction=path)

    def without_rows(self) -> Self:
        """That there were offsets, and no more.

        Returns
        -------
        RowOffsets
        """
        return type(self)(None, None)


class PathWithOffset(ArrayPath):
    """Predictions of every iterate, (n_iterates, n_rows, ...), with offsets of rows."""

    def __init__(self, path, loss, offset):
        self._path, self._loss = path, loss
        self._offset = offset.reshape(-1, *[1] * (len(path.shape) - 2))
        self.shape, self.dtype = path.shape, path.dtype

    def _compute(self, iterates):
        return self._loss.with_offset(np.asarray(self._path[iterates]), self._offset)
