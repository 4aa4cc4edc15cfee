"""Rows to be left out of a recorded run, and what refits without them weigh."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...optim.problem import Problem
from ...optim.trajectory import Trajectory
from ..reader import Unreadable
from ..refit import Refit
from .workload import Workload

# Arrays with an entry for every row that is left out.
BY_ROW = ("rows", "loss_scale", "residual_scale", "penalty_scale", "sqrt_weight")


@dataclass(frozen=True)
class LeftOutRows:
    """Rows left out one at a time; arrays have one entry per row.

    Attributes
    ----------
    n_rows : int
        Number of rows of the whole problem.
    loss_scale : ndarray
        c: what the weights of the others are multiplied by, as the refit has it.
    residual_scale : ndarray
        k: the residual of the replica's own prediction, intercept included,
        over the residual of its coefficients on the centred data.
    penalty_scale : ndarray
        What the penalty's strength is multiplied by.
    sqrt_weight : ndarray
        sqrt(n w), by which :meth:`Problem.sqrt_weighted` scales rows.
    """

    n_rows: int
    rows: np.ndarray
    loss_scale: np.ndarray
    residual_scale: np.ndarray
    penalty_scale: np.ndarray
    sqrt_weight: np.ndarray

    @classmethod
    def of(cls, problem, rows, refit):
        """Describe the rows left out of a problem with shared weights."""
        weights = problem.row_weights[rows, 0].astype(np.float64)
        share = 1 - weights
        return cls(
            n_rows=len(problem.target),
            rows=rows,
            loss_scale=refit.loss_scale(share),
            residual_scale=1 / share if refit.recentres else np.ones(len(rows)),
            penalty_scale=refit.penalty_scale(share),
            sqrt_weight=np.sqrt(len(problem.target) * weights),
        )

    def blocks(self, size):
        """The rows in blocks of equal length, at most ``size`` rows each."""
        n_blocks = -(-len(self.rows) // size)
        for index in np.array_split(np.arange(len(self.rows)), n_blocks):
            yield self.part(index)

    def part(self, index):
        """The rows at the places ``index``, in that order."""
        return replace(self, **{name: getattr(self, name)[index] for name in BY_ROW})

    def intercept_shifts(self, residuals):
        """By how much intercepts on the centred data are not zero, from residuals."""
        return (1 - 1 / self.residual_scale) * residuals

    def shared_scales(self):
        """Loss and penalty scales; one entry each if all rows share them."""
        n_scales = 1 if np.ptp(self.loss_scale) == 0 else len(self.rows)
        return self.loss_scale[:n_scales], self.penalty_scale[:n_scales]


@dataclass(frozen=True)
class Request:
    """Rows to be left out of a recorded run, one at a time.

    Attributes
    ----------
    problem : Problem
        With weights shared by its outputs.
    rows : ndarray of int, shape (n_left_out,)
    refit : Refit
        As it is for a run like this one.
    correction : bool
        Whether what is linearised is corrected at some iterates.
    n_blocks : int
        Blocks of rows wanted at least, as many as are worked on at a time.
    map : callable
        ``map(function, blocks)``; blocks are independent of each other.
    """

    problem: Problem
    trajectory: Trajectory
    rows: np.ndarray
    refit: Refit
    correction: bool = True
    n_blocks: int = 1
    map: Callable = map

    @property
    def left_out(self):
        """The rows and their scales."""
        return LeftOutRows.of(self.problem, self.rows, self.refit)

    @property
    def blocks(self):
        """Rows of a block at most, and what goes through the blocks."""
        return -(-len(self.rows) // self.n_blocks), self.map

    @property
    def run(self):
        """The run, as far as the choice of a method goes."""
        return Workload.recorded(self.problem, self.trajectory, self.correction)

    def outputs(self):
        """A request for every output that has a loss by itself."""
        if self.problem.loss.is_coupled:
            return [self]
        return [
            replace(
                self,
                problem=replace(self.problem, target=self.problem.target[:, [k]]),
                trajectory=self.trajectory.of_output(k),
            )
            for k in range(self.problem.target.shape[1])
        ]

    def part(self, places):
        """A request for the rows at some places."""
        return replace(self, rows=self.rows[places])


def check_unseen(rows, trajectory):
    """Raise where rows have had a part in the preconditioner of a run.

    A gradient without them would not make the run one that never saw them.
    """
    if np.isin(rows, trajectory.rows_seen()).any():
        raise Unreadable(
            "Rows that a preconditioner was made from cannot be left out: the run has "
            "seen them even where their gradient is not taken."
        )
