"""Derivatives of the iterates with respect to the loss derivatives of rows.

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

from dataclasses import replace

import numpy as np

from ...optim.fits import WeightedFits
from ...optim.run import Iterates
from ...optim.user import Arguments, no_move
from .signed_rows import SignedRows, curvature_at
from .tangents import Tangents


def shocks_of_w(temporal, follows, total):
    """The shocks r (V + c D Z), by which W V is found.

    Parameters
    ----------
    temporal : ndarray of shape (n_modes,)
        V at a gradient.
    follows : ndarray of shape (n_groups, n_modes)
        Z there.
    total : ndarray of shape (n_groups,)

    Returns
    -------
    plain : ndarray of shape (n_modes,)
        What the signs are multiplied by.
    bent : ndarray of shape (n_groups, n_modes)
        What signs times the curvature are multiplied by.
    """
    return temporal, follows


class CurvedTangents(Tangents):
    """The tangents of any loss.

    Parameters
    ----------
    row_scales : ndarray of shape (n_rows,)
        c.
    temporal : ndarray of shape (n_updates, n_modes)
        V.
    signs : ndarray of shape (n_rows, n_outputs, n_probes)
    n_by_mode : ndarray of shape (n_modes,), default=None
        As of :class:`Tangents`; None is all probes for every mode.
    shocks : callable
        :func:`shocks_of_w`, or another of its kind.
    degrees : float
        Degrees of freedom of a row, as of :class:`SignedRows`.

    Attributes
    ----------
    solution, responses
        As of :class:`Tangents`. Outputs that the loss couples are one group, others a
        group each, with a W of their own.
    at_points : ndarray of shape (n_updates, n_groups, n_modes)
        Z at the points where the gradients are taken.
    mean_curvature : ndarray of shape (n_updates, n_groups)
        The curvature that Z is fed back by, on average as it is read.
    """

    def __init__(
        self,
        points,
        row_scales,
        temporal,
        signs,
        n_by_mode=None,
        shocks=shocks_of_w,
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
        self._points, self._shocks_of, self._n_rows = points, shocks, len(signs)
        # What rows have on any columns.
        self._signed = signs, row_scales.astype(signs.dtype), self._probe, degrees
        self.at_points = np.zeros_like(self.solution[1:])
        self.mean_curvature = np.zeros(self.at_points.shape[:2])

    def _rows_on(self, following):
        rows = SignedRows(following.columns, *self._signed)
        self._source = rows.source()
        return rows

    def _take(self, taken, point):
        t, bend = taken.t, self._bend(taken.t)
        bent, change = self._rows.pulled(bend, point)
        reading = self._rows.reading(bend, bent)
        self._note(t, slice(None), reading.of(self._current))
        change -= self._shocks(t, slice(None), reading, point, self._source, bent)
        self._step(taken, change / self._n_rows)

    def _step(self, taken, change):
        """One gradient step on the tangents, that led to a recorded iterate."""
        self._advance(taken, change, self._coef[taken.t + 1, self._index])
        last = len(self.temporal)
        if taken.t + 1 == last:
            reading = self._reading_of(self._rows, self._bend(last))
            self._note(last, slice(None), reading.of(self._current))

    def _bend(self, t):
        return self._points.curvature(t).astype(self._dtype)

    def _reading_of(self, rows, bend):
        """How Z is read by some rows; no tangent is moved."""
        bent, _ = rows.pulled(bend, self._current[:, :, :0])
        return rows.reading(bend, bent)

    def _shocks(self, t, groups, reading, point, source, bent):
        """All shocks at a gradient, after Z there is read: X'(r (V + c D Z))."""
        self.mean_curvature[t, groups] = reading.mean_curvature
        follows = reading.of(point) @ self._mixing
        plain, through = self._shocks_of(self.temporal[t], follows, reading.total)
        self.at_points[t, groups] = through
        found = source * plain[self.mode].astype(self._dtype)
        found += bent * through[:, self.mode].astype(self._dtype)
        return found


class BatchTangents(CurvedTangents):
    """The same where an update takes one batch: what it shocks, all rows read.

    With I_s the batch of gradient s,

        sum_i c_i^2 D_ti Z_t = sum_{s<t,i} c_i D_ti x_i' Q_{t,s} x_i
                               (V_s + [i in I_s] c_i D_si Z_s).
    """

    def _take(self, taken, point):
        t, bend, (batch,) = taken.t, self._bend(taken.t), taken.update.batches
        reading = self._reading_of(self._rows, bend)
        # Only the batch feeds back.
        share = len(batch) / len(bend)
        reading = replace(reading, mean_curvature=share * reading.mean_curvature)
        self._note(t, slice(None), reading.of(self._current))
        bent, change = self._rows.some(batch).pulled(bend[batch], point)
        change -= self._shocks(t, slice(None), reading, point, self._source, bent)
        self._step(taken, change / len(batch))


class PassTangents(CurvedTangents):
    """The same where an update is a pass through batches, each read by its own rows.

    A row is shocked once in a pass, when its batch is visited, and read there and at
    the end of the pass. Groups are those of the first batch of a pass, then those of
    the second, and so on.
    """

    def __init__(self, points, *args, **kwargs):
        super().__init__(points, *args, **kwargs)
        self._fits = WeightedFits(points.problem)
        self._n_each = self.solution.shape[1] // points.n_positions

    def _groups(self, position):
        return slice(position * self._n_each, (position + 1) * self._n_each)

    def _take(self, taken, point):
        coef = self._coef[taken.t, :, :, None]
        parts = taken.update.parts(self._fits, taken.penalty, coef)
        for position, part in enumerate(parts):
            self._visit(taken, position, part)
        bend = self._bend(taken.t + 1)
        for position, batch in enumerate(taken.update.batches):
            reading = self._reading_of(self._rows.some(batch), bend[batch])
            self._note(taken.t + 1, self._groups(position), reading.of(self._current))

    def _visit(self, taken, position, part):
        """Move the tangents on by the step on one batch."""
        rows = self._rows.some(part.rows)
        bend = curvature_at(self._points.problem, part.predictor[:, :, 0], part.rows)
        bend = bend.astype(self._dtype)
        bent, change = rows.pulled(bend, self._current)
        reading = rows.reading(bend, bent)
        change -= self._shocks(
            taken.t, self._groups(position), reading, self._current, rows.source(), bent
        )
        self._advance(taken, change / len(part.rows), part.following[:, :, 0])


class UserTangents(CurvedTangents):
    """The same of updates of the user's own, which move by more than affine maps.

    The run is followed once more for what its updates are called with.
    """

    def __init__(self, points, *args, **kwargs):
        super().__init__(points, *args, **kwargs)
        self._run = Iterates.at_rest(WeightedFits(points.problem), self._coef[0])
        self._former = None

    def _advance(self, taken, change, following):
        update, penalty = taken.update, taken.penalty
        at = update.arguments(self._run.fits, penalty, self._run.state_before(taken))
        if penalty.curvature:
            change = change + penalty.smooth_gradient(self._current)
        if taken.restarts:
            self._former = change, no_move(at.state, self._current.shape[2])
        former, state = self._former
        moves = Arguments(self._current, self._earlier, change, former, state)
        ahead, state = update.moved(at, moves)
        moved = penalty.prox_tangent(following[:, :, None], update.step_size, ahead)
        self._earlier, self._current = self._current, moved.astype(change.dtype)
        self._former = change, state
        self._run.take(taken)
