"""Tangents of a run whose loss is curved: how shocks in row slopes move iterates.

With Q_{t,s} the response of iterate t to a shock in gradient s, x_i the rows, psi_i
their slopes and D_i their curvatures (times n and the rows' weights), what is wanted
is Z = W V for the temporal modes V of the slopes. The strictly lower triangular W is
the response of a row's own predictor in a run that does not have the row, c_i W where
a row has c_i times the leverage of the average one. It solves

    sum_i c_i^2 D_ti Z_t = sum_{s<t,i} c_i D_ti x_i' Q_{t,s} x_i (V_s + c_i D_si Z_s).

For random signs r_i the right hand side is the mean of what X'(c D_t r) says of one
vector: the tangent at t of all shocks X'(r (V_s + c D_s Z_s)) so far. No Q and no W is
ever formed; an update takes two products with X.
"""

from dataclasses import dataclass

import numpy as np

from ...optim.design import Design
from ...optim.einsum import einsum
from ...optim.families import OnColumns
from .tangents import column_unions, moved_to

# Predictors of tangents, rows times tangents, that are worked on together.
ENTRIES_PER_BLOCK = 1 << 21


@dataclass(frozen=True)
class SignProbes:
    """Signs of the rows, by which traces over rows are read.

    Attributes
    ----------
    signs : ndarray of shape (n_rows, n_outputs, n_probes)
    n_by_mode : ndarray of shape (n_modes,)
        Mode k is driven through the first ``n_by_mode[k]`` probes.
    """

    signs: np.ndarray
    n_by_mode: np.ndarray

    @property
    def mode(self):
        """The mode of every tangent."""
        return np.repeat(np.arange(len(self.n_by_mode)), self.n_by_mode)

    @property
    def probe(self):
        """The probe of every tangent."""
        return np.concatenate([np.arange(n) for n in [0, *self.n_by_mode]])


@dataclass(frozen=True)
class ColumnSet:
    """The columns on which tangents live during some consecutive updates.

    Attributes
    ----------
    n_updates : int
    index : ndarray of int, increasing
    columns : Design
        Of these columns, in the precision of the tangents.
    """

    n_updates: int
    index: np.ndarray
    columns: Design

    @staticmethod
    def all_of(design, trajectory, dtype):
        """Those of a run, one after the other.

        Yields
        ------
        ColumnSet
        """
        former, columns = None, None
        for n_updates, index in column_unions(design, trajectory, dtype):
            if former is None or not np.array_equal(index, former):
                columns = None  # before those of the next set are copied
                former, columns = index, design.columns(index, dtype)
            yield ColumnSet(n_updates, index, columns)


