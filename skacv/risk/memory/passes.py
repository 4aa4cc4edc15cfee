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
read from random labels that the run carries beside the targets.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular, toeplitz

from ...optim.run import batch_updates
from ..random_labels import jackknife, label_groups, random_signs
from .memory_matrix import RiskEstimate, standard_error_over_rows

# Random labels.
N_LABELS = 40
# Modes of the residuals with a smaller share of the largest are rounding.
RESOLUTION = 1e-7


def estimate_risk(problem, trajectory, *, fit_intercept, n_labels, rng):
    """Estimate the risk of every iterate of passes through fixed batches.

    Parameters
    ----------
    problem : Problem
        With the squared error as loss.
    trajectory : Trajectory
        Of linear updates in the same batches, with the same penalty, all along.
    fit_intercept : bool
        Whether the design and the target were centred by their means.
    n_labels : int
        Random labels that the memories of rows are read from.
    rng : numpy Generator or RandomState

    Returns
    -------
    RiskEstimate
        Of the rows that no preconditioner was made from, without row scales.
    """
    n_rows = len(problem.target)
    labels = random_signs((n_rows, n_labels), rng)
    others = np.setdiff1d(np.arange(n_rows), trajectory.rows_seen())
    batches = next(iter(trajectory.phases[0].schedule.steps())).batches
    batches = [np.intersect1d(rows, others) for rows in batches]
    batches = [rows for rows in batches if len(rows)]
    carried = _carried(problem, trajectory, labels, batches)
    scale = n_rows / (n_rows - 1) if fit_intercept else 1.0
    kept = label_groups(n_labels)
    found = np.empty((len(kept), *carried.ended.shape))
    for number, rows in enumerate(batches):
        own = carried.visited[:, rows], carried.ended[:, rows]
        for k, some in enumerate(kept):
            memories = [
                part[:, number, some].mean(axis=1)
                for part in (carried.memory, carried.end_memory)
            ]
            found[k][:, rows] = scale * _held_out(*own, *memories)
    return _estimate(problem, found[:, :, others], others, n_labels)


class Carried(NamedTuple):
    """What the run says of the targets and of the labels beside them.

    Attributes
    ----------
    visited : ndarray of shape (n_updates, n_rows, n_targets)
        Residuals just before each row's batch.
    ended : ndarray of shape (n_updates + 1, n_rows, n_targets)
        After every pass.
    memory, end_memory : ndarray of shape (..., n_batches, n_labels)
        Means over the rows of a batch of labels times their residuals, before the
        batch and after every pass.
    """

    visited: np.ndarray
    ended: np.ndarray
    memory: np.ndarray
    end_memory: np.ndarray


def _carried(problem, trajectory, labels, batches):
    """Run again, with the labels beside the targets."""
    (n_rows, n_targets), n_updates = problem.target.shape, trajectory.n_updates
    target = np.concatenate([problem.target, -labels], axis=1)
    beside = replace(problem, target=target.astype(problem.target.dtype))
    start = trajectory.coef[0]
    coef = np.concatenate([start, np.zeros((len(start), labels.shape[1]))], axis=1)
    coef = coef.astype(start.dtype)
    found = Carried(
        np.empty((n_updates, n_rows, n_targets)),
        np.empty((n_updates + 1, n_rows, n_targets)),
        np.empty((n_updates, len(batches), labels.shape[1])),
        np.empty((n_updates + 1, len(batches), labels.shape[1])),
    )

    def memories(residuals):
        signed = residuals[:, n_targets:] * labels
        return [signed[rows].mean(axis=0) for rows in batches]

    ended = problem.design.dot(coef) - target
    found.ended[0], found.end_memory[0] = ended[:, :n_targets], memories(ended)
    for t, _, step, penalty in trajectory.updates():
        visited = np.empty_like(target)
        for rows, _, predictor, following in batch_updates(beside, penalty, step, coef):
            visited[rows] = predictor - target[rows]
            coef = following
        ended = problem.design.dot(coef) - target
        found.visited[t], found.memory[t] = visited[:, :n_targets], memories(visited)
        found.ended[t + 1] = ended[:, :n_targets]
        found.end_memory[t + 1] = memories(ended)
    return found


def _held_out(visited, ended, memory, end_memory):
    """Held-out residuals (n_iterates, n_rows, n_targets) by memories of passes."""
    n_updates = len(visited)
    if not n_updates:
        return ended
    response = np.concatenate([[0.0], -np.diff(memory)])
    feedback = np.eye(n_updates) - toeplitz(response, np.zeros(n_updates))
    flat = visited.reshape(n_updates, -1)
    held_out = solve_triangular(feedback, flat, lower=True, unit_diagonal=True)
    response = -np.diff(end_memory)
    through = toeplitz(response, np.r_[response[0], np.zeros(n_updates - 1)])
    found = ended.copy()
    found[1:] += (through @ held_out).reshape(visited.shape)
    return found


def _estimate(problem, found, others, n_labels):
    """From held-out residuals, of all labels first and then without each group."""
    weights = problem.row_weights[others].astype(np.float64)
    weights = weights / weights.sum()
    paths = np.mean(found**2, axis=3) @ weights[:, 0]
    bias, mc_se = jackknife(paths[0], paths[1:])
    # The memories' noise adds to the squares; not more than all of them.
    share = 1 - np.divide(
        bias, paths[0], out=np.zeros_like(bias), where=bias < paths[0]
    )
    whitened = found[0] * np.sqrt(len(others) * weights)
    whitened *= np.sqrt(share)[:, None, None]
    left, size, right = np.linalg.svd(
        whitened.reshape(len(whitened), -1), full_matrices=False
    )
    kept = size > RESOLUTION * max(size[0], np.finfo(float).tiny)
    temporal = left[:, kept] * size[kept]
    spatial = right[kept].reshape(-1, *found.shape[2:])
    row_se = standard_error_over_rows(temporal, spatial)
    return RiskEstimate(
        path=share * paths[0],
        se_path=np.sqrt(row_se**2 + mc_se**2),
        mc_se_path=mc_se,
        temporal=temporal,
        spatial=spatial / np.sqrt(len(others) * weights),
        n_probes=n_labels,
        row_scale_share=0.0,
        row_scale_error=np.inf,
    )
