"""What debiases an iterate, row by row: n K^-1 Psi."""

import numpy as np

from ..memory.curved_run import ACCURACY, RESOLUTION, CurvedRun
from ..memory.curved_tangents import ScoreTangents, SignProbes
from ..memory.gradient_points import GradientPoints
from ..memory.modes import all_modes, modes_of
from ..random_labels import random_signs
from ..reader import Unreadable

# Random signs of the rows.
N_PROBES = 40


def scores_at_the_end(problem, trajectory, method=N_PROBES, rng=None):
    """n K^-1 Psi at the last iterate of a run, K as in the memory matrix of its loss.

    With Psi the slopes of all rows at all gradients, and at the end those of the last
    iterate. With the squared error these are the residuals that rows would leave if
    they were left out, E of Bellec & Tan (2024).

    Parameters
    ----------
    problem : Problem
    trajectory : Trajectory
        A run that :class:`~skacv.risk.memory.curved.CurvedMemoryMatrix` can read.
    method : "exact" or int
        How traces are taken; an int is a number of random signs of the rows.
    rng : numpy Generator or RandomState

    Returns
    -------
    ndarray of shape (n_rows, n_outputs)

    Raises
    ------
    Unreadable
        If no row has a curvature at the last iterate.
    """
    points, last = GradientPoints.of(problem, trajectory), trajectory.n_updates
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
    """What follows at the end from the slopes at all gradients."""
    points, target = run.points, run.problem.target
    if method == "exact":
        modes, signs = all_modes(points.slopes(), RESOLUTION), run.complete_basis()
    else:
        modes = modes_of(points.slopes(), ACCURACY.kept, ACCURACY.floor)
        shape = *target.shape, method
        signs = random_signs(shape, rng).astype(np.float32)
    n_modes = modes.temporal.shape[1]
    probes = SignProbes(signs, np.full(n_modes, signs.shape[2]))
    tangents = ScoreTangents(points, run.scales, modes.temporal, probes)
    points.trajectory.followed_by(tangents)
    shares = np.broadcast_to(tangents.solution[-1], (target.shape[1], n_modes))
    return np.einsum("ok,kio->io", shares, modes.spatial)