class CurvedTangents:
    """The tangents of all probes and modes, one update after the other.

    Parameters
    ----------
    points : GradientPoints
    row_scales : ndarray of shape (n_rows,)
        c.
    temporal : ndarray of shape (n_updates, n_modes)
        V.
    probes : SignProbes

    Attributes
    ----------
    solution : ndarray of shape (n_updates + 1, n_groups, n_modes)
        Z at every iterate. Outputs that the loss couples are one group, others a group
        each, with a W of their own.
    at_points : ndarray of shape (n_updates, n_groups, n_modes)
        Z at the points where the gradients are taken.
    responses : ndarray of shape (n_updates + 1, n_groups, n_tangents)
        What every tangent alone says of Z.
    mean_bend : ndarray of shape (n_updates, n_groups)
        The curvature that Z is fed back by, on average as it is read.
    """

    def __init__(self, points, row_scales, temporal, probes):
        self._points, self._temporal, self._signs = points, temporal, probes.signs
        n_outputs = probes.signs.shape[1]
        dtype = probes.signs.dtype
        self._row_scales = row_scales.astype(dtype)
        self._probe, self._mode = probes.probe, probes.mode
        share = np.diag(1 / probes.n_by_mode)
        self._mixing = np.repeat(share, probes.n_by_mode, axis=0)
        self._is_coupled = points.problem.loss.is_coupled
        (n_updates, n_modes), n_tangents = temporal.shape, len(self._mode)
        n_groups = 1 if self._is_coupled else n_outputs
        self.solution = np.zeros((n_updates + 1, n_groups, n_modes))
        self.at_points = np.zeros((n_updates, n_groups, n_modes))
        self.responses = np.zeros((n_updates + 1, n_groups, n_tangents))
        self.mean_bend = np.zeros((n_updates, n_groups))
        trajectory, design = points.trajectory, points.problem.design
        self._column_sets = ColumnSet.all_of(design, trajectory, dtype)
        self._set, self._n_left, self._index = None, 0, np.empty(0, int)
        self._current = self._earlier = np.zeros((0, n_outputs, n_tangents), dtype)

    def take(self, taken):
        """Move all tangents on by an update."""
        if not self._n_left:
            self._enter_next_set()
        self._n_left -= 1
        t, _, update, _ = taken
        if taken.restarts:
            self._earlier = self._current
        bend = self._points.curvature(t).astype(self._signs.dtype)
        point = update.point(self._current, self._earlier)
        bent, change = self._pulled(bend, point)
        reading, self.mean_bend[t] = self._reading(bend, bent)
        self._note(t, reading)

        self.at_points[t] = self._read(point, reading) @ self._mixing
        change -= self._shocks(t, bent, reading[1])
        change /= len(self._signs)
        self._advance(taken, change)
        if t + 1 == len(self._temporal):
            bend = self._points.curvature(t + 1).astype(self._signs.dtype)
            bent, _ = self._pulled(bend, self._current)
            self._note(t + 1, self._reading(bend, bent)[0])

    def _shocks(self, t, bent, total):
        """X'(r (V + c D Z)) at gradient t, of every tangent."""
        dtype = bent.dtype
        shocks = self._source * self._temporal[t, self._mode].astype(dtype)
        follows = self.at_points[t][:, self._mode].astype(dtype)
        shocks += bent[:, :, self._probe] * follows
        return shocks

    def _note(self, t, reading):
        """Read Z at iterate t."""
        self.responses[t] = self._read(self._current, reading)
        self.solution[t] = self.responses[t] @ self._mixing

    def _pulled(self, bend, tangents):
        """X'(c D r) of every probe, and X'(D X tangents): one block of rows at a time.

        Returns
        -------
        bent : ndarray of shape (n_working, n_outputs, n_probes)
        curved : ndarray of shape (n_working, n_outputs, n_tangents)
        """
        columns, signs, found = self._set.columns, self._signs, 0.0
        (n_rows, n_outputs, n_probes), n_tangents = signs.shape, tangents.shape[2]
        flat = tangents.reshape(len(tangents), n_outputs * n_tangents)
        size = max(1, ENTRIES_PER_BLOCK // (n_outputs * (n_probes + n_tangents)))
        for first in range(0, n_rows, size):
            rows = slice(first, first + size)
            block = columns if size >= n_rows else columns.rows(rows)
            moved = block.dot(flat).reshape(-1, n_outputs, n_tangents)
            scaled = signs[rows] * self._row_scales[rows, None, None]
            slopes = _bent(bend[rows], np.concatenate([scaled, moved], axis=2))
            found = found + block.t_dot(slopes.reshape(len(slopes), -1))
        found = found.reshape(len(tangents), n_outputs, n_probes + n_tangents)
        return found[:, :, :n_probes], found[:, :, n_probes:].copy()

    def _reading(self, bend, bent):
        """What Z is read by, and the mean curvature; by the signs where none bends.

        Returns
        -------
        reading : (ndarray of shape (n_working, n_outputs, n_tangents), ndarray)
            The means of products with the first, over the second, are Z.
        mean_bend : ndarray of shape (n_groups,)
        """
        scales, n_outputs = self._row_scales, self._signs.shape[1]
        if self._is_coupled:
            total = np.einsum("n,nkk->", scales**2, bend)[None]
            squares = np.einsum("n,nkl,nkl->", scales**3, bend, bend)[None]
        else:
            total, squares = scales**2 @ bend, scales**3 @ bend**2
        if (total > 0).all():
            return (bent[:, :, self._probe], total), squares / total
        plain = scales.sum() * (n_outputs if self._is_coupled else 1)
        reading = self._source, np.full(len(total), plain)
        return reading, np.zeros(len(total))

    def _read(self, tangents, reading):
        """What every tangent says of Z, (n_groups, n_tangents)."""
        by, total = reading
        found = einsum("jkc,jkc->kc", by, tangents)
        if self._is_coupled:
            found = found.sum(axis=0, keepdims=True)
        return found / total[:, None]

    def _advance(self, taken, change):
        """The tangents after the update, of all outputs."""
        penalty = self._penalty_on(taken.penalty)
        coef = self._points.trajectory.coef[taken.t + 1, self._index]
        following = taken.update.tangent(
            self._current, self._earlier, change, penalty, coef[:, :, None]
        )
        self._earlier, self._current = self._current, following

    def _enter_next_set(self):
        """Move the tangents to the columns of the next set."""
        held, self._set = self._index, None  # before the next columns are copied
        self._set = next(self._column_sets)
        self._index, self._n_left = self._set.index, self._set.n_updates
        self._penalty_on = OnColumns(self._index)
        self._earlier = moved_to(self._index, held, self._earlier)
        self._current = moved_to(self._index, held, self._current)
        n_rows, *others = self._signs.shape
        source = self._set.columns.t_dot(self._signs.reshape(n_rows, -1))
        self._source = source.reshape(len(source), *others)[:, :, self._probe]


class ScoreTangents(CurvedTangents):
    """The same for K^-1 V, which drives the debiased iterates.

    With y = K^-1 V, sum_i D_ti y_t = V_t + sum_s sum_i D_ti x_i'Q_{t,s} x_i D_si y_s:
    what ``solution`` and ``at_points`` hold is y at the gradients, and what follows
    from earlier gradients of y at the iterates. All rows have the same leverage.
    """

    def _shocks(self, t, bent, total):
        """X'(r D y) at gradient t."""
        self.at_points[t] += self._temporal[t] / total[:, None]
        follows = self.at_points[t][:, self._mode].astype(bent.dtype)
        return bent[:, :, self._probe] * follows


def _bent(bend, array):
    """Curvature times an array of shape (n_rows, n_outputs, k), row by row."""
    if bend.ndim == 3:
        return bend @ array
    return bend[:, :, None] * array
