"""The risk of every iterate where an iterate is a pass through batches.

Batches are the same in every pass, so a pass is always the same linear map, and
leaving row i out is a recursion at the grain of passes. With v_i^s the residual of
the row just before its batch in pass s + 1, r_i^t that after t passes, and e, h
those of the run that never takes the gradient of the row,

    e_i^s = v_i^s + sum_{j=1}^{s} (c_i^{j-1} - c_i^j) e_i^{s-j},
    h_i^t = r_i^t + sum_{j=1}^{t} (b_i^{j-1} - b_i^j) e_i^{t-j},

where c_i^m, b_i^m are v_i^m, r_i^m of the run on the target -1 in row i and 0
elsewhere (c_i^0 = b_i^0 = 1). As in the memory matrix (Bellec & Tan 2024), which is
the case of a single batch, their means over rows serve all rows: here of each batch,
read from random labels that the run carries as further targets.
"""

from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from scipy.linalg import solve_triangular, toeplitz

from ...optim.fits import Fits
from ...optim.run import Iterates
from ..random_labels import jackknife, label_groups, random_signs
from ..reader import Unreadable, read
from .memory_matrix import RiskEstimate

# Random labels.
N_LABELS = 40
# Modes of the residuals with a smaller share of the largest are rounding.
RESOLUTION = 1e-7


@dataclass(frozen=True)
class PassRisk:
    """Reader of the risk of passes, from random labels.

    Parameters
    ----------
    n_labels : int
        Random labels that the self-influence of rows is read from.
    rng : numpy Generator or RandomState
        Draws the labels.
    """

    n_labels: int = N_LABELS
    rng: object = None

    def requires(self, problem, trajectory):
        """The squared error and one linear pass, the same all along."""
        if not problem.loss.is_quadratic:
            raise Unreadable(
                "The risk of passes is read with the squared error only, not with "
                f"{type(problem.loss).__name__}."
            )
        if not all(update.n_batches for update, _ in trajectory.first_updates()):
            raise Unreadable(
                "The risk of passes is read where every iterate is a pass through "
                "batches of rows."
            )
        if not trajectory.is_linear():
            raise Unreadable(
                "The risk of passes is read where updates are linear: without a prox."
            )
        first = trajectory.phases[0]
        same = all(phase.same_rule(first) for phase in trajectory.phases)
        one, other = islice(first.schedule.updates(), 2)
        if not same or one != other:
            raise Unreadable(
                "The risk of passes is read where every pass takes the same batches, "
                "in the same order, under the same penalty."
            )

    def read(self, problem, trajectory, refit):
        """The RiskEstimate of a run."""
        n_rows = len(problem.target)
        labels = random_signs((n_rows, self.n_labels), self.rng)
        others = np.setdiff1d(np.arange(n_rows), trajectory.rows_seen())
        batches = trajectory.phases[0].first_update.batches
        batches = [np.intersect1d(rows, others) for rows in batches]
        batches = [rows for rows in batches if len(rows)]
        carried = LabelledRun(problem, trajectory, labels, batches)
        trajectory.followed_by(carried)
        scale = n_rows / (n_rows - 1) if refit.recentres else 1.0
        kept = label_groups(self.n_labels)
        found = np.empty((len(kept), *carried.ended.shape))
        for number, rows in enumerate(batches):
            own = carried.visited[:, rows], carried.ended[:, rows]
            for k, some in enumerate(kept):
                influences = [
                    part[:, number, some].mean(axis=1)
                    for part in (carried.influence, carried.end_influence)
                ]
                found[k][:, rows] = scale * _held_out(*own, *influences)
        return _estimate(problem, found[:, :, others], others, self.n_labels)


def estimate_risk(problem, trajectory, refit, **settings):
    """Estimate the risk of every iterate of passes through fixed batches.

    Parameters
    ----------
    problem : Problem
        With the squared error as loss.
    trajectory : Trajectory
        Its passes are linear, in the same batches and with the same penalty.
    refit : Refit
        What a fit without some rows would be.
    **settings
        ``n_labels`` and ``rng`` of :class:`PassRisk`.

    Returns
    -------
    RiskEstimate
        It is read from rows that no preconditioner was made from, without row
        scales.

    Raises
    ------
    Unreadable
        If random labels do not say what rows left out of the run would cost.
    """
    return read(PassRisk(**settings), problem, trajectory, refit)


