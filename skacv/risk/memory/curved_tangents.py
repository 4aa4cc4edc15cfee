"""Derivatives of the iterates with respect to the loss derivatives of rows.

Let Q_{t,s} be the response of iterate t to a shock in gradient s, x_i the rows, psi_i
their slopes, and D_i their curvatures (times n and the rows' weights). The strictly
lower triangular W is the response of a row's own predictor in a run without the row; it
is c_i W where a row has c_i times the average leverage. This module computes Z = W V,
with V the temporal modes of the slopes. Z solves

    sum_i c_i^2 D_ti Z_t = sum_{s<t,i} c_i D_ti x_i' Q_{t,s} x_i (V_s + c_i D_si Z_s).

With random signs r_i, the right hand side is the mean over the signs of
(X'(c D_t r))'u, where u is the tangent at t of all shocks X'(r (V_s + c D_s Z_s)) so
far. Neither Q nor W is formed; an update takes two products with X.
"""

from dataclasses import dataclass, replace
from typing import Any

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
    """Curvature D of rows at their predictors, times n and the rows' weights."""
    # (n_rows, n_outputs), or (n_rows, n_outputs, n_outputs) if outputs are coupled.
    curvature = problem.loss.curvature(problem.target[rows], predictor)
    weights = len(problem.target) * problem.row_weights[rows, :1]
    return curvature * weights.reshape(-1, *(1,) * (curvature.ndim - 1))


