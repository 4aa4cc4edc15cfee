"""The estimated loss of every iterate on held-out rows."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from .._estimator.estimates.held_out import HeldOutLosses
from .._estimator.run.stopping import Patience


@dataclass(frozen=True, eq=False)
class PathEstimate:
    """Estimated mean loss of every iterate of a run on unseen rows.

    Attributes
    ----------
    path, se_path : ndarray of shape (n_steps + 1,)
        Estimated mean loss of every iterate, including the starting point, and its
        standard error over folds (over rows if they are left out one at a time, or if
        there is one fold).
    prediction_path : ndarray of shape (n_steps + 1, n_held_out, ...)
        Held-out predictions of every iterate, fold after fold.
    indices : ndarray of int, shape (n_held_out,)
        Indices of the rows of ``prediction_path``.
    folds : ndarray of int, shape (n_held_out,)
        The fold in which each of these rows was held out.
    """

    path: np.ndarray
    se_path: np.ndarray
    prediction_path: np.ndarray
    indices: np.ndarray
    folds: np.ndarray

    @classmethod
    def of(
        cls, losses: np.ndarray, predictions: np.ndarray, folds: Any, first: int = 0
    ) -> Self:
        """The estimate from losses (n_steps + 1, n_held_out) of held-out rows."""
        finite = np.isfinite(losses)
        if not finite.all():
            t, row = np.argwhere(~finite)[0]
            raise ValueError(
                f"The loss of row {folds.indices[row]} is not finite from iterate "
                f"{first + t} on: the run without it diverges, though the run on all "
                "rows does not. Use smaller or fewer steps."
            )
        held_out = HeldOutLosses(
            rows=folds.indices,
            folds=folds.numbers,
            weights=folds.row_weights[folds.indices],
            n_iterates=len(losses),
            of=lambda iterations: losses[iterations],
        )
        averages = held_out.averages()
        return cls(*averages, predictions, folds.indices, folds.numbers)

    @cached_property
    def best_iteration(self) -> int:
        """The iterate of least estimated loss, the earliest in case of ties."""
        return Patience(None).follow(self.path).best
