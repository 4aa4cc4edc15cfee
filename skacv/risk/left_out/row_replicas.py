"""Replicas of a run, each without a row, on the few columns that they move.

The replica that never sees row i differs from the recorded iterate by a small
deviation d_i, on few columns. Its gradient there is

    c_i (gradient + H d_i - x_i s_i),

with the recorded gradient, H the Hessian of the loss and s_i the slope of the row that
it leaves out. A column outside the working columns is zero in every replica, and stays
zero while a bound on how far replicas shift its gradient keeps this under the threshold
of the prox. So the result is that on all columns.

H and the bounds come from a *curvature*: ``GramCurvature`` for the squared error
(:mod:`skacv.risk.left_out.screened`), ``LinearisedCurvature`` for other losses
(:mod:`skacv.risk.left_out.linearised`).
"""

from typing import NamedTuple

import numpy as np

from ...optim.blocks import MEMORY_BYTES, n_per_block
from ...optim.design import ROUNDINGS
from ...optim.einsum import einsum
from ...optim.families import PenaltyOnColumns
from ...optim.penalties import Penalty
from ...optim.screen import WorkingColumns, may_move
from ...optim.updates import ProximalGradient

# Arrays that a replica holds in an update, of as many entries as it has coefficients.
ARRAYS_PER_REPLICA = 8


def rows_at_a_time(trajectory):
    """Number of replicas whose arrays fit in memory."""
    _, n_columns, n_outputs = trajectory.coef.shape
    # Replicas together use more columns than the recorded run.
    n_used = trajectory.coef.any(axis=2).sum(axis=1).max()
    widest = min(2 * int(n_used) + 1, n_columns)
    n_bytes = ARRAYS_PER_REPLICA * trajectory.coef.itemsize * widest * n_outputs
    return n_per_block(n_bytes, MEMORY_BYTES)


class ReplayedStep(NamedTuple):
    """One update of the recorded run, from ``coef`` to ``following``."""

    penalty: Penalty
    update: ProximalGradient
    coef: np.ndarray  # (n_columns, n_outputs), as earlier and following
    earlier: np.ndarray  # the iterate before ``coef``
    following: np.ndarray
    starts: bool  # a phase starts here, from rest
    ends: int | None  # the iterate that it leads to; None within a pass
    # Linear predictors of its rows at the gradient point, (n_batch, n_outputs).
    predictor: np.ndarray | None = None
    rows: np.ndarray | None = None  # its batch; None: all rows
    # The rows and predictors over which the correction is evaluated first.
    evaluates: tuple | None = None

    @classmethod
    def on_all_rows(cls, coef, step):
        """The update of a run with these iterates, without predictors."""
        t, before, update, penalty = step
        iterates = coef[t], coef[before], coef[t + 1]
        return cls(penalty, update, *iterates, starts=step.restarts, ends=t + 1)


