"""Leave-one-out along updates with a prox: exact, every row a replica of the run.

With the squared error, and in the notation of :mod:`skacv.risk.left_out.spectral`, the
gradient of the replica that never sees row i is

    c_i (gradient(b) + G d_i - w_i z_i h_i),        G = Z'Z / n,

so an update takes the square of the working columns per replica (or two passes over
them, if that is less), for any width of X.

A column outside the working columns stays out while a bound shows that no replica can
move it: the recorded gradient plus the largest shift of it that leaving out a row may
cause. When a column is looked at, that shift is known exactly; from then on it can
grow by no more than the distance that the deviations have gone since,

    ||z_j|| max_i ||Z (d_i - d_i')|| / n + max_i |w_i z_ij| max_i |h_i - h_i'|.

A column is looked at again only when its bound crosses the threshold of the
prox, and joins the working columns when a replica really moves it.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from ...optim.blocks import MEMORY_BYTES, blocks
from ...optim.costs import ENTRY
from ...optim.design import ROUNDINGS, Design
from ...optim.einsum import einsum
from ...optim.trajectory import iterate
from .row_replicas import (
    ReplayedStep,
    RowReplicas,
    rows_at_a_time,
    rows_of_array,
    with_zeros,
)

# Updates between two searches for working columns that no replica uses any more.
DROP_EVERY = 8


def screened_residuals(problem, trajectory, left_out, largest_block, map):
    """Held-out residuals of every iterate, for one target and the squared error.

    Shapes: returned residuals (n_iterates, n_left_out).
    """
    # ``map(function, blocks)`` goes through independent blocks of rows. Returned with
    # the residuals: for every block columns and the deviations of the last iterate on
    # them, (n_rows, n_columns), and the index of every row in the blocks one after the
    # other.
    design, target = problem.sqrt_weighted()
    sqrt_weight = np.sqrt(len(target) * problem.row_weights[:, 0])
    residuals = trajectory.predictor.of_rows(slice(None))[:, :, 0]
    residuals -= problem.target[:, 0]
    residuals *= sqrt_weight
    gradient = design.t_dot(residuals.T).T / len(target)
    # The Gram matrix of all columns, if its products (every entry of X times a row) are
    # cheaper than the replicas, and it takes at most a few times the memory of X.
    gram, n_columns = None, design.shape[1]
    width = np.minimum(2 * np.count_nonzero(trajectory.coef, axis=(1, 2)), n_columns)
    replicas = len(left_out.rows) * np.sum(width.astype(float) ** 2)
    most_entries = min(8 * design.n_stored, MEMORY_BYTES / design.dtype.itemsize)
    if design.n_stored * n_columns <= replicas and n_columns**2 <= most_entries:
        gram = design.gram()
        gram /= len(target)
    norms, largest = design.column_sizes()
    run = ScreenedRun(design, target[:, 0], gradient, norms, largest, gram)
    # Rows that matter alike in one block: its bounds are those of its worst row.
    order = np.argsort(np.einsum("ti,ti->i", residuals, residuals)[left_out.rows])
    size = min(rows_at_a_time(trajectory), largest_block)
    block_residuals = partial(_residuals_of_block, trajectory, run)
    residuals, deviations = zip(*map(block_residuals, left_out.blocks(size, order)))
    back = np.argsort(order)
    return np.concatenate(residuals, axis=1)[:, back], (deviations, back)


def _residuals_of_block(trajectory, run, left_out):
    """Residuals of one block of rows, and its deviations at the end."""
    curvature_of = partial(GramCurvature, run)
    replicas = RowReplicas(run.design, left_out, trajectory, curvature_of)
    steps = map(
        partial(ReplayedStep.on_all_rows, trajectory.coef), trajectory.updates()
    )
    for _ in iterate(steps, replicas):
        pass
    residuals = replicas.predicted[:, :, 0]
    residuals -= run.target[left_out.rows]
    residuals *= left_out.residual_scale / left_out.sqrt_weight
    index = replicas.working.index
    deviations = replicas.current[:, 0].T - trajectory.coef[-1, index, 0]
    return residuals, (index, deviations)


class ScreenedRun(NamedTuple):
    """Rows and targets times the roots of their weights, which all blocks read."""

    design: Design
    target: np.ndarray  # (n_rows,)
    gradient: np.ndarray  # of the loss, (n_iterates, n_columns)
    norms: np.ndarray  # of the columns, (n_columns,)
    largest: np.ndarray  # sizes of the largest entries of the columns, (n_columns,)
    gram: np.ndarray | None  # design' design / n_rows


class GramCurvature:
    """The curvature of the squared error: the Gram matrix of the working columns."""

    # At the gradient point: ``shift`` G d_i, (n_working, 1, n_replicas); ``length``
    # d_i'G d_i, (n_replicas,); ``row_slope`` w_i h_i, (1, n_replicas).

    tightens = True

    def __init__(self, run, replicas):
        self.run, self.left_out = run, replicas.left_out
        rows = self.left_out.rows
        self.target, self.length = run.target[rows], np.zeros(len(rows))
        self.row_slope, self.bounds = np.zeros((1, len(rows))), np.zeros(len(run.norms))
        self.gram = WorkingGram(run.design, replicas.working, run.gram)
        self.shift, self._scaled_entries = np.zeros_like(replicas.current), None
        if run.gram is not None:
            # Columns are few: the rows left out are kept column by column.
            index = np.arange(len(run.norms))
            self._scaled_entries = self._entries(replicas, index)

    def look(self, replicas, step):
        """Raise the bound of every column by the distance that deviations have gone."""
        run, update, t = self.run, step.update, step.ends - 1
        before = t if step.starts else t - 1
        if t and t % DROP_EVERY == 0:
            replicas.drop(step)
        self.point = replicas.point(step)
        predicted = replicas.predicted[:, :, 0]
        residual = update.point(predicted[t], predicted[before]) - self.target
        slope = (self.left_out.residual_scale * residual)[None] / self.left_out.n_rows
        shift = self.gram.times(self.point[:, 0].T).T[:, None]
        # ||Z (d_i - d_i')||^2 / n from products that are at hand, and their rounding.
        length = einsum("jkr,jkr->r", self.point, shift)
        across = einsum("jkr,jkr->r", self.point, self.shift)
        distance = np.clip(length + self.length - 2 * across, 0, None)
        distance += ROUNDINGS * np.finfo(shift.dtype).eps * (length + self.length)
        distance = np.sqrt(distance.max(initial=0) / self.left_out.n_rows)
        change = np.abs(slope - self.row_slope).max(initial=0)
        self.bounds += run.norms * distance + run.largest * change
        self.shift, self.length, self.row_slope = shift, length, slope
        return update.point(run.gradient[t], run.gradient[before])[:, None]

    def extend(self, replicas, step):
        n_before = len(self.shift)
        n_joined = len(replicas.working) - n_before
        self.point = with_zeros(self.point, n_joined)
        self.shift = with_zeros(self.shift, n_joined)
        shift = self.gram.times(self.point[:, 0].T, n_before).T
        self.shift[n_before:] = shift[:, None]

    def tighten(self, replicas, index):
        """Find the largest shifts of some columns, a block of them at a time."""
        point, slope = self.point[:, 0].T, self.row_slope[0]
        n_bytes = self.point.itemsize * self.left_out.n_rows
        for block in blocks(len(index), n_bytes, least=ENTRY):
            columns = index[block]
            left, right = self.gram.factors(point, columns)
            entries, sizes = self._entries(replicas, columns), self.run.largest[columns]
            self.bounds[columns] = largest_shift(left, right, slope, entries, sizes)

    def _entries(self, replicas, index):
        """The rows left out over the largest entries of columns, (k, n_replicas)."""
        if self._scaled_entries is not None:
            return self._scaled_entries[index]
        entries = replicas.left_out_rows.dense_columns(index, replicas.rows.dtype).T
        return quotient(entries, self.run.largest[index, None]).astype(np.float32)

    def keep(self, replicas, indices):
        dropped = np.ones(len(replicas.working), dtype=bool)
        dropped[indices] = False
        shift = replicas.rows[dropped] * self.row_slope - self.shift[dropped, 0]
        self.bounds[replicas.working.index[dropped]] = np.abs(shift).max(axis=1)
        self.gram.keep(indices)
        self.shift = rows_of_array(self.shift, indices)


class WorkingGram:
    """Inner products of working columns over n_rows, formed as they are needed."""

    # Coefficients of replicas are rows here, (n_replicas, n_working). ``gram`` is that
    # of all columns, or None.

    def __init__(self, design, working, gram=None):
        self.design, self._working, self._gram = design, working, gram
        # The Gram matrix of the first so many working columns.
        self._matrix = np.empty((0, 0), design.dtype)

    @property
    def is_wide(self):
        """Whether two passes over the columns take less time than the Gram matrix."""
        return len(self._working) > 2 * self.design.n_stored / self.design.shape[1]

    def times(self, coef, first=0):
        """``coef`` times the Gram matrix, on the working columns from ``first`` on."""
        working, index = self._working, self._working.index
        if self.is_wide:
            columns = working
            if first:
                columns = self.design.selection(index[first:], coef.dtype)
            shift = columns.t_dot(working.dot(coef.T))
            return np.ascontiguousarray(shift.T) / self.design.shape[0]
        n_old = len(self._matrix)
        if n_old < len(index):
            # Products of the columns that have joined with all working columns.
            if self._gram is not None:
                products = self._gram[np.ix_(index[n_old:], index)]
            elif n_old == 0:
                products = working.as_design().gram() / self.design.shape[0]
            else:
                products = self._products(index[n_old:])
            matrix = np.empty((len(index), len(index)), self.design.dtype)
            matrix[:n_old, :n_old] = self._matrix
            matrix[n_old:] = products
            matrix[:n_old, n_old:] = products[:, :n_old].T
            self._matrix = matrix
        return coef @ self._matrix[:, first:]

    def factors(self, coef, index):
        """Factors (n_replicas, m), (k, m) of shifts of the gradient by ``coef``."""
        if self._gram is not None:
            return coef, self._gram[np.ix_(index, self._working.index)]
        if not self.is_wide:
            return coef, self._products(index)
        columns = self.design.dense_columns(index, coef.dtype)
        return self._working.dot(coef.T).T / self.design.shape[0], columns.T

    def _products(self, index):
        """Products of columns with all working columns, (k, n_working)."""
        columns = self.design.dense_columns(index, self.design.dtype)
        return self._working.t_dot(columns).T / self.design.shape[0]

    def keep(self, indices):
        """Keep the products of the working columns at some indices."""
        indices = indices[indices < len(self._matrix)]
        self._matrix = self._matrix[np.ix_(indices, indices)]


def largest_shift(left, right, row_slope, entries, sizes):
    """A bound of how far a replica may shift the gradient on some columns, (k,).

    Shapes: left (n_replicas, m), right (k, m), row_slope (n_replicas,), entries (k,
    n_replicas) of at most 1 in size, sizes (k,).
    """
    # The shifts are ``left @ right.T`` less ``row_slope`` times ``entries * sizes``,
    # computed in single precision, with the rounding error of that added.
    left_norm = np.linalg.norm(left, axis=1).max(initial=0)
    slope_size = np.abs(row_slope).max(initial=0)
    # In units in which no entry and no product is more than one.
    shift_size = left_norm * np.linalg.norm(right, axis=1)
    row_size = slope_size * sizes
    unit = shift_size + row_size
    right = right * quotient(left_norm, unit)[:, None]
    left = quotient(left, left_norm).astype(np.float32)
    entries = entries * quotient(row_size, unit).astype(np.float32)[:, None]
    entries *= quotient(row_slope, slope_size).astype(np.float32)
    shift = right.astype(np.float32) @ left.T
    shift -= entries
    largest = np.maximum(shift.max(axis=1), -shift.min(axis=1))
    # |fl(x'y) - x'y| <= m eps ||x|| ||y|| for m entries; rounding before and after the
    # product adds a few eps.
    return unit * (largest + (left.shape[1] + 8) * np.finfo(np.float32).eps)


def quotient(numerator, denominator):
    """The ratio, zero where the denominator is zero."""
    return numerator / np.where(denominator == 0, np.inf, denominator)
