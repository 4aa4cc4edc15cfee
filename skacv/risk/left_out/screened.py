"""Leave-one-out along updates with a prox: exact, every row a replica of the run.

With the squared error, and in the notation of :mod:`skacv.risk.left_out.spectral`, the
gradient of the replica that never sees row i is

    c_i (gradient(b) + G d_i - w_i z_i h_i),        G = Z'Z / n,

so an update takes the square of the working columns per replica (or two passes over
them, if that is less), for any width of X.

A column outside the working columns stays out while a bound says that no replica can
move it: the recorded gradient plus the largest shift of it that leaving out a row may
cause. When a column is looked at, that shift is known exactly; from then on it can
grow by no more than what the deviations have travelled since,

    ||z_j|| max_i ||Z (d_i - d_i')|| / n + max_i |w_i z_ij| max_i |h_i - h_i'|.

A column is looked at again only when its bound crosses the threshold of the
prox, and joins the working columns when a replica really moves it.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from ...optim.design import Design
from ...optim.einsum import einsum
from ...optim.matrix import slices
from .row_replicas import (
    ROUNDING,
    ReplayedStep,
    RowReplicas,
    joined,
    kept,
    rows_at_a_time,
)
from .working_gram import WorkingGram, largest_shift, quotient, whole_gram

# Memory for columns that are looked at together.
LOOKED_AT_BYTES = 1 << 23
# Working columns that no replica uses are dropped so many updates apart.
DROP_EVERY = 8


def leave_one_out(problem, trajectory, left_out, largest_block, map):
    """Held-out residuals of every iterate of a run with the squared error.

    Parameters
    ----------
    problem : Problem
        It has one target.
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
    common = Common(
        design=design,
        target=problem.target[:, 0] * sqrt_weight,
        gradient=design.t_dot(residuals.T).T / len(sqrt_weight),
        column_sizes=design.column_sizes(),
        gram=whole_gram(design),
    )
    # Rows that matter alike together: a block's bounds are those of its worst row.
    order = np.argsort(np.einsum("ti,ti->i", residuals, residuals)[left_out.rows])
    size = min(rows_at_a_time(trajectory), largest_block)
    blocks = left_out.part(order).blocks(size)
    held_out, deviations = zip(*map(partial(_replayed, common, trajectory), blocks))
    back = np.argsort(order)
    return np.concatenate(held_out, axis=1)[:, back], (deviations, back)


def _replayed(common, trajectory, left_out):
    """Residuals of one block of rows, and its deviations at the end."""
    replicas = trajectory.followed_by(Replicas(common, left_out, trajectory))
    deviations = replicas.deviations(trajectory.coef[-1])[:, 0].T
    residuals = replicas.held_out / left_out.sqrt_weight
    return residuals, (replicas.working.index, deviations)


class Common(NamedTuple):
    """The arrays that all blocks of rows share.

    Attributes
    ----------
    design : Design
        Its rows are multiplied by ``sqrt_weight``.
    target : ndarray of shape (n_rows,)
        Targets times ``sqrt_weight``.
    gradient : ndarray of shape (n_iterates, n_columns)
        Gradients of the loss at the recorded iterates.
    column_sizes : tuple of ndarray of shape (n_columns,)
        Norms of the columns, and their largest entries.
    gram : ndarray of shape (n_columns, n_columns) or None
    """

    design: Design
    target: np.ndarray
    gradient: np.ndarray
    column_sizes: tuple
    gram: np.ndarray | None


