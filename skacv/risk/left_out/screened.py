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

import numpy as np

from ...optim.blocks import slices
from ...optim.einsum import einsum
from .row_replicas import (
    ROUNDING,
    ReplayedStep,
    RowReplicas,
    joined,
    kept,
    rows_at_a_time,
)

# Memory for columns that are looked at together.
LOOKED_AT_BYTES = 1 << 23
# Working columns that no replica uses are dropped so many updates apart.
DROP_EVERY = 8
# The Gram matrix of all columns is formed once where it takes no more memory, and
# has at most so many entries for one of X: of a dense X, columns for a row.
WHOLE_GRAM_BYTES = 1 << 28
GRAM_PER_ENTRY = 8


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
    shared = {
        "design": design,
        "target": problem.target[:, 0] * sqrt_weight,
        "gradient": design.t_dot(residuals.T).T / len(sqrt_weight),
        "column_sizes": design.column_sizes(),
        "gram": whole_gram(design),
    }
    # Rows that matter alike together: a block's bounds are those of its worst row.
    order = np.argsort(np.einsum("ti,ti->i", residuals, residuals)[left_out.rows])
    size = min(rows_at_a_time(trajectory), largest_block)
    blocks = left_out.part(order).blocks(size)
    held_out, deviations = zip(*map(partial(_replayed, trajectory, shared), blocks))
    back = np.argsort(order)
    return np.concatenate(held_out, axis=1)[:, back], (deviations, back)


def _replayed(trajectory, shared, left_out):
    """Residuals of one block of rows, and its deviations at the end."""
    replicas = trajectory.followed_by(Replicas(left_out, trajectory, **shared))
    deviations = replicas.deviations(trajectory.coef[-1])[:, 0].T
    residuals = replicas.held_out / left_out.sqrt_weight
    return residuals, (replicas.working.index, deviations)


class Replicas(RowReplicas):
    """Replicas whose curvature stays the same: the Gram matrix.

    Parameters
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

    Attributes
    ----------
    held_out : ndarray of shape (n_iterates, n_replicas)
        Residuals of the rows left out times ``sqrt_weight``, as far as the run
        has come.
    """

    def __init__(
        self, left_out, trajectory, design, target, gradient, column_sizes, gram
    ):
        super().__init__(design, left_out, trajectory)
        self.coef, self.gradient = trajectory.coef, gradient
        self.target, self.n_rows = target[left_out.rows], left_out.n_rows
        self.norms, self.largest = column_sizes
        self.gram, self._entries = WorkingGram(design, self.working, gram), None
        # Where columns are few, the rows left out are kept column by column.
        if gram is not None:
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

    def _moving(self, step, sizes):
        moving = super()._moving(step, sizes)
        if moving.size:
            self._look_closer(moving)
            moving = super()._moving(step, sizes)
        return moving

    def _look_closer(self, index):
        """Find the largest shifts of some columns, as far as memory goes together."""
        point, own = self.point[:, 0].T, self.own[0]
        size = LOOKED_AT_BYTES // (self.rows.itemsize * self.n_rows)
        for part in slices(len(index), size):
            some = index[part]
            factors, largest = self.gram.factors(point, some), self.largest[some]
            entries = self._entries_on(some)
            self.shift_bound[some] = largest_shift(*factors, own, entries, largest)

    def _entries_on(self, index):
        """The rows left out over the largest entries of columns, (k, n_replicas)."""
        if self._entries is not None:
            return self._entries[index]
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


def whole_gram(design):
    """Design' design / n_rows if that is cheap relative to the rest, or None."""
    size = design.shape[1] ** 2
    if size > GRAM_PER_ENTRY * design.n_stored:
        return None
    if size * design.dtype.itemsize > WHOLE_GRAM_BYTES:
        return None
    gram = design.gram()
    gram /= design.shape[0]
    return gram