class LabelledRun:
    """The run again, with random labels as further targets, and its residuals of both.

    Attributes
    ----------
    visited : ndarray of shape (n_updates, n_rows, n_targets)
        Residuals just before each row's batch.
    ended : ndarray of shape (n_updates + 1, n_rows, n_targets)
        Residuals after every pass.
    influence, end_influence : ndarray of shape (..., n_batches, n_labels)
        Means over the rows of a batch of labels times their residuals, before the
        batch and after every pass.
    """

    def __init__(self, problem, trajectory, labels, batches):
        (n_rows, n_targets), n_labels = problem.target.shape, labels.shape[1]
        self.labels, self.batches, self.n_targets = labels, batches, n_targets
        target = np.concatenate([problem.target, -labels], axis=1)
        beside = replace(problem, target=target.astype(problem.target.dtype))
        start = trajectory.coef[0]
        zeros = np.zeros((len(start), n_labels), start.dtype)
        coef = np.concatenate([start, zeros], axis=1)
        self.target, self.iterates = target, Iterates.at_rest(Fits(beside), coef)
        n_updates = trajectory.n_updates
        self.visited = np.empty((n_updates, n_rows, n_targets))
        self.ended = np.empty((n_updates + 1, n_rows, n_targets))
        self.influence = np.empty((n_updates, len(batches), n_labels))
        self.end_influence = np.empty((n_updates + 1, len(batches), n_labels))
        self._note(self._predictor(), self.ended[0], self.end_influence[0])

    def take(self, taken):
        """Move the run on by a pass."""
        self.iterates.take(taken)
        t, state = taken.t, self.iterates.state
        self._note(state.visited, self.visited[t], self.influence[t])
        self._note(self._predictor(), self.ended[t + 1], self.end_influence[t + 1])

    def _predictor(self):
        return self.iterates.fits.predictor_at(self.iterates.state.current)

    def _note(self, predictor, residuals, influence):
        found = predictor[:, :, 0] - self.target
        residuals[:] = found[:, : self.n_targets]
        signed = found[:, self.n_targets :] * self.labels
        influence[:] = [signed[rows].mean(axis=0) for rows in self.batches]


def _held_out(visited, ended, influence, end_influence):
    """Held-out residuals (n_iterates, n_rows, n_targets) by self-influences."""
    n_updates = len(visited)
    if not n_updates:
        return ended
    response = np.concatenate([[0.0], -np.diff(influence)])
    feedback = np.eye(n_updates) - toeplitz(response, np.zeros(n_updates))
    flat = visited.reshape(n_updates, -1)
    held_out = solve_triangular(feedback, flat, lower=True, unit_diagonal=True)
    response = -np.diff(end_influence)
    through = toeplitz(response, np.r_[response[0], np.zeros(n_updates - 1)])
    found = ended.copy()
    found[1:] += (through @ held_out).reshape(visited.shape)
    return found


def _estimate(problem, found, others, n_labels):
    """The estimate, from residuals by all labels and by all but each group."""
    weights = problem.row_weights[others].astype(np.float64)
    weights = weights / weights.sum()
    paths = np.mean(found**2, axis=3) @ weights[:, 0]
    bias, mc_se = jackknife(paths[0], paths[1:])
    # Noise of the self-influences adds to the squares; not more than all of them.
    share = 1 - np.divide(
        bias, paths[0], out=np.zeros_like(bias), where=bias < paths[0]
    )
    weighted = found[0] * np.sqrt(len(others) * weights)
    weighted *= np.sqrt(share)[:, None, None]
    left, size, right = np.linalg.svd(
        weighted.reshape(len(weighted), -1), full_matrices=False
    )
    kept = size > RESOLUTION * max(size[0], np.finfo(float).tiny)
    factors = left[:, kept] * size[kept], right[kept].reshape(-1, *found.shape[2:])
    return RiskEstimate.of(share * paths[0], mc_se, factors, weights, n_probes=n_labels)
