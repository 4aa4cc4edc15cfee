"""A run at the points where its gradients are taken: slopes and curvatures there.

Updates may take all rows (:class:`GradientPoints`), one batch of rows
(:class:`BatchPoints`), or all rows in batches, one after the other
(:class:`PassPoints`). :func:`points_of` finds which of them a run is.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...optim.array_path import StoredPredictors
from ...optim.blocks import MEMORY_BYTES
from ...optim.fits import WeightedFits
from ...optim.problem import Problem
from ...optim.trajectory import Trajectory
from ..reader import Unreadable
from .curved_tangents import (
    BatchTangents,
    CurvedTangents,
    PassTangents,
    UserTangents,
    curvature_at,
)
from .modes import AlongRun, Modes, all_modes, modes_of
from .tangents import all_columns, column_sets


@dataclass(frozen=True)
class GradientPoints:
    """Derivatives of n times the weighted loss of rows where gradients are taken."""

    problem: Problem
    trajectory: Trajectory

    follower = CurvedTangents

    @property
    def n_positions(self):
        """Number of positions in a pass: rows may have a W by their position."""
        return 1

    @property
    def n_updates(self):
        return self.trajectory.n_updates

    @cached_property
    def predictor(self):
        """Linear predictors of the iterates; they are read several times."""
        predictor = self.trajectory.predictor
        if 8 * np.prod(predictor.shape) > MEMORY_BYTES // 8:
            return predictor
        return StoredPredictors(predictor.of_rows(slice(None)))

    @cached_property
    def _ahead(self):
        """How many steps beyond an iterate gradients are taken, and their origins."""
        steps = list(self.trajectory.updates())
        # The point is affine in the last two iterates, so that 1 and 0 give its weight.
        weights = [step.update.point(1.0, 0.0) - 1.0 for step in steps]
        ahead = np.array(weights, self.problem.design.dtype).reshape(-1, 1, 1)
        return ahead, np.array([step.before for step in steps], int)

    def at(self, t):
        """Linear predictors of all rows at the gradient of update t, or at the end."""
        predictor, (ahead, before) = self.predictor, self._ahead
        if t == len(ahead) or ahead[t] == 0:
            return predictor[t]
        return predictor[t] + ahead[t] * (predictor[t] - predictor[before[t]])

    def curvature(self, t):
        """Curvature of rows at the gradient of update t, times n and the weights."""
        return curvature_at(self.problem, self.at(t))

    def points(self, rows):
        """Predictors of some rows at all gradients, (n_updates, n_block, n_outputs)."""
        recorded = self.predictor.of_rows(rows)
        points, (ahead, before) = recorded[:-1], self._ahead
        if ahead.any():
            step = points - recorded[before]
            step *= ahead
            points = np.add(points, step, out=step)
        return points

    def slopes(self):
        """Minus the slopes of all rows at all gradients, an :class:`AlongRun`."""
        target, loss = self.problem.target, self.problem.loss
        weights = len(target) * self.problem.row_weights

        def slopes(rows):
            # Replicas come last where a loss takes several predictors of a row.
            predictor = np.moveaxis(self.points(rows), 0, 2)
            derivative = loss.derivative(target[rows, :, None], predictor)
            return np.moveaxis(derivative, 2, 0) * -weights[rows]

        return AlongRun((self.n_updates, *target.shape), slopes)

    def rows_of_gradients(self):
        """Mask of the rows of every gradient, (n_updates, n_rows) or (n_updates, 1)."""
        return np.ones((self.n_updates, 1), bool)

    def modes(self, accuracy):
        """The modes V whose W V is computed: those of the slopes."""
        return self.slope_modes(accuracy)

    def slope_modes(self, accuracy):
        """The modes of the slopes; all of them where ``accuracy`` is None."""
        if accuracy is None or not self.n_updates:
            return all_modes(self.slopes().of(slice(None)))
        return modes_of(self.slopes(), accuracy.kept, accuracy.floor)

    def column_sets(self, dtype):
        """The columns on which tangents live, as :class:`ColumnSet`, in order."""
        return column_sets(self.problem.design, self.trajectory, dtype)

    def tangents(self, *args, **kwargs):
        """The :class:`CurvedTangents` of these points, after the last update."""
        return self.trajectory.followed_by(self.follower(self, *args, **kwargs))

    def response_of(self, Z, spatial, iterates, rows):
        """W V of every row, times its parts of the modes, (n_iterates, n_rows).

        Shapes: Z (n_iterates, n_positions, n_modes); spatial (n_modes, n_rows).
        """
        return Z[:, 0] @ spatial

    def response_adjoint(self, change, spatial, iterates):
        """The transpose of :meth:`response_of`, (n_iterates, n_positions, n_modes)."""
        # ``change`` is that of all rows, (n_iterates, n_rows).
        return (change @ spatial.T)[:, None]


class UserPoints(GradientPoints):
    """Gradient points of updates of the user, which may look at all columns."""

    follower = UserTangents

    def column_sets(self, dtype):
        return all_columns(self.problem.design, self.n_updates, dtype)


class BatchPoints(GradientPoints):
    """Gradient points where every update takes one batch of rows, any batch."""

    # Rows that were in other batches have other slopes to take off, so all of W is
    # needed: its modes are the updates, of slopes that are zero out of the batch.

    follower = BatchTangents

    def rows_of_gradients(self):
        is_in_batch = np.zeros((self.n_updates, len(self.problem.target)), bool)
        for t, (rows,) in enumerate(self.trajectory.batches()):
            is_in_batch[t, rows] = True
        return is_in_batch

    def modes(self, accuracy):
        """One mode for every update, whatever the accuracy."""
        spatial = self.slopes().of(slice(None)) * self.rows_of_gradients()[:, :, None]
        return Modes(np.eye(len(spatial)), spatial, np.ones(len(spatial)))


class PassPoints(GradientPoints):
    """Gradient points where every update is a pass: all rows once, in batches."""

    # A row's slope is that before its batch, its W that of its position in the passes.

    follower = PassTangents

    @cached_property
    def _visits(self):
        return self.trajectory.followed_by(Visits(self.problem, self.trajectory))

    @property
    def n_positions(self):
        return int(self._visits.position.max()) + 1

    def points(self, rows):
        return self._visits.predictor[:, rows]

    def column_sets(self, dtype):
        """All columns: within a pass others may move than at its ends."""
        return all_columns(self.problem.design, self.n_updates, dtype)

    def response_of(self, Z, spatial, iterates, rows):
        position = self._visits.position[iterates, rows]
        Z_of_rows = Z[np.arange(len(Z))[:, None], position]
        return np.einsum("tim,mi->ti", Z_of_rows, spatial)

    def response_adjoint(self, change, spatial, iterates):
        n_positions, positions = self.n_positions, self._visits.position[iterates]
        sums = [
            [np.bincount(position, row * mode, n_positions) for mode in spatial]
            for row, position in zip(change, positions)
        ]
        shape = len(change), len(spatial), n_positions
        return np.moveaxis(np.reshape(sums, shape), 1, 2)


class Visits:
    """Predictors of rows when their batch was visited, and its number in the pass."""

    def __init__(self, problem, trajectory):
        self._fits, self._coef = WeightedFits(problem), trajectory.coef
        shape = trajectory.n_updates, *problem.target.shape
        self.predictor = np.empty(shape, trajectory.predictor.dtype)
        # In the pass that led to an iterate, (n_updates + 1, n_rows).
        self.position = np.zeros(trajectory.predictor.shape[:2], int)

    def take(self, step):
        """Go through the steps of a pass."""
        coef = self._coef[step.t, :, :, None]
        parts = step.update.parts(self._fits, step.penalty, coef)
        for number, part in enumerate(parts):
            self.predictor[step.t, part.rows] = part.predictor[:, :, 0]
            self.position[step.t + 1, part.rows] = number


def points_of(problem, trajectory):
    """The gradient points of a run, by the rows that its updates take."""
    # Unreadable if some updates take all rows and others batches, or if passes do not
    # take every row once.
    if not all(update.is_affine for update, _ in trajectory.first_updates()):
        return UserPoints(problem, trajectory)
    batches = trajectory.batches()
    n_batches = set(map(len, batches))
    if n_batches <= {0}:
        return GradientPoints(problem, trajectory)
    rows = np.arange(len(problem.target))
    if 0 not in n_batches and all(
        np.array_equal(np.sort(np.concatenate(batch)), rows) for batch in batches
    ):
        return PassPoints(problem, trajectory)
    if n_batches == {1}:
        return BatchPoints(problem, trajectory)
    raise Unreadable(
        "The memory matrix is read where every update takes all rows, or one batch, or "
        "all rows once, batch by batch."
    )