class WorkingGram:
    """Inner products of working columns over n_rows, formed as they are needed.

    Coefficients of replicas are rows here, (n_replicas, n_working).

    Parameters
    ----------
    design : MatrixDesign of shape (n_rows, n_columns)
    working : WorkingColumns
        Columns of the design, which may join and be dropped.
    whole : ndarray of shape (n_columns, n_columns) or None
        design' design / n_rows, where it is known.
    """

    def __init__(self, design, working, whole=None):
        self.design, self._working, self._whole = design, working, whole
        self._n_rows = design.shape[0]
        # The Gram matrix of the first so many working columns.
        self._formed = np.empty((0, 0), design.dtype)

    @property
    def is_wide(self):
        """Whether two passes over the columns take less time than the Gram matrix."""
        return len(self._working) > 2 * self.design.n_stored / self.design.shape[1]

    def times(self, coef, first=0):
        """``coef`` times the Gram matrix, on the working columns from ``first`` on."""
        if not self.is_wide:
            return coef @ self._matrix()[:, first:]
        columns = self._working
        if first:
            columns = self.design.selection(columns.index[first:], coef.dtype)
        shift = columns.t_dot(self._working.dot(coef.T))
        return np.ascontiguousarray(shift.T) / self._n_rows

    def factors(self, coef, index):
        """(n_replicas, m) and (k, m), whose product is how ``coef`` moves gradients.

        Those of the columns in ``index``, shape (k,).
        """
        if self._whole is not None:
            return coef, self._whole[np.ix_(index, self._working.index)]
        columns = self.design.dense_columns(index, coef.dtype)
        if not self.is_wide:
            return coef, self._working.t_dot(columns).T / self._n_rows
        return self._working.dot(coef.T).T / self._n_rows, columns.T

    def keep(self, places):
        """Keep the products of the columns at some places, as the columns are kept."""
        places = places[places < len(self._formed)]
        self._formed = self._formed[np.ix_(places, places)]

    def _matrix(self):
        """The Gram matrix of the working columns."""
        n_old, n_working = len(self._formed), len(self._working)
        if n_old < n_working:
            matrix = np.empty((n_working, n_working), self.design.dtype)
            matrix[:n_old, :n_old] = self._formed
            matrix[n_old:] = self._inner_products(n_old)
            matrix[:n_old, n_old:] = matrix[n_old:, :n_old].T
            self._formed = matrix
        return self._formed

    def _inner_products(self, first):
        """Products of the working columns from ``first`` on with all, over n_rows."""
        index = self._working.index
        if self._whole is not None:
            return self._whole[np.ix_(index[first:], index)]
        if first == 0:
            return self._working.as_design().gram() / self._n_rows
        new = self.design.dense_columns(index[first:], self.design.dtype)
        return self._working.t_dot(new).T / self._n_rows


def largest_shift(left, right, own, entries, sizes):
    """How far a replica may shift the gradient on some columns, (k,).

    Parameters
    ----------
    left, right : ndarray of shape (n_replicas, m) and (k, m)
        Their product is the shift by the deviations of replicas.
    own : ndarray of shape (n_replicas,)
        The multiple of the row that it leaves out that is subtracted from
        a replica's gradient.
    entries : ndarray of shape (k, n_replicas)
        The rows left out over ``sizes``, in single precision.
    sizes : ndarray of shape (k,)
        Bounds of the sizes of their entries.

    Returns
    -------
    ndarray of shape (k,)
        A bound of the largest size of the shift over the replicas: found in
        single precision, with what that may be off.
    """
    left_norm = np.linalg.norm(left, axis=1).max(initial=0)
    slope_size = np.abs(own).max(initial=0)
    # In units in which no entry and no product is more than one.
    shift_size = left_norm * np.linalg.norm(right, axis=1)
    own_size = slope_size * sizes
    unit = shift_size + own_size
    right = right * quotient(left_norm, unit)[:, None]
    left = quotient(left, left_norm).astype(np.float32)
    entries = entries * quotient(own_size, unit).astype(np.float32)[:, None]
    entries *= quotient(own, slope_size).astype(np.float32)
    shift = right.astype(np.float32) @ left.T
    shift -= entries
    largest = np.maximum(shift.max(axis=1), -shift.min(axis=1))
    # |fl(x'y) - x'y| <= m eps ||x|| ||y|| for m entries; what is rounded
    # before and after adds a few eps.
    return unit * (largest + (left.shape[1] + 8) * np.finfo(np.float32).eps)


def quotient(numerator, denominator):
    """Zero where the denominator is zero."""
    return numerator / np.where(denominator == 0, np.inf, denominator)
