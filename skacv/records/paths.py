"""The iterates that a run has recorded, by what they are made of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


class LinearIterate(NamedTuple):
    """One iterate of a linear model, or of a kernel machine with dual coefficients.

    Shapes: coef (n_features,) or (n_outputs, n_features), of a kernel machine
    (n_rows,) or (n_rows, n_outputs); intercept () or (n_outputs,).
    """

    coef: np.ndarray
    intercept: np.ndarray


@dataclass(frozen=True, eq=False)
class CoefPath:
    """Coefficients and intercepts of the iterates that are kept.

    Parameters
    ----------
    coef : ndarray of shape (n_kept, ...)
    intercept : ndarray of shape (n_iterates, ...)
    kept : ndarray of int, shape (n_kept,), default=None
        Numbers of the iterates whose coefficients are kept, in order; None: all are.
    """

    coef: np.ndarray
    intercept: np.ndarray
    kept: np.ndarray | None = None

    def at(self, t: int) -> LinearIterate:
        """Iterate ``t``, of its own memory.

        Parameters
        ----------
        t : int
            An iterate that is kept.

        Returns
        -------
        LinearIterate
            A pair ``coef``, ``intercept``.
        """
        row = t if self.kept is None else np.searchsorted(self.kept, t)
        return LinearIterate(self.coef[row].copy(), self.intercept[t])


@dataclass(frozen=True, eq=False)
class ParamsPath:
    """Parameters of every iterate, in the containers of another library."""

    params: Any
    # ``select(params, t)`` are those of iterate t.
    select: Callable
    kept = None  # all are

    def at(self, t):
        """Parameters of iterate t."""
        return self.select(self.params, t)


@dataclass(frozen=True, eq=False)
class Stages:
    """The stages of a model that was fitted stage by stage."""

    # ``model.at(t)`` is an estimator with the first t stages.
    model: Any
    n_stages: int

    @property
    def kept(self):
        """The numbers of stages that are available, in order."""
        recorded = self.model.stages.recorded_stages()
        return recorded[recorded <= self.n_stages]

    @property
    def evaluated(self):
        """The numbers of stages that are chosen from, in order.

        The model may have grown to the best of them only. None: those that are kept.
        """
        if not self.model.stages.keeps_all:
            return None
        return np.arange(1, self.n_stages + 1)

    def at(self, t):
        """The estimator with the first t stages."""
        return self.model.at(t)
