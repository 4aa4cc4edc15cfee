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

from dataclasses import replace
from itertools import islice

import numpy as np
from scipy.linalg import solve_triangular, toeplitz

from ...optim.fits import WeightedFits
from ...optim.run import Iterates
from ..random_labels import jackknife, label_groups, random_signs
from .estimate import RiskEstimate
from .modes import all_modes
from .traces import is_number

# Random labels.
N_LABELS = 40
# Modes of the residuals with a smaller share of the largest are rounding.
RESOLUTION = 1e-7


def can_read(problem, trajectory):
    """Whether it is the squared error and one linear pass, the same all along."""
    is_of_passes = all(update.n_batches for update, _ in trajectory.first_updates())
    if not (problem.loss.is_quadratic and is_of_passes and trajectory.is_linear()):
        return False
    first = trajectory.phases[0]
    one, other = islice(first.schedule.updates(), 2)
    return one == other and all(phase.same_rule(first) for phase in trajectory.phases)


def estimate_risk(problem, trajectory, refit, method, row_scales, rng):
    """The RiskEstimate of a run; arguments as of :func:`.memory_matrix.estimate_risk`.

    A number of probes is one of random labels. It is read from rows that no
    preconditioner was made from, without row scales.
    """
    n_labels = method if is_number(method) else N_LABELS
    n_rows = len(problem.target)
    labels = random_signs((n_rows, n_labels), rng)
    others = np.setdiff1d(np.arange(n_rows), trajectory.rows_seen())
    batches = trajectory.phases[0].first_update.batches
    batches = [np.intersect1d(rows, others) for rows in batches]
    batches = [rows for rows in batches if len(rows)]
    side_runs = LabelledRun(problem, trajectory, labels, batches)
    trajectory.followed_by(side_runs)
    scale = n_rows / (n_rows - 1) if refit.refits_intercept else 1.0
    kept = label_groups(n_labels)
    found = np.empty((len(kept), *side_runs.ended.shape))
    for number, rows in enumerate(batches):
        own = side_runs.visited[:, rows], side_runs.ended[:, rows]
        for k, some in enumerate(kept):
            influences = [
                part[:, number, some].mean(axis=1)
                for part in (side_runs.influence, side_runs.end_influence)
            ]
            found[k][:, rows] = scale * _held_out(*own, *influences)
    return _estimate(problem, found[:, :, others], others, n_labels)


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
        coef = np.pad(trajectory.coef[0], ((0, 0), (0, n_labels)))
        self.target, self.iterates = (
            target,
            Iterates.at_rest(WeightedFits(beside), coef),
        )
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
    modes = all_modes(weighted, RESOLUTION)
    factors, path = (modes.temporal, modes.spatial), share * paths[0]
    return RiskEstimate.of(
        path, mc_se, factors, weights, len(weights), n_probes=n_labels
    )
