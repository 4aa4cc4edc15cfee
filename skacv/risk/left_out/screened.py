"""Leave-one-out along updates with a prox: exact, every row a replica of the run.

The replica that never sees row i differs from the recorded iterate by a small
deviation, on few columns. In the notation of :mod:`skacv.risk.left_out.spectral` its
gradient is

    c_i (gradient(b) + G d_i - w_i z_i h_i),        G = Z'Z / n,

so an update costs the working columns squared per replica (or two passes over
them, where that is less), whatever the width of X.

A column outside the working columns is zero in every replica. It stays out
while a bound says that no replica can move it: the recorded gradient plus the
largest shift of it that leaving out a row may cause (``shift_bound``). When a
column is looked at, that shift is known exactly; from then on it can grow by no
more than what the deviations have travelled since,

    ||z_j|| max_i ||Z (d_i - d_i')|| / n + max_i |w_i z_ij| max_i |h_i - h_i'|.

A column is looked at again only when its bound crosses the threshold of the
prox, and joins the working columns when a replica really moves it.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from ...optim.design import Design
from ...optim.einsum import einsum
from ...optim.families import OnColumns
from ...optim.screen import may_move
from .working_columns import WorkingColumns, whole_gram

# Memory for the replicas of a block of rows.
BLOCK_BYTES = 1 << 28
# Arrays of the replicas' shape that an update holds.
ARRAYS_PER_REPLICA = 9
# Working columns that no replica uses are dropped so many updates apart.
DROP_EVERY = 8
# Rounding errors of a squared length, in units of the machine precision.
ROUNDING = 64


def leave_one_out(problem, trajectory, left_out, largest_block, map):
    """Held-out residuals of every iterate of a run with the squared error.

    Parameters
    ----------
    problem : Problem
        It has one target.
    trajectory : Trajectory
    left_out : LeftOutRows
    largest_block : int
    map : callable
        ``map(function, blocks)``; blocks of rows are independent.

    Returns
    -------
    residuals : ndarray of shape (n_iterates, n_left_out)
        Prediction less target, row by row.
    deviations : (list of (ndarray of int, ndarray), ndarray of int)
        For every block of rows, columns and how much the last iterate's
        coefficients on them differ without each row, (n_rows, n_columns); and
        the place of every row in the blocks, one after the other.
    """
    design, _ = problem.sqrt_weighted()
    sqrt_weight = np.sqrt(len(problem.target) * problem.row_weights[:, 0])
    residuals = trajectory.predictor.of_rows(slice(None))[:, :, 0]
    residuals -= problem.target[:, 0]
    residuals *= sqrt_weight
    gradients = design.t_dot(residuals.T).T / len(sqrt_weight)
    common = Common(
        design=design,
        coef=trajectory.coef[:, :, 0],
        gradient=gradients,
        column_sizes=design.column_sizes(),
        gram=whole_gram(design),
    )
    replay = partial(_replayed, common, trajectory)
    size = min(_rows_at_a_time(trajectory), largest_block)
    # Rows that matter alike together: a block's bounds are those of its worst row.
    order = np.argsort(np.einsum("ti,ti->i", residuals, residuals)[left_out.rows])
    target = problem.target[:, 0] * sqrt_weight
    blocks = [
        (block, target[block.rows]) for block in left_out.part(order).blocks(size)
    ]
    held_out, deviations = zip(*map(replay, blocks))
    back = np.argsort(order)
    return np.concatenate(held_out, axis=1)[:, back], (deviations, back)


def _rows_at_a_time(trajectory):
    """So many replicas that their arrays keep to ``BLOCK_BYTES``."""
    coef = trajectory.coef[:, :, 0]
    # Replicas together use more columns than the recorded run.
    widest = min(2 * np.count_nonzero(coef, axis=1).max() + 1, coef.shape[1])
    return max(1, BLOCK_BYTES // (ARRAYS_PER_REPLICA * coef.itemsize * int(widest)))


def _replayed(common, trajectory, block):
    """Residuals of one block of rows, and its deviations at the end."""
    left_out, _ = block
    replicas = RowReplicas(common, block, trajectory.whole)
    trajectory.followed_by(replicas)
    deviations = replicas.working.index, replicas.deviations(trajectory.n_updates)
    return replicas.held_out / left_out.sqrt_weight, deviations


class Common(NamedTuple):
    """The arrays that all blocks of rows share.

    Attributes
    ----------
    design : Design
        Its rows are multiplied by ``sqrt_weight``.
    coef, gradient : ndarray of shape (n_iterates, n_columns)
        The recorded coefficients, and the gradients of the loss there.
    column_sizes : tuple of ndarray of shape (n_columns,)
        Norms of the columns, and their largest entries.
    gram : ndarray of shape (n_columns, n_columns) or None
    """

    design: Design
    coef: np.ndarray
    gradient: np.ndarray
    column_sizes: tuple
    gram: np.ndarray | None


class RowReplicas:
    """The replicas of a block of rows, one update after the other.

    Parameters
    ----------
    common : Common
    block : tuple of LeftOutRows and ndarray of shape (n_replicas,)
        The rows left out, and their targets times ``sqrt_weight``.
    whole : callable
        It adds to a mask of columns those whose prox depends on theirs.

    Attributes
    ----------
    held_out : ndarray of shape (n_iterates, n_replicas)
        Residuals of the rows left out times ``sqrt_weight``, as far as the run
        has come.
    """

    def __init__(self, common, block, whole):
        self.coef, self.gradient = common.coef, common.gradient
        self.column_sizes = common.column_sizes
        self.left_out, self.target = block
        dtype = common.design.dtype
        rows = self.left_out.rows
        self.working = WorkingColumns(common.design, rows, common.gram)
        started = np.flatnonzero(whole(self.coef[0] != 0))
        self.working.joined_by(started)
        self.whole, self._penalty_on = whole, OnColumns(started)
        shape = len(rows), len(started)
        # This iterate and the one before it, (n_replicas, n_working).
        self.current = self.before = np.tile(self.coef[0, started], (len(rows), 1))
        # At the gradient point: what the gradient is shifted by, the squared length
        # of Z d / sqrt(n), and how much of its own row a replica's gradient lacks.
        self.shift = np.zeros(shape, dtype)
        self.length = np.zeros(shape[0])
        self.own_slope = np.zeros(shape[0])
        # The most that the gradient of every column outside may be shifted by.
        self.shift_bound = np.zeros(self.coef.shape[1])
        self.loss_scale = self.left_out.loss_scale.astype(dtype)
        self.penalty_scale = self.left_out.penalty_scale.astype(dtype)
        self.held_out = np.empty((len(self.coef), len(rows)), self.target.dtype)
        self._hold_out(0)

    def _hold_out(self, t):
        """Residuals of the rows left out times ``sqrt_weight``, at iterate t."""
        predicted = einsum("ij,ij->i", self.working.left_out, self.current)
        self.held_out[t] = self.left_out.residual_scale * (predicted - self.target)

    def deviations(self, t):
        """Coefficients on the working columns less the recorded ones of iterate t."""
        return self.current - self.coef[t, self.working.index]

    def take(self, taken):
        """Take the update that leads from iterate t to t + 1."""
        t, before, update, penalty = taken
        if taken.restarts:
            self.before = self.current
        recorded = update.point(self.coef[t], self.coef[before])
        point = update.point(self.current, self.before) - recorded[self.working.index]
        gradient = update.point(self.gradient[t], self.gradient[before])
        own_slope = update.point(self.held_out[t], self.held_out[before])
        self._raise_bounds(point, own_slope / self.working.n_rows)
        self._admit(point, gradient, update, penalty)
        self._advance(taken, gradient)
        if t % DROP_EVERY == DROP_EVERY - 1:
            self._drop(t + 1)
        self._hold_out(t + 1)

    def _raise_bounds(self, point, own_slope):
        """Raise the bound of every column by what the deviations have moved."""
        norms, largest = self.column_sizes
        shift = self.working.gram_of(point)
        length = einsum("ij,ij->i", point, shift)
        across = einsum("ij,ij->i", point, self.shift)
        moved = np.clip(length + self.length - 2 * across, 0, None)
        moved += ROUNDING * np.finfo(shift.dtype).eps * (length + self.length)
        travelled = np.sqrt(moved.max(initial=0) / self.working.n_rows)
        changed = np.abs(own_slope - self.own_slope).max(initial=0)
        self.shift_bound += norms * travelled + largest * changed
        self.shift, self.length, self.own_slope = shift, length, own_slope

    def _admit(self, point, gradient, update, penalty):
        """Let the columns outside that some replica moves join."""
        outside = self._moves(np.abs(gradient) + self.shift_bound, update, penalty)
        outside = self.whole(outside)
        outside[self.working.index] = False
        outside = np.flatnonzero(outside)
        for part in self.working.looked_at(outside):
            index = outside[part]
            self.shift_bound[index] = self.working.largest_shift(
                point, self.own_slope, index
            )
        bound = np.abs(gradient[outside]) + self.shift_bound[outside]
        part = penalty.on(outside)
        joins = outside[part.whole(self._moves(bound, update, part))]
        if joins.size:
            shift = self.working.gradient_shift(point, joins)
            self.shift = np.concatenate([self.shift, shift], axis=1)
            self.working.joined_by(joins)
            self.current = _widened(self.current, len(self.working))
            self.before = _widened(self.before, len(self.working))

    def _moves(self, bound, update, penalty):
        """Whether zero coefficients may become nonzero, in any replica or the run.

        ``bound`` is of the gradient before it is scaled by the loss.
        """
        scale = min(1.0, self.penalty_scale.min())
        bound = self.loss_scale.max() * bound
        return may_move(penalty, bound, update.step_size, scale)

    def _advance(self, taken, gradient):
        """The update itself, for every replica on the working columns."""
        update, penalty, index = taken.update, taken.penalty, self.working.index
        if index is not self._penalty_on.index:
            self._penalty_on = OnColumns(index)
        penalty = self._penalty_on(penalty)
        slope = self.working.left_out * -self.own_slope[:, None]
        slope += self.shift
        slope += gradient[index]
        slope *= self.loss_scale[:, None]
        following = update.apply(
            self.current.T, self.before.T, slope.T, penalty, self.penalty_scale
        ).T
        self.before, self.current = self.current, following

    def _drop(self, t):
        """Drop working columns that were zero everywhere at iterates t and t - 1."""
        index = self.working.index
        used = (self.coef[t, index] != 0) | (self.coef[t - 1, index] != 0)
        used |= self.current.any(axis=0) | self.before.any(axis=0)
        wanted = np.zeros(self.coef.shape[1], dtype=bool)
        wanted[index[used]] = True
        used = self.whole(wanted)[index]
        if used.all():
            return
        changed = self.working.left_out[:, ~used] * self.own_slope[:, None]
        changed -= self.shift[:, ~used]
        self.shift_bound[index[~used]] = np.abs(changed).max(axis=0)
        self.working.reduced_to(used)
        self.current = self.current[:, used]
        self.before = self.before[:, used]
        self.shift = self.shift[:, used]


def _widened(coef, n_columns):
    """Zeros appended for columns that have joined."""
    new = np.zeros((len(coef), n_columns - coef.shape[1]), coef.dtype)
    return np.concatenate([coef, new], axis=1)
