"""What every iterate costs on rows held out: the result of every reading."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._estimator.held_out_costs import HeldOutCosts
from .._estimator.stopping import Patience


@dataclass(frozen=True, eq=False)
class PathEstimate:
    """What every iterate of a run is expected to cost on unseen rows.

    Attributes
    ----------
    path, se_path : ndarray of shape (n_steps + 1,)
        Mean cost of every iterate, in units of the loss, from the start to the last;
        and its standard error, over folds (over rows where these are left out one by
        one, or where there is one fold).
    prediction_path : ndarray of shape (n_steps + 1, n_held_out, ...)
        Held-out predictions of every iterate, fold after fold.
    indices : ndarray of int, shape (n_held_out,)
        Rows that these are of.
    folds : ndarray of int, shape (n_held_out,)
        With which others each was held out.
    """

    path: np.ndarray
    se_path: np.ndarray
    prediction_path: np.ndarray
    indices: np.ndarray
    folds: np.ndarray

    @classmethod
    def of(cls, costs, predictions, folds, first=0):
        """The estimate from what held-out rows cost.

        Parameters
        ----------
        costs : ndarray of shape (n_steps + 1, n_held_out)
        predictions : ndarray of shape (n_steps + 1, n_held_out, ...)
        folds : Folds
        first : int, default=0
            Which iterate the first is, for the message.

        Raises
        ------
        ValueError
            If a cost is not a number, or not finite.
        """
        finite = np.isfinite(costs)
        if not finite.all():
            t, place = np.argwhere(~finite)[0]
            raise ValueError(
                f"The loss of row {folds.indices[place]} is not finite from iterate "
                f"{first + t} on, where it is left out: the run without it diverges, "
                "as the one on all rows does not. Take smaller or fewer steps."
            )
        held_out = HeldOutCosts(
            rows=folds.indices,
            folds=folds.numbers,
            weights=np.ones(len(folds.indices)),
            n_iterates=len(costs),
            of=lambda iterations: costs[iterations],
        )
        averages = held_out.averages()
        return cls(*averages, predictions, folds.indices, folds.numbers)

    @cached_property
    def best_iteration(self):
        """The iterate of least estimated cost; the earliest of them."""
        return Patience(None).follow(self.path).best
