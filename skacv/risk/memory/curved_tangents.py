"""Derivatives of the iterates with respect to the loss derivatives of rows.

With Q_{t,s} the response of iterate t to a shock in gradient s, x_i the rows, psi_i
their slopes and D_i their curvatures (times n and the rows' weights), Z = W V is
computed for the temporal modes V of the slopes. The strictly lower triangular W is
the response of a row's own predictor in a run that does not have the row, c_i W where
a row has c_i times the leverage of the average one. It solves

    sum_i c_i^2 D_ti Z_t = sum_{s<t,i} c_i D_ti x_i' Q_{t,s} x_i (V_s + c_i D_si Z_s).

For random signs r_i the right hand side is the mean of (X'(c D_t r))'u over the signs,
with one vector u: the tangent at t of all shocks X'(r (V_s + c D_s Z_s)) so far. No Q
and no W is ever formed; an update takes two products with X.
"""

from dataclasses import dataclass, replace

import numpy as np

from ...optim.blocks import MEMORY_BYTES, blocks
from ...optim.design import Design
from ...optim.einsum import einsum
from ...optim.fits import WeightedFits
from ...optim.run import Iterates
from ...optim.updates import State
from ...optim.user import Arguments, map_arrays
from .tangents import Tangents


def curvature_at(problem, predictor, rows=slice(None)):
    """Curvature of rows at their predictors, times n and the rows' weights."""
    # (n_rows, n_outputs), or (n_rows, n_outputs, n_outputs) if outputs are coupled.
    curvature = problem.loss.curvature(problem.target[rows], predictor)
    weights = len(problem.target) * problem.row_weights[rows, :1]
    return curvature * weights.reshape(-1, *(1,) * (curvature.ndim - 1))