class RowReplicas:
    """The replicas of a block of rows, one update after the other."""

    # ``predicted`` are predictors of the rows left out, by the replicas without them.
    # Shapes: current, earlier (n_working, n_outputs, n_replicas), every replica
    # contiguous in memory; rows (n_working, n_replicas); predicted (n_iterates,
    # n_replicas, n_outputs).

    # ``curvature``, by ``curvature_of(replicas)``, has the arrays ``shift``, H d_i,
    # (n_working, n_outputs, n_replicas); ``row_slope``, s_i, (n_outputs, n_replicas);
    # ``bounds``, how far a replica may shift the gradient of every column,
    # (n_columns,), which ``tighten(replicas, index)`` lowers if it ``tightens``. Both
    # arrays are those at the gradient point after ``look(replicas, step)``, which
    # returns the recorded gradient, and ``extend(replicas, step)`` has columns that
    # have just joined. ``keep(replicas, indices)`` drops the other columns.
    def __init__(self, design, left_out, trajectory, curvature_of):
        self.left_out, self.expand_to_groups = left_out, trajectory.expand_to_groups
        self.loss_scale = left_out.loss_scale.astype(design.dtype)
        self.penalty_scale = left_out.penalty_scale.astype(design.dtype)
        self.working = WorkingColumns(design)
        self.left_out_rows = design.rows(left_out.rows)
        n_iterates, _, n_outputs = trajectory.coef.shape
        n_replicas, start = len(left_out.rows), trajectory.coef[0]
        self.rows = np.empty((n_replicas, 0), design.dtype).T
        self.current = self.earlier = np.zeros(
            (n_replicas, n_outputs, 0), design.dtype
        ).T
        self._join(np.flatnonzero(self.expand_to_groups(start.any(axis=1))))
        self.current += start[self.working.index, :, None]
        self.earlier = self.current
        self.predicted = np.empty((n_iterates, n_replicas, n_outputs), design.dtype)
        self.predicted[0] = einsum("jr,jkr->rk", self.rows, self.current)
        self.curvature = curvature_of(self)

    def take(self, step):
        """Take one update of the recorded run, a ReplayedStep, in every replica."""
        if step.starts:
            self.earlier = self.current
        curvature = self.curvature
        gradient = curvature.look(self, step)
        # Columns outside that the update may move, in a replica or in the run.
        if len(self.working) < len(gradient):
            joining = self._joining(step, gradient)
            if joining.size:
                self._join(joining)
                curvature.extend(self, step)
        # c_i (gradient + H d_i - x_i s_i) on the working columns, and the update there.
        slope = self.rows[:, None] * -curvature.row_slope
        slope += curvature.shift
        slope += gradient[self.working.index, :, None]
        slope *= self.loss_scale
        penalty, scale = self._penalty_on(step.penalty), self.penalty_scale
        following = step.update.apply(self.current, self.earlier, slope, penalty, scale)
        self.earlier, self.current = self.current, following
        if step.ends is not None:
            self.predicted[step.ends] = einsum("jr,jkr->rk", self.rows, following)

    def point(self, step):
        """Deviations at the gradient point, on the working columns."""
        recorded = step.update.point(step.coef, step.earlier)
        point = step.update.point(self.current, self.earlier)
        return point - recorded[self.working.index, :, None]

    def deviations(self, coef):
        """Deviations on all columns, (n_replicas, n_columns, n_outputs)."""
        deviations = np.zeros((self.rows.shape[1], *coef.shape), coef.dtype)
        working = self.current - coef[self.working.index, :, None]
        deviations[:, self.working.index] = np.moveaxis(working, 2, 0)
        return deviations

    def drop(self, step):
        """Drop columns that are zero in the last two iterates; return kept indices."""
        used = step.coef.any(axis=1) | step.earlier.any(axis=1)
        index = self.working.index
        used[index] |= self.current.any(axis=(1, 2)) | self.earlier.any(axis=(1, 2))
        indices = np.flatnonzero(self.expand_to_groups(used)[index])
        if len(indices) < len(index):
            self.curvature.keep(self, indices)
            self.working.keep(indices)
            self._penalty_on = PenaltyOnColumns(self.working.index)
            self.rows = rows_of_array(self.rows, indices)
            self.current = rows_of_array(self.current, indices)
            self.earlier = rows_of_array(self.earlier, indices)
        return indices

    def _joining(self, step, gradient):
        """Columns outside that the update may move, in a replica or the run."""
        sizes = np.abs(gradient).max(axis=1)
        weakest = min(1.0, self.penalty_scale.min())
        for is_tight in (not self.curvature.tightens, True):
            bounds = self.loss_scale.max() * (sizes + self.curvature.bounds)
            bounds *= 1 + ROUNDINGS * np.finfo(self.rows.dtype).eps
            moves = may_move(step.penalty, bounds, step.update.step_size, weakest)
            moves = self.expand_to_groups(moves | step.following.any(axis=1))
            moves[self.working.index] = False
            joining = np.flatnonzero(moves)
            if is_tight or not joining.size:
                return joining
            self.curvature.tighten(self, joining)

    def _join(self, index):
        """Add columns that are zero in every replica to the working columns."""
        self.working.join(index)
        self._penalty_on = PenaltyOnColumns(self.working.index)
        n_before, self.rows = len(self.rows), with_zeros(self.rows, len(index))
        entries = self.left_out_rows.dense_columns(index, self.rows.dtype)
        self.rows[n_before:] = entries.T
        self.current = with_zeros(self.current, len(index))
        self.earlier = with_zeros(self.earlier, len(index))


def with_zeros(array, n_columns):
    """An array of replicas (n_working, ..., n_replicas) with columns of zeros added."""
    # Every replica is contiguous in memory.
    grown = np.zeros((*array.T.shape[:-1], len(array) + n_columns), array.dtype).T
    grown[: len(array)] = array
    return grown


def rows_of_array(array, indices):
    """An array of replicas on some of the working columns."""
    return np.take(array.T, indices, axis=-1).T
