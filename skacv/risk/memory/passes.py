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
from .modes import N_PROBES, RiskEstimate, all_modes, is_number


def is_one_map(trajectory):
    """Whether all updates are the same linear pass through batches."""
    is_of_passes = all(update.n_batches for update, _ in trajectory.first_updates())
    if not (is_of_passes and trajectory.is_linear()):
        return False
    first = trajectory.phases[0]
    one, following = islice(first.schedule.updates(), 2)
    return one == following and all(
        phase.same_rule(first) for phase in trajectory.phases
    )


def risk_of_passes(problem, trajectory, rule, method, rng):
    """The RiskEstimate of a run of passes, from rows unseen by a preconditioner."""
    # A number of probes is one of random labels; there are no row scales.
    n_labels = method if is_number(method) else N_PROBES
    (n_rows, n_outputs), n_updates = problem.target.shape, trajectory.n_updates
    labels = random_signs((n_rows, n_labels), rng)
    rows_read = np.setdiff1d(np.arange(n_rows), trajectory.rows_seen())
    batches = trajectory.phases[0].first_update.batches
    batches = [np.intersect1d(batch, rows_read) for batch in batches]
    run = trajectory.followed_by(
        LabelledRun(problem, trajectory, labels, [b for b in batches if len(b)])
    )

    # Held-out residuals by all labels, and by all but one group of them.
    kept = label_groups(n_labels)
    scale = n_rows / (n_rows - 1) if rule.refits_intercept else 1.0
    residuals = np.empty((len(kept), n_updates + 1, n_rows, n_outputs))
    for k, some_labels in enumerate(kept):
        before = run.influence[:, :, some_labels].mean(axis=2)
        after = run.end_influence[:, :, some_labels].mean(axis=2)
        for number, rows in enumerate(run.batches):
            held_out = run.ended[:, rows].copy()
            if n_updates:
                response = np.concatenate([[0.0], -np.diff(before[:, number])])
                feedback = np.eye(n_updates) - toeplitz(response, np.zeros(n_updates))
                visited = run.visited[:, rows].reshape(n_updates, -1)
                e = solve_triangular(feedback, visited, lower=True, unit_diagonal=True)
                response = -np.diff(after[:, number])
                through = toeplitz(
                    response, np.r_[response[0], np.zeros(n_updates - 1)]
                )
                held_out[1:] += (through @ e).reshape(held_out[1:].shape)
            residuals[k][:, rows] = scale * held_out
    residuals = residuals[:, :, rows_read]

    # Noise of the self-influences adds to the squares; not more than all of them.
    weights = problem.row_weights[rows_read].astype(np.float64)
    weights = weights / weights.sum()
    paths = np.mean(residuals**2, axis=3) @ weights[:, 0]
    path, (bias, mc_se) = paths[0], jackknife(paths[0], paths[1:])
    share = 1 - np.divide(bias, path, out=np.zeros_like(bias), where=bias < path)
    E = residuals[0] * np.sqrt(len(rows_read) * weights)
    E *= np.sqrt(share)[:, None, None]
    modes = all_modes(E, resolution=np.sqrt(np.finfo(float).eps))
    return RiskEstimate.of(
        share * path,
        mc_se,
        modes.temporal,
        modes.spatial,
        weights,
        len(weights),
        n_probes=n_labels,
    )


class LabelledRun:
    """A run with random labels as further targets, and its residuals on all targets."""

    def __init__(self, problem, trajectory, labels, batches):
        n_labels, n_updates = labels.shape[1], trajectory.n_updates
        self.labels, self.batches = labels, batches
        self.target = np.concatenate([problem.target, -labels], axis=1)
        target = self.target.astype(problem.target.dtype)
        fits = WeightedFits(replace(problem, target=target))
        coef = np.pad(trajectory.coef[0], ((0, 0), (0, n_labels)))
        self.iterates = Iterates.at_rest(fits, coef)
        # Residuals before each row's batch, and after every pass: of the target, and on
        # average over batches of the labels, times these.
        self.visited = np.empty((n_updates, *problem.target.shape))
        self.ended = np.empty((n_updates + 1, *problem.target.shape))
        self.influence = np.empty((n_updates, len(batches), n_labels))
        self.end_influence = np.empty((n_updates + 1, len(batches), n_labels))
        self._read_end(0)

    def take(self, step):
        """Move the run on by a pass."""
        self.iterates.take(step)
        visited = self.iterates.state.visited
        self._read(visited, self.visited[step.t], self.influence[step.t])
        self._read_end(step.t + 1)

    def _read_end(self, t):
        predictor = self.iterates.fits.predictor_at(self.iterates.state.current)
        self._read(predictor, self.ended[t], self.end_influence[t])

    def _read(self, predictor, residuals, influence):
        """Write the residuals of the targets, and the influences, into arrays."""
        all_residuals, n_targets = predictor[:, :, 0] - self.target, residuals.shape[1]
        residuals[:] = all_residuals[:, :n_targets]
        signed = all_residuals[:, n_targets:] * self.labels
        influence[:] = [signed[rows].mean(axis=0) for rows in self.batches]
