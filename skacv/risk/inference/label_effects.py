"""Effect of the label of a row on its loss derivatives, in the run without that row.

With U the held-out predictors of a row and W the memory matrix of the loss, the slopes
of the row follow from its label y alone,

    psi_s = -l'(y, U_s + sum_{r<s} W_sr psi_r),

which for the recorded label gives the recorded slopes. Both labels, the same U: the
difference of the slopes says what would have been otherwise.
"""

from dataclasses import dataclass

import numpy as np

from ..memory.curved_run import CurvedRun
from ..memory.modes import AlongRun, modes_of
from .scores import shocks_of_scores, step_points

# How much of the slopes, of both labels, their modes may miss: what is taken from
# them is in every interval, so it should be less than the random signs miss.
MISSED, FLOOR = 1e-3, 0.05
# Slopes are known once no entry changes by as much as this.
CONVERGED = 1e-12
# Smaller modes of a family, beside the largest, are rounding.
RESOLUTION = 1e-10


@dataclass(frozen=True)
class LabelEffects:
    """A run of two labels, and what these do in it.

    Attributes
    ----------
    signs : ndarray of shape (n_rows, 1, n_probes)
        By which traces are read.
    held_out : ndarray of shape (n_updates + 1, n_rows)
        U where gradients are taken, and at the last iterate.
    jumps : ndarray of shape (n_updates + 1, n_rows)
        The slope of the second label less that of the first.
    """

    run: CurvedRun
    signs: np.ndarray
    held_out: np.ndarray
    jumps: np.ndarray

    @classmethod
    def of(cls, problem, trajectory, method, rng=None):
        """Read them from a run.

        Parameters
        ----------
        problem : Problem
            A problem with one output, whose loss has the two classes as its ``labels``.
        trajectory : Trajectory
        method : "exact" or int
            How traces are taken; an int is a number of random signs of the rows.
        rng : numpy Generator or RandomState
        """
        points = step_points(problem, trajectory)
        n_rows, n_updates = len(problem.target), points.n_updates
        run, basis = CurvedRun(points, np.ones(n_rows)), np.eye(n_updates)
        # Those of the other labels have modes of their own; slopes that rows have in
        # their batches alone, as many as there are updates.
        if n_updates and method != "exact" and points.taken().all():
            basis = modes_of(_slopes_of_labels(points), MISSED, FLOOR).temporal
        signs = run.probes(method, rng)
        memory = _memory_on(run, basis, signs)
        predictor = [*points.points(slice(None)), points.at(n_updates)]
        predictor = np.stack(predictor)[:, :, 0].astype(np.float64)
        loss, target = problem.loss, problem.target[:, 0]
        held_out = predictor - memory(-loss.derivative(target, predictor))
        first, second = (
            _fixed_point(memory, held_out, lambda z, y=label: -loss.derivative(y, z))
            for label in loss.labels
        )
        return cls(run, signs, held_out, second - first)

    def at_the_end(self, sums):
        """K^-1 of sums over rows, at the last iterate.

        Shapes: returned (n_sums,).

        Parameters
        ----------
        sums : ndarray of shape (n_updates + 1, n_sums)
            Sums of all gradients, and of the last iterate.
        """
        points, last = self.run.points, len(sums) - 1
        found = sums[-1] / points.curvature(last).sum()
        left, size, right = np.linalg.svd(sums[:-1], full_matrices=False)
        kept = size > RESOLUTION * size[:1]
        tangents = points.tangents(
            self.run.scales, left[:, kept], self.signs, shocks=shocks_of_scores
        )
        return found + tangents.solution[-1, 0] @ (size[kept, None] * right[kept])


def _memory_on(run, basis, signs):
    """W, from slopes at the gradients to gradients and the end, on a few modes.

    Returns
    -------
    callable
        A function of slopes of shape (n_updates + 1, n_rows); those at the end move
        nothing.
    """
    tangents = run.points.tangents(run.scales, basis, signs)
    response = np.concatenate([tangents.at_points[:, 0], tangents.solution[-1:, 0]])
    # From slopes to what they have of the modes, of rows that a gradient takes.
    inverse, taken = np.linalg.pinv(basis), run.points.taken()

    def of_slopes(slopes):
        return response @ (inverse @ (taken * slopes[:-1]))

    return of_slopes


def _fixed_point(memory, held_out, slopes_at):
    """The fixed point of the slopes, update by update.

    W is strictly lower triangular, so every round fixes at least one more update.
    """
    slopes = slopes_at(held_out)
    for _ in held_out:
        former = slopes
        slopes = slopes_at(held_out + memory(former))
        if np.abs(slopes - former).max() <= CONVERGED:
            break
    return slopes


def _slopes_of_labels(points):
    """Slopes that every row would have by both labels, as :class:`AlongRun`."""
    loss = points.problem.loss

    def slopes(rows):
        return -loss.derivative(np.array(loss.labels), points.points(rows))

    return AlongRun((points.n_updates, len(points.problem.target), 2), slopes)
