"""Replicas of a run, each without a row, on the few columns that they move.

The replica that never sees row i differs from the recorded iterate by a small
deviation d_i, on few columns. Its gradient there is

    c_i (gradient + H d_i - x_i s_i),

with the recorded gradient, H the Hessian of the loss and s_i the slope of the row that
it leaves out. A column outside the working columns is zero in every replica, and stays
so while a bound of how far replicas shift its gradient keeps this under the threshold
of the prox. So the result is that on all columns.

What H is, and how shifts are bounded, differs:
:mod:`skacv.risk.left_out.screened` for the squared error,
:mod:`skacv.risk.left_out.linearised` for other losses.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from ...optim.families import OnColumns
from ...optim.penalties import Penalty
from ...optim.screen import WorkingColumns, may_move
from ...optim.updates import ProximalGradient

# Memory for the replicas of a block of rows, and their arrays in an update.
BLOCK_BYTES = 1 << 28
ARRAYS_PER_REPLICA = 12
# What rounding may take from a bound, in units of the machine precision.
ROUNDING = 64


def rows_at_a_time(trajectory):
    """Number of replicas whose arrays fit in ``BLOCK_BYTES``."""
    _, n_columns, n_outputs = trajectory.coef.shape
    widest = n_columns
    if not any(penalty.is_linear for _, penalty in trajectory.first_updates()):
        # Replicas together use more columns than the recorded run.
        used = trajectory.coef.any(axis=2).sum(axis=1).max()
        widest = min(2 * int(used) + 1, n_columns)
    each = ARRAYS_PER_REPLICA * trajectory.coef.itemsize * widest * n_outputs
    return max(1, BLOCK_BYTES // each)


class ReplayedStep(NamedTuple):
    """One update of the recorded run, on all rows or on a batch.

    Attributes
    ----------
    coef, earlier, following : ndarray of shape (n_columns, n_outputs)
        The recorded update led from the first two to the last.
    starts : bool
        Whether the phase starts here: from rest.
    ends : int or None
        The iterate that it leads to, if it does.
    predictor : ndarray of shape (n_batch, n_outputs) or None
        Linear predictors of its rows at the gradient point.
    rows : ndarray of int or None
        The batch, or None for all rows.
    evaluates : tuple or None
        Rows and their predictors, over which the correction is evaluated first.
    """

    penalty: Penalty
    update: ProximalGradient
    coef: np.ndarray
    earlier: np.ndarray
    following: np.ndarray
    starts: bool
    ends: int | None
    predictor: np.ndarray | None = None
    rows: np.ndarray | None = None
    evaluates: tuple | None = None

    @classmethod
    def on_all_rows(cls, coef, taken):
        """An update that a run with these iterates has taken, without predictors."""
        t, before, update, penalty = taken
        iterates = coef[t], coef[before], coef[t + 1]
        return cls(penalty, update, *iterates, starts=taken.restarts, ends=t + 1)


class RowReplicas(ABC):
    """The replicas of a block of rows, one update after the other.

    Arrays of replicas have shape (n_working, n_outputs, n_replicas), and every replica
    lies contiguous in memory.

    Parameters
    ----------
    trajectory : Trajectory
        The recorded run.

    Attributes
    ----------
    current, earlier : ndarray of shape (n_working, n_outputs, n_replicas)
        Coefficients in the last two iterates.
    rows : ndarray of shape (n_working, n_replicas)
        The row that every replica leaves out.
    shift : ndarray of shape (n_working, n_outputs, n_replicas)
        What deviations add to the gradients, H d_i.
    own : ndarray of shape (n_outputs, n_replicas)
        Slope of the row that every replica leaves out, s_i.
    """

    def __init__(self, design, left_out, trajectory):
        self.left_out, self.expand_to_groups = left_out, trajectory.expand_to_groups
        self.loss_scale = left_out.loss_scale.astype(design.dtype)
        self.penalty_scale = left_out.penalty_scale.astype(design.dtype)
        self.working = WorkingColumns(design)
        self._left_out = design.rows(left_out.rows)
        start = trajectory.coef[0]
        self.rows = np.empty((len(left_out.rows), 0), design.dtype).T
        self._n_outputs = start.shape[1]
        self.current = self.earlier = self._zeros(0)
        self._join(np.flatnonzero(self.expand_to_groups(start.any(axis=1))))
        self.current += start[self.working.index, :, None]
        self.earlier = self.current

    def take(self, step):
        """Take one update of the recorded run, a :class:`ReplayedStep`."""
        if step.starts:
            self.earlier = self.current
        gradient = self._look(step)
        joining = self._joining(step, gradient)
        if joining.size:
            self._join(joining)
            self._look_again(step)
        self._advance(step, gradient)

    @abstractmethod
    def _look(self, step):
        """Find ``shift`` and ``own`` at the gradient point.

        Returns
        -------
        ndarray of shape (n_columns, n_outputs)
            The recorded gradient there.
        """

    @abstractmethod
    def _look_again(self, step):
        """Find ``shift`` on columns that have just joined, too."""

    @abstractmethod
    def _bounds(self):
        """How far a replica may shift the gradient at most, (n_columns,)."""

    def deviations(self, coef):
        """Coefficients less ``coef``, (n_columns, n_outputs), on working columns."""
        return self.current - coef[self.working.index, :, None]

    def on_all_columns(self, coef):
        """The same on all columns, (n_replicas, n_columns, n_outputs)."""
        found = np.zeros((self.rows.shape[1], *coef.shape), coef.dtype)
        found[:, self.working.index] = np.moveaxis(self.deviations(coef), 2, 0)
        return found

    def _point(self, step):
        """Deviations at the gradient point."""
        recorded = step.update.point(step.coef, step.earlier)
        point = step.update.point(self.current, self.earlier)
        return point - recorded[self.working.index, :, None]

    def _advance(self, step, gradient):
        """The update itself, for every replica on the working columns."""
        slope = self.rows[:, None] * -self.own
        slope += self.shift
        slope += gradient[self.working.index, :, None]
        slope *= self.loss_scale
        penalty, scale = self._penalty_on(step.penalty), self.penalty_scale
        following = step.update.apply(self.current, self.earlier, slope, penalty, scale)
        self.earlier, self.current = self.current, following

    def _joining(self, step, gradient):
        """Columns outside that the update may move, in a replica or the run."""
        if len(self.working) == len(gradient):
            return np.empty(0, int)
        return self._moving(step, np.abs(gradient).max(axis=1))

    def _moving(self, step, sizes):
        """These columns, from the sizes of the gradient and the bounds of shifts."""
        bounds = self.loss_scale.max() * (sizes + self._bounds())
        bounds *= 1 + ROUNDING * np.finfo(self.rows.dtype).eps
        weakest = min(1.0, self.penalty_scale.min())
        moves = may_move(step.penalty, bounds, step.update.step_size, weakest)
        moves = self.expand_to_groups(moves | step.following.any(axis=1))
        moves[self.working.index] = False
        return np.flatnonzero(moves)

    def _join(self, index):
        """Take in columns that are zero in every replica."""
        self.working.join(index)
        self._penalty_on = OnColumns(self.working.index)
        entries = self._left_out.dense_columns(index, self.rows.dtype)
        self.rows = joined(self.rows, entries.T)
        zeros = self._zeros(len(index))
        self.current = joined(self.current, zeros)
        self.earlier = joined(self.earlier, zeros)

    def _zeros(self, n_columns):
        shape = self.rows.shape[1], self._n_outputs, n_columns
        return np.zeros(shape, self.rows.dtype).T

    def _drop(self, coef, earlier):
        """Drop columns that are zero in every replica, this iterate and the last one.

        Parameters
        ----------
        coef, earlier : ndarray of shape (n_columns, n_outputs)
            What the recorded run has there.

        Returns
        -------
        ndarray of int
            Places of the working columns that are kept.
        """
        used = coef.any(axis=1) | earlier.any(axis=1)
        index = self.working.index
        used[index] |= self.current.any(axis=(1, 2)) | self.earlier.any(axis=(1, 2))
        places = np.flatnonzero(self.expand_to_groups(used)[index])
        if len(places) < len(index):
            self._keep(places)
        return places

    def _keep(self, places):
        """Keep the working columns at some places."""
        self.working.keep(places)
        self._penalty_on = OnColumns(self.working.index)
        self.rows = kept(self.rows, places)
        self.current = kept(self.current, places)
        self.earlier = kept(self.earlier, places)


def joined(array, other):
    """Arrays of replicas, (n_working, ..., n_replicas), on the columns of both."""
    return np.concatenate([array.T, other.T], axis=-1).T


def kept(array, places):
    """An array of replicas on some of the working columns."""
    return np.take(array.T, places, axis=-1).T
