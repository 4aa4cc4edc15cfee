"""Scores that debias an iterate: n K^-1 Psi, one for each row."""

from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from ...optim.fits import WeightedFits
from ...optim.trajectory import Trajectory
from ...optim.updates import Pass
from ..memory.curved_run import ACCURACY, CurvedRun
from ..memory.gradient_points import BatchPoints, points_of
from ..memory.modes import N_PROBES
from ..reader import Unreadable


def scores_at_the_end(problem, trajectory, method=N_PROBES, rng=None):
    """n K^-1 Psi at the last iterate, (n_rows, n_outputs)."""
    # K is that of the memory matrix, and Psi are the slopes of all rows, at all
    # gradients and at the end. With the squared error these are E of Bellec & Tan
    # (2024). Unreadable without any curvature at the end.
    points = step_points(problem, trajectory)
    target, last = problem.target, points.n_updates
    slopes = -problem.loss.derivative(target, points.at(last)) * len(target)
    slopes *= problem.row_weights
    curvature = points.curvature(last)
    if problem.loss.is_coupled:
        total = np.full(target.shape[1], np.einsum("nkk->", curvature))
    else:
        total = curvature.sum(axis=0)
    if not (total > 0).all():
        raise Unreadable(
            f"{type(problem.loss).__name__} has no curvature at this iterate, on any "
            "row: it cannot be debiased there."
        )
    scores = slopes / total
    if last:
        # The final response to the slopes at all gradients.
        run = CurvedRun(points, np.ones(len(target)))
        modes = points.slope_modes(None if method == "exact" else ACCURACY)
        signs = run.signs(method, rng)
        tangents = points.tangents(
            run.scales, modes.temporal, signs, shocks_of=shocks_of_scores
        )
        shape = target.shape[1], len(modes.spatial)
        response = np.broadcast_to(tangents.solution[-1], shape)
        scores += np.einsum("ok,kio->io", response, modes.spatial)
    return len(target) * scores


def shocks_of_scores(temporal, Z, total):
    """Factors of r and D r in the shocks r D y of y = K^-1 V, as in CurvedTangents."""
    # sum_i D_ti y_t = V_t + sum_s sum_i D_ti x_i'Q_{t,s} x_i D_si y_s: Z is the second
    # part over sum_i D_ti, ``total``. All rows have the same leverage.
    return np.zeros_like(temporal), Z + temporal / total[:, None]


@dataclass(frozen=True)
class SingleBatches:
    """A schedule of passes in which every step on a batch is an update."""

    schedule: Any  # of passes

    def updates(self):
        for update in self.schedule.updates():
            for batch in update.batches:
                yield Pass(update.update, (batch,))


class Steps:
    """The coefficients after every step on a batch, from the start on."""

    def __init__(self, problem, trajectory):
        self._fits, self._starts = WeightedFits(problem), trajectory.coef
        self.coef = [trajectory.coef[0]]

    def take(self, step):
        """Go through the steps of a pass."""
        start = self._starts[step.t, :, :, None]
        parts = step.update.parts(self._fits, step.penalty, start)
        self.coef += [part.following[:, :, 0] for part in parts]


def step_points(problem, trajectory):
    """Gradient points of a run in which every step on a batch is an update."""
    if not trajectory.n_batches():
        return points_of(problem, trajectory)
    coef = np.array(trajectory.followed_by(Steps(problem, trajectory)).coef)
    n_steps, phases = map(len, trajectory.batches()), []
    for phase in trajectory.phases:
        n_updates = sum(islice(n_steps, phase.n_updates))
        schedule = SingleBatches(phase.schedule)
        phases.append(replace(phase, schedule=schedule, n_updates=n_updates))
    return BatchPoints(problem, Trajectory.recorded(problem, coef, phases))