@dataclass(frozen=True)
class SignedRows:
    """Rows of X on working columns, their signs r, and their leverages c."""

    columns: Design
    signs: np.ndarray  # (n_rows, n_outputs, n_probes)
    scales: np.ndarray  # (n_rows,)
    probe: np.ndarray  # of every tangent, (n_tangents,)
    # Degrees of freedom of a row: less than one where rows are centred.
    degrees: float = 1.0

    def part(self, rows):
        """The signed rows at some row numbers, or of a slice."""
        columns = self.columns.rows(rows)
        signs, scales = self.signs[rows], self.scales[rows]
        return replace(self, columns=columns, signs=signs, scales=scales)

    def source(self):
        """X'r of every tangent, (n_working, n_outputs, n_tangents)."""
        n_rows, *shape = self.signs.shape
        source = self.columns.t_dot(self.signs.reshape(n_rows, -1))
        return source.reshape(len(source), *shape)[:, :, self.probe]

    def pulled(self, D, tangents):
        """X'(c D r) and X'(D X tangents), both (n_working, n_outputs, n_tangents)."""
        # The first is of every tangent, also if ``tangents`` has none.
        columns, signs, products = self.columns, self.signs, 0.0
        (n_rows, n_outputs, n_probes), n_tangents = signs.shape, tangents.shape[2]
        n_vectors = n_probes + n_tangents
        flat = tangents.reshape(len(tangents), n_outputs * n_tangents)
        bytes_each = signs.itemsize * n_outputs * n_vectors
        for rows in blocks(n_rows, bytes_each, MEMORY_BYTES // 32):
            is_all = rows == slice(0, n_rows)
            block = columns if is_all else columns.rows(rows)
            ahead = block.dot(flat).reshape(block.shape[0], n_outputs, n_tangents)
            scaled = signs[rows] * self.scales[rows, None, None]
            vectors = np.concatenate([scaled, ahead], axis=2)
            # A matrix for every row where the loss couples the outputs.
            bend = D[rows]
            bent = bend @ vectors if D.ndim == 3 else bend[:, :, None] * vectors
            products = products + block.t_dot(bent.reshape(len(bent), -1))
        products = products.reshape(len(tangents), n_outputs, n_vectors)
        return products[:, :, self.probe], products[:, :, n_probes:].copy()

    def reading(self, D, bent):
        """The :class:`Reading` by curvatures D and X'(c D r); by signs where D is 0."""
        scales, n_alike = self.scales, 1
        if D.ndim == 3:
            n_alike = D.shape[1]
            total = np.einsum("n,nkk->", scales**2, D)[None]
            squares = np.einsum("n,nkl,nkl->", scales**3, D, D)[None]
        else:
            total, squares = scales**2 @ D, scales**3 @ D**2
        if (total > 0).all():
            return Reading(bent, self.degrees * total, squares / total)
        by_signs = np.full_like(total, self.degrees * scales.sum() * n_alike)
        return Reading(self.source(), by_signs, np.zeros_like(total))


@dataclass(frozen=True)
class Reading:
    """The reading of Z: products of tangents with ``by``, divided by ``total``."""

    by: np.ndarray  # (n_working, n_outputs, n_tangents)
    total: np.ndarray  # (n_groups,)
    mean_curvature: np.ndarray  # by which Z is fed back, (n_groups,)

    def of(self, tangents):
        """The reading of Z from every tangent, (n_groups, n_tangents)."""
        products = einsum("jkc,jkc->kc", self.by, tangents)
        if len(self.total) < len(products):  # outputs that are coupled
            products = products.sum(axis=0, keepdims=True)
        return products / self.total[:, None]


class CurvedTangents(Tangents):
    """The tangents of any loss, where updates take all rows."""

    # Outputs that the loss couples are one group, others a group each. ``shocks_of(V,
    # Z, total)`` are the factors of r and of D r in the shocks at a gradient. Shapes:
    # row_scales (n_rows,); temporal (n_updates, n_modes); signs (n_rows, n_outputs,
    # n_probes); at_points (n_updates, n_groups, n_modes), Z at gradients.

    def __init__(
        self,
        points,
        row_scales,
        temporal,
        signs,
        n_by_mode=None,
        shocks_of=lambda V, Z, total: (V, Z),
        degrees=1.0,
    ):
        _, n_outputs, n_probes = signs.shape
        n_each = 1 if points.problem.loss.is_coupled else n_outputs
        super().__init__(
            points.trajectory,
            temporal,
            np.full(temporal.shape[1], n_probes) if n_by_mode is None else n_by_mode,
            points.column_sets(signs.dtype),
            signs.dtype,
            n_outputs,
            n_each * points.n_positions,
        )
        self._points, self._shocks_of, self._n_rows = points, shocks_of, len(signs)
        # The properties of rows that do not depend on the columns.
        self._signed = signs, row_scales.astype(signs.dtype), self._probe, degrees
        self.at_points = np.zeros_like(self.solution[1:])
        self.mean_curvature = np.zeros(self.at_points.shape[:2])

    def _on_columns(self, column_set):
        rows = SignedRows(column_set.columns, *self._signed)
        self._source = rows.source()
        return rows

    def take(self, step):
        """Read Z where the update begins, and move all tangents on."""
        point, D = self._point(step), self._curvature(step.t)
        bent, change = self._on_set.pulled(D, point)
        reading = self._on_set.reading(D, bent)
        self._read(step.t, slice(None), reading.of(self._current))
        shocks = self._shocks(step.t, slice(None), reading, point, self._source, bent)
        self._finish(step, (change - shocks) / self._n_rows)

    def _finish(self, step, change):
        """Take a gradient step that led to a recorded iterate; the last is read."""
        self._advance(step, change, self._coef[step.t + 1, self._index])
        last = len(self.temporal)
        if step.t + 1 == last:
            reading = self._reading_of(self._on_set, self._curvature(last))
            self._read(last, slice(None), reading.of(self._current))

    def _curvature(self, t):
        return self._points.curvature(t).astype(self._dtype)

    def _reading_of(self, rows, D):
        """The Reading by some rows, where no tangent is moved."""
        bent, _ = rows.pulled(D, self._current[:, :, :0])
        return rows.reading(D, bent)

    def _shocks(self, t, groups, reading, point, source, bent):
        """All shocks X'(r (V + c D Z)) at a gradient, after Z is read there."""
        self.mean_curvature[t, groups] = reading.mean_curvature
        Z = reading.of(point) @ self._mixing
        direct, through = self._shocks_of(self.temporal[t], Z, reading.total)
        self.at_points[t, groups] = through
        shocks = source * direct[self.mode].astype(self._dtype)
        shocks += bent * through[:, self.mode].astype(self._dtype)
        return shocks


class BatchTangents(CurvedTangents):
    """Tangents where an update takes one batch; they are read by all rows."""

    # With I_s the batch of gradient s,
    #
    #     sum_i c_i^2 D_ti Z_t = sum_{s<t,i} c_i D_ti x_i' Q_{t,s} x_i
    #                            (V_s + [i in I_s] c_i D_si Z_s).

    def take(self, step):
        """Read Z by all rows where the update begins, and move all tangents on."""
        point, D, (batch,) = (
            self._point(step),
            self._curvature(step.t),
            step.update.batches,
        )
        reading = self._reading_of(self._on_set, D)
        # Only the batch feeds back.
        mean_curvature = len(batch) / len(D) * reading.mean_curvature
        reading = replace(reading, mean_curvature=mean_curvature)
        self._read(step.t, slice(None), reading.of(self._current))
        bent, change = self._on_set.part(batch).pulled(D[batch], point)
        shocks = self._shocks(step.t, slice(None), reading, point, self._source, bent)
        self._finish(step, (change - shocks) / len(batch))


class PassTangents(CurvedTangents):
    """Tangents where an update is a pass through batches, each read by its rows."""

    # Groups are those of the first batch of a pass, then those of the second, and so
    # on.

    def __init__(self, points, *args, **kwargs):
        super().__init__(points, *args, **kwargs)
        self._fits = WeightedFits(points.problem)
        self._n_each = self.solution.shape[1] // points.n_positions

    def take(self, step):
        """Move all tangents on by the steps of a pass, and read Z after it."""
        self._point(step)
        t, n_each = step.t, self._n_each
        coef = self._coef[t, :, :, None]
        parts = step.update.parts(self._fits, step.penalty, coef)
        for position, part in enumerate(parts):
            rows = self._on_set.part(part.rows)
            predictor = part.predictor[:, :, 0]
            D = curvature_at(self._points.problem, predictor, part.rows)
            D = D.astype(self._dtype)
            bent, change = rows.pulled(D, self._current)
            groups = slice(position * n_each, (position + 1) * n_each)
            change -= self._shocks(
                t, groups, rows.reading(D, bent), self._current, rows.source(), bent
            )
            self._advance(step, change / len(part.rows), part.following[:, :, 0])
        D = self._curvature(t + 1)
        for position, batch in enumerate(step.update.batches):
            reading = self._reading_of(self._on_set.part(batch), D[batch])
            groups = slice(position * n_each, (position + 1) * n_each)
            self._read(t + 1, groups, reading.of(self._current))


class UserTangents(CurvedTangents):
    """Tangents of updates of the user, which move by more than affine maps."""

    # The run is followed once more for the arguments that its updates are called with.

    def __init__(self, points, *args, **kwargs):
        super().__init__(points, *args, **kwargs)
        self._run = Iterates.at_rest(WeightedFits(points.problem), self._coef[0])
        self._former = None

    def _advance(self, step, change, coef):
        update, penalty, state = step.update, step.penalty, self._run.state
        if step.restarts:
            state = State(state.current, state.current)
        at = update.arguments(self._run.fits, penalty, state)
        if penalty.curvature:
            change = change + penalty.smooth_gradient(self._current)
        if step.restarts:
            self._former = (
                change,
                map_arrays(
                    lambda part: np.zeros((*part.shape[:-1], self._current.shape[2])),
                    at.state,
                ),
            )
        former, state = self._former
        moves = Arguments(self._current, self._earlier, change, former, state)
        ahead, state = update.tangents(at, moves)
        ahead = penalty.prox_tangent(coef[:, :, None], update.step_size, ahead)
        self._earlier, self._current = self._current, ahead.astype(change.dtype)
        self._former = change, state
        self._run.take(step)