@dataclass(frozen=True)
class SignedRows:
    """Rows of X on working columns, their signs r, and their relative leverages c."""

    columns: Design
    signs: np.ndarray  # (n_rows, n_outputs, n_probes)
    scales: np.ndarray  # (n_rows,)
    probe: np.ndarray  # number of the sign vector of every tangent, (n_tangents,)
    # Degrees of freedom per row: less than one where rows are centred.
    degrees: float = 1.0

    def part(self, rows):
        """The signed rows in ``rows``, an index or a slice."""
        columns = self.columns.rows(rows)
        signs, scales = self.signs[rows], self.scales[rows]
        return replace(self, columns=columns, signs=signs, scales=scales)

    def sign_products(self):
        """X'r for the signs of every tangent, (n_working, n_outputs, n_tangents)."""
        n_rows, *shape = self.signs.shape
        sign_products = self.columns.t_dot(self.signs.reshape(n_rows, -1))
        return sign_products.reshape(len(sign_products), *shape)[:, :, self.probe]

    def curvature_products(self, D, tangents):
        """X'(c D r) and X'(D X tangents), both (n_working, n_outputs, n_tangents)."""
        # The first has every tangent, even if ``tangents`` is empty.
        columns, signs = self.columns, self.signs
        # Not zeros: the first product gives the precision and the order in memory.
        products: Any = 0.0
        (n_rows, n_outputs, n_probes), n_tangents = signs.shape, tangents.shape[2]
        n_vectors = n_probes + n_tangents
        flat = tangents.reshape(len(tangents), n_outputs * n_tangents)
        bytes_each = signs.itemsize * n_outputs * n_vectors
        for rows in blocks(n_rows, bytes_each, MEMORY_BYTES // 32):
            is_all = rows == slice(0, n_rows)
            block = columns if is_all else columns.rows(rows)
            scaled_signs = signs[rows] * self.scales[rows, None, None]
            shape = len(scaled_signs), n_outputs, n_tangents  # perhaps no tangents
            predictors = block.dot(flat).reshape(shape)
            vectors = np.concatenate([scaled_signs, predictors], axis=2)
            if D.ndim == 3:  # a matrix for every row: the loss couples the outputs
                D_vectors = D[rows] @ vectors
            else:
                D_vectors = D[rows][:, :, None] * vectors
            products = products + block.t_dot(D_vectors.reshape(len(D_vectors), -1))
        products = products.reshape(len(tangents), n_outputs, n_vectors)
        return products[:, :, self.probe], products[:, :, n_probes:].copy()

    def projection(self, D, curved_products):
        """The :class:`Projection` on X'(c D r), or on X'r where D is zero."""
        scales, n_coupled = self.scales, 1
        if D.ndim == 3:
            n_coupled = D.shape[1]
            total = np.einsum("n,nkk->", scales**2, D)[None]
            squares = np.einsum("n,nkl,nkl->", scales**3, D, D)[None]
        else:
            total, squares = scales**2 @ D, scales**3 @ D**2
        if (total > 0).all():
            return Projection(curved_products, self.degrees * total, squares / total)
        sign_total = np.full_like(total, self.degrees * scales.sum() * n_coupled)
        return Projection(self.sign_products(), sign_total, np.zeros_like(total))


@dataclass(frozen=True)
class Projection:
    """Estimates Z from tangents: their products with ``vectors``, over ``total``."""

    vectors: np.ndarray  # (n_working, n_outputs, n_tangents)
    total: np.ndarray  # (n_groups,)
    mean_curvature: np.ndarray  # the factor of Z in later shocks, (n_groups,)

    def estimates(self, tangents):
        """The estimate of Z from every tangent, (n_groups, n_tangents)."""
        products = einsum("jkc,jkc->kc", self.vectors, tangents)
        if len(self.total) < len(products):  # coupled outputs are one group
            products = products.sum(axis=0, keepdims=True)
        return products / self.total[:, None]


class CurvedTangents(Tangents):
    """The tangents of any loss, where updates take all rows."""

    # If the loss couples the outputs, they are one group; if not, each is a group.
    # ``shocks_of(V, Z, total)`` returns the factors of r and of D r in the shocks at a
    # gradient. Shapes: row_scales (n_rows,); temporal (n_updates, n_modes); signs
    # (n_rows, n_outputs, n_probes); at_points (n_updates, n_groups, n_modes), Z at
    # the points where gradients are taken.

    _on_set: SignedRows

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
        n_groups = 1 if points.problem.loss.is_coupled else n_outputs
        super().__init__(
            points.trajectory,
            temporal,
            np.full(temporal.shape[1], n_probes) if n_by_mode is None else n_by_mode,
            points.column_sets(signs.dtype),
            signs.dtype,
            n_outputs,
            n_groups * points.n_positions,
        )
        self._points, self._shocks_of, self._n_rows = points, shocks_of, len(signs)
        # The properties of rows that do not depend on the columns.
        self._signed = signs, row_scales.astype(signs.dtype), self._probe, degrees
        self.at_points = np.zeros_like(self.solution[1:])
        self.mean_curvature = np.zeros(self.at_points.shape[:2])

    def _on_columns(self, column_set):
        rows = SignedRows(column_set.columns, *self._signed)
        self._sign_products = rows.sign_products()
        return rows

    def take(self, step):
        """Estimate Z where the update begins, and apply the update to all tangents."""
        point, D = self._point(step), self._curvature(step.t)
        curved_products, change = self._on_set.curvature_products(D, point)
        projection = self._on_set.projection(D, curved_products)
        self._read(step.t, slice(None), projection.estimates(self._current))
        shocks = self._shocks(
            step.t, slice(None), projection, point, self._sign_products, curved_products
        )
        self._finish(step, (change - shocks) / self._n_rows)

    def _finish(self, step, change):
        """Apply a gradient step that led to a recorded iterate; at the last, read Z."""
        self._advance(step, change, self._coef[step.t + 1, self._index])
        last = len(self.temporal)
        if step.t + 1 == last:
            projection = self._projection_of(self._on_set, self._curvature(last))
            self._read(last, slice(None), projection.estimates(self._current))

    def _curvature(self, t):
        return self._points.curvature(t).astype(self._dtype)

    def _projection_of(self, rows, D):
        """The Projection of some rows, without a gradient step of the tangents."""
        curved_products, _ = rows.curvature_products(D, self._current[:, :, :0])
        return rows.projection(D, curved_products)

    def _shocks(self, t, groups, projection, point, sign_products, curved_products):
        """The shocks X'(r (V + c D Z)) of all tangents; Z is estimated at ``point``."""
        self.mean_curvature[t, groups] = projection.mean_curvature
        Z = projection.estimates(point) @ self._mixing
        slope_factor, curvature_factor = self._shocks_of(
            self.temporal[t], Z, projection.total
        )
        self.at_points[t, groups] = curvature_factor
        shocks = sign_products * slope_factor[self.mode].astype(self._dtype)
        shocks += curved_products * curvature_factor[:, self.mode].astype(self._dtype)
        return shocks


class BatchTangents(CurvedTangents):
    """Tangents where an update takes one batch, and Z is estimated from all rows."""

    # With I_s the batch of gradient s,
    #
    #     sum_i c_i^2 D_ti Z_t = sum_{s<t,i} c_i D_ti x_i' Q_{t,s} x_i
    #                            (V_s + [i in I_s] c_i D_si Z_s).

    def take(self, step):
        """Estimate Z from all rows, and apply the update of a batch to all tangents."""
        point, D, (batch,) = (
            self._point(step),
            self._curvature(step.t),
            step.update.batches,
        )
        projection = self._projection_of(self._on_set, D)
        # Only the rows of the batch have shocks that depend on Z.
        mean_curvature = len(batch) / len(D) * projection.mean_curvature
        projection = replace(projection, mean_curvature=mean_curvature)
        self._read(step.t, slice(None), projection.estimates(self._current))
        curved_products, change = self._on_set.part(batch).curvature_products(
            D[batch], point
        )
        shocks = self._shocks(
            step.t, slice(None), projection, point, self._sign_products, curved_products
        )
        self._finish(step, (change - shocks) / len(batch))


class PassTangents(CurvedTangents):
    """Tangents where an update is a pass, and the rows of each batch estimate Z."""

    # Groups are listed batch by batch: first those of the first batch of a pass.

    def __init__(self, points, *args, **kwargs):
        super().__init__(points, *args, **kwargs)
        self._fits = WeightedFits(points.problem)
        self._n_groups = self.solution.shape[1] // points.n_positions

    def take(self, step):
        """Apply the steps of a pass to all tangents, and estimate Z after it."""
        self._point(step)
        t, n_groups = step.t, self._n_groups
        coef = self._coef[t, :, :, None]
        parts = step.update.parts(self._fits, step.penalty, coef)
        for position, part in enumerate(parts):
            rows = self._on_set.part(part.rows)
            predictor = part.predictor[:, :, 0]
            D = curvature_at(self._points.problem, predictor, part.rows)
            D = D.astype(self._dtype)
            curved_products, change = rows.curvature_products(D, self._current)
            groups = slice(position * n_groups, (position + 1) * n_groups)
            change -= self._shocks(
                t,
                groups,
                rows.projection(D, curved_products),
                self._current,
                rows.sign_products(),
                curved_products,
            )
            self._advance(step, change / len(part.rows), part.following[:, :, 0])
        D = self._curvature(t + 1)
        for position, batch in enumerate(step.update.batches):
            projection = self._projection_of(self._on_set.part(batch), D[batch])
            groups = slice(position * n_groups, (position + 1) * n_groups)
            self._read(t + 1, groups, projection.estimates(self._current))


class UserTangents(CurvedTangents):
    """Tangents of a user's updates, which need not be affine maps."""

    # The run is repeated, since the derivative of an update needs its arguments.

    # How the last gradient and the last state move, from the start of a phase on.
    _earlier_change: tuple[np.ndarray, Any]

    def __init__(self, points, *args, **kwargs):
        super().__init__(points, *args, **kwargs)
        self._run = Iterates.at_rest(WeightedFits(points.problem), self._coef[0])

    def _advance(self, step, change, coef):
        update, penalty, state = step.update, step.penalty, self._run.state
        if step.restarts:
            state = State(state.current, state.current)
        arguments = update.arguments(self._run.fits, penalty, state)
        if penalty.curvature:
            change = change + penalty.smooth_gradient(self._current)
        if step.restarts:
            self._earlier_change = (
                change,
                map_arrays(
                    lambda part: np.zeros((*part.shape[:-1], self._current.shape[2])),
                    arguments.state,
                ),
            )
        earlier_change, state = self._earlier_change
        moves = Arguments(self._current, self._earlier, change, earlier_change, state)
        following, state = update.tangents(arguments, moves)
        following = penalty.prox_tangent(coef[:, :, None], update.step_size, following)
        self._earlier, self._current = self._current, following.astype(change.dtype)
        self._earlier_change = change, state
        self._run.take(step)
