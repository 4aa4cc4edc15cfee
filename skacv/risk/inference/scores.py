"""Scores that debias an iterate: n K^-1 Psi, one for each row."""

from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from ...optim.fits import WeightedFits
from ...optim.trajectory import Trajectory
from ...optim.updates import Pass
from ..memory.curved_run import ACCURACY, CurvedRun
from ..memory.gradient_points import BatchPoints, points_of
from ..reader import Unreadable

# Random signs of the rows.
N_PROBES = 40


def scores_at_the_end(problem, trajectory, method=N_PROBES, rng=None):
    """n K^-1 Psi at the last iterate of a run, K as in the memory matrix of its loss.

    With Psi the slopes of all rows at all gradients, and at the end those of the last
    iterate. With the squared error these are the residuals that rows would leave if
    they were left out, E of Bellec & Tan (2024).

    Shapes: returned (n_rows, n_outputs).

    Parameters
    ----------
    trajectory : Trajectory
        A run that :class:`~skacv.risk.memory.curved_run.CurvedRun` can read.
    method : "exact" or int
        How traces are taken; an int is a number of random signs of the rows.
    rng : numpy Generator or RandomState

    Raises
    ------
    Unreadable
        If no row has a curvature at the last iterate.
    """
    points = step_points(problem, trajectory)
    last = points.n_updates
    target, at_end = problem.target, points.at(last)
    slopes = -problem.loss.derivative(target, at_end) * len(target)
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
    found = slopes / total
    if last:
        found += _followed(CurvedRun(points, np.ones(len(target))), method, rng)
    return len(target) * found


def _followed(run, method, rng):
    """The final response to the slopes at all gradients."""
    points, target = run.points, run.problem.target
    modes = points.slope_modes(None if method == "exact" else ACCURACY)
    signs = run.probes(method, rng)
    tangents = points.tangents(
        run.scales, modes.temporal, signs, shocks=shocks_of_scores
    )
    shape = target.shape[1], len(modes.spatial)
    shares = np.broadcast_to(tangents.solution[-1], shape)
    return np.einsum("ok,kio->io", shares, modes.spatial)


def shocks_of_scores(temporal, follows, total):
    """The shocks r D y of :class:`CurvedTangents`, with y = K^-1 V.

    sum_i D_ti y_t = V_t + sum_s sum_i D_ti x_i'Q_{t,s} x_i D_si y_s: ``follows`` is the
    second part over sum_i D_ti, ``total``. All rows have the same leverage.
    """
    return np.zeros_like(temporal), follows + temporal / total[:, None]


@dataclass(frozen=True)
class SingleBatches:
    """A schedule of passes, every step an update of its own.

    Attributes
    ----------
    schedule : object
        Its updates are passes.
    """

    schedule: object

    def updates(self):
        for taken in self.schedule.updates():
            for batch in taken.batches:
                yield Pass(taken.update, (batch,))


class Steps:
    """The coefficients after every step on a batch, from the start on."""

    def __init__(self, problem, trajectory):
        self._fits, self._starts = WeightedFits(problem), trajectory.coef
        self.coef = [trajectory.coef[0]]

    def take(self, taken):
        """Go through the steps of a pass."""
        start = self._starts[taken.t, :, :, None]
        parts = taken.update.parts(self._fits, taken.penalty, start)
        self.coef += [part.following[:, :, 0] for part in parts]


def step_points(problem, trajectory):
    """Gradient points of a run, every step on a batch an update of its own."""
    if trajectory.n_batches():
        return BatchPoints(problem, steps_of(problem, trajectory))
    return points_of(problem, trajectory)


def steps_of(problem, trajectory):
    """A run of passes as a run whose every update takes one batch.

    Parameters
    ----------
    trajectory : Trajectory
        Its updates are passes.
    """
    coef = np.array(trajectory.followed_by(Steps(problem, trajectory)).coef)
    n_steps, phases = map(len, trajectory.batches()), []
    for phase in trajectory.phases:
        n_updates = sum(islice(n_steps, phase.n_updates))
        schedule = SingleBatches(phase.schedule)
        phases.append(replace(phase, schedule=schedule, n_updates=n_updates))
    return Trajectory.recorded(problem, coef, phases)