class Replicas(RowReplicas):
    """Replicas whose curvature stays the same: the Gram matrix.

    Attributes
    ----------
    held_out : ndarray of shape (n_iterates, n_replicas)
        Residuals of the rows left out times ``sqrt_weight``, as far as the run
        has come.
    """

    def __init__(self, common, left_out, trajectory):
        super().__init__(common.design, left_out, trajectory)
        self.coef, self.gradient = trajectory.coef, common.gradient
        self.target, self.n_rows = common.target[left_out.rows], left_out.n_rows
        self.norms, self.largest = common.column_sizes
        self.gram = WorkingGram(common.design, self.working, common.gram)
        # Where columns are few, the rows left out are kept column by column.
        self._entries = None
        if common.gram is not None:
            self._entries = self._entries_on(np.arange(len(self.norms)))
        # At the gradient point: what the gradient is shifted by, the squared length
        # of Z d / sqrt(n), and how much of its own row a replica's gradient lacks.
        self.shift = np.zeros_like(self.current)
        self.length = np.zeros(len(left_out.rows))
        self.own = np.zeros((1, len(left_out.rows)))
        # The most that the gradient of every column outside may be shifted by.
        self.shift_bound = np.zeros(len(self.norms))
        self.held_out = np.empty((len(self.coef), len(self.target)), self.target.dtype)
        self._hold_out(0)

    def take(self, taken):
        """Take the update that leads from iterate t to t + 1."""
        step = ReplayedStep.on_all_rows(self.coef, taken)
        super().take(step)
        if step.ends % DROP_EVERY == 0:
            self._drop(step.following, step.coef)
        self._hold_out(step.ends)

    def _hold_out(self, t):
        """Residuals of the rows left out times ``sqrt_weight``, at iterate t."""
        predicted = einsum("jr,jr->r", self.rows, self.current[:, 0])
        self.held_out[t] = self.left_out.residual_scale * (predicted - self.target)

    def _look(self, step):
        """Raise the bound of every column by what the deviations have moved."""
        t = step.ends - 1
        before = t if step.starts else t - 1
        self.point, point = self._point(step), step.update.point
        own = point(self.held_out[t], self.held_out[before])[None] / self.n_rows
        shift = self._shift()
        length = einsum("jkr,jkr->r", self.point, shift)
        across = einsum("jkr,jkr->r", self.point, self.shift)
        moved = np.clip(length + self.length - 2 * across, 0, None)
        moved += ROUNDING * np.finfo(shift.dtype).eps * (length + self.length)
        travelled = np.sqrt(moved.max(initial=0) / self.n_rows)
        changed = np.abs(own - self.own).max(initial=0)
        self.shift_bound += self.norms * travelled + self.largest * changed
        self.shift, self.length, self.own = shift, length, own
        return point(self.gradient[t], self.gradient[before])[:, None]

    def _look_again(self, step):
        n_before, self.point = len(self.shift), self._point(step)
        self.shift = joined(self.shift, self._shift(n_before))

    def _shift(self, first=0):
        """H d, on the working columns from ``first`` on."""
        return self.gram.times(self.point[:, 0].T, first).T[:, None]

    def _bounds(self):
        return self.shift_bound

    def _look_closer(self, index):
        """Find the largest shifts of some columns, as far as memory goes together."""
        point, design = self.point[:, 0].T, self.gram.design
        size = max(1, LOOKED_AT_BYTES // (design.dtype.itemsize * self.n_rows))
        for part in slices(len(index), size):
            some = index[part]
            entries = self._entries
            entries = self._entries_on(some) if entries is None else entries[some]
            self.shift_bound[some] = largest_shift(
                *self.gram.factors(point, some),
                self.own[0],
                entries,
                self.largest[some],
            )
        return True

    def _entries_on(self, index):
        """The rows left out over the largest entries of columns, (k, n_replicas)."""
        entries = self._left_out.dense_columns(index, self.rows.dtype).T
        return quotient(entries, self.largest[index, None]).astype(np.float32)

    def _keep(self, places):
        gone = np.ones(len(self.working), dtype=bool)
        gone[places] = False
        changed = self.rows[gone] * self.own - self.shift[gone, 0]
        self.shift_bound[self.working.index[gone]] = np.abs(changed).max(axis=1)
        self.gram.keep(places)
        self.shift = kept(self.shift, places)
        super()._keep(places)
