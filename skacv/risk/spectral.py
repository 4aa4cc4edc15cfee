"""Linear updates: leave-one-out at every iterate, from one eigendecomposition.

Leaving row i of weight w_i out of a weighted mean of squared errors scales the
gradient by c_i = 1 / (1 - w_i) and takes away the row's own part,

    gradient_{-i}(b) = c_i (gradient(b) - w_i z_i h_i(b)),

with z_i the (centred) row and h_i the prediction less the target *of the
replica that never saw the row*: h_i = k_i (z_i'b - y_i), k_i = c_i where an
intercept is fitted and 1 where not. In the eigenbasis of Z'Z / n an update
without a prox is elementwise, so the part v_ik = z_ik b_ik of the prediction
that direction k contributes obeys

    v_ik <- (the update at curvature c_i lambda_k) v_ik
            + step_size c_i (z_ik (Z'y)_k / n + w_i z_ik^2 h_i),

and the prediction is their sum over k. With a preconditioner the same holds in the
eigenbasis of the preconditioned objective, whose eigenvalues contain the penalty:
the strength of a penalty must then be scaled by c_i as well.

An eigenvalue enters this only through a smooth function, so a few of them, with
the z_ik^2 and z_ik (Z'y)_k of all moved onto them, stand for all to rounding (an
interpolative decomposition).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, qr, solve_triangular

# Entries of a block of rows: a few arrays of that size stay in cache.
ENTRIES_PER_BLOCK = 1 << 16
# Directions with a smaller share of the top eigenvalue carry no start.
NULL_DIRECTION = 1e-14
# The functions of the eigenvalue that nodes are chosen by: responses to random
# drives, at times along the run. Many more than they have dimensions.
N_DRIVES = 16
N_TIMES = 64
NODE_TOLERANCE = 1e-14


@dataclass(frozen=True)
class Eigenbasis:
    """A design in the eigenbasis of (design' design) / n_rows.

    Attributes
    ----------
    eigenvalues : ndarray of shape (rank,)
    drive : ndarray of shape (rank, n_targets)
        Coordinates of design' target / n_rows.
    start : ndarray of shape (rank, n_targets)
        Coordinates of the coefficients that a run starts from.
    rows : callable
        ``rows(index)`` are the coordinates of some rows, (n, rank).
    """

    eigenvalues: np.ndarray
    drive: np.ndarray
    start: np.ndarray
    rows: Callable

    @classmethod
    def of_run(cls, problem, trajectory):
        """The basis in which the updates of a run are elementwise."""
        start, preconditioner = trajectory.coef[0], trajectory.preconditioner()
        basis = cls.of(problem, start)
        if preconditioner is None:
            return basis
        directions = cls.of(problem, preconditioner.vectors).start
        curvature = trajectory.phases[0].penalty.curvature
        return basis.preconditioned(directions, preconditioner.damping, curvature)

    def preconditioned(self, directions, damping, curvature):
        """The same where every gradient is multiplied by P = Q^2.

        With b = Q a, P times a gradient in b is the gradient in a: the run is
        gradient descent on Q (design' design / n_rows + curvature) Q.

        Parameters
        ----------
        directions : ndarray of shape (rank, q)
            Those of P, in this basis.
        damping : ndarray of shape (q,)
            What P takes from them.
        curvature : float
            Of the penalty; the eigenvalues contain it from then on.

        Returns
        -------
        Eigenbasis
        """

        def scaled(taken, array):
            return array - directions @ (taken[:, None] * (directions.T @ array))

        root = scaled(1 - np.sqrt(1 - damping), np.eye(len(self.eigenvalues)))
        values, vectors = eigh(root @ ((self.eigenvalues + curvature)[:, None] * root))
        turn = root @ vectors
        unscaled = scaled(1 - 1 / np.sqrt(1 - damping), self.start)
        return Eigenbasis(
            np.clip(values, 0, None),
            turn.T @ self.drive,
            vectors.T @ unscaled,
            lambda index: self.rows(index) @ turn,
        )

    @classmethod
    def of(cls, problem, coef):
        """The eigenbasis of a problem, and a run from ``coef`` in it."""
        design, target = problem.whitened()
        n_rows, n_columns = design.shape
        values, vectors = problem.eigenbasis
        if n_columns <= n_rows:
            drive = vectors.T @ design.t_dot(target) / n_rows
            rows = partial(_rotated_rows, design, vectors.astype(design.dtype))
            return cls(values, drive, vectors.T @ coef, rows)
        root = np.sqrt(n_rows * values)
        # Only what the rows see of a start matters.
        seen = values > NULL_DIRECTION * values[-1]
        inverse = np.divide(1, root, out=np.zeros_like(root), where=seen)
        start = inverse[:, None] * (vectors.T @ design.dot(coef))
        drive = root[:, None] * (vectors.T @ target) / n_rows
        return cls(values, drive, start, (vectors * root).__getitem__)


def _rotated_rows(design, vectors, index):
    return design.rows(index).dot(vectors).astype(np.float64, copy=False)


def leave_one_out(problem, trajectory, left_out, largest_block, map):
    """Held-out residuals of every iterate of linear updates, exactly.

    Parameters
    ----------
    problem : Problem
        With the squared error as loss; weights shared by its targets.
    trajectory : Trajectory
        With linear updates, elementwise in one basis.
    left_out : LeftOutRows
    largest_block : int
    map : callable
        ``map(function, blocks)``; blocks of rows are independent.

    Returns
    -------
    ndarray of shape (n_iterates, n_left_out, n_targets), float64
        Prediction less target, row by row.
    """
    _, target = problem.whitened()
    basis = Eigenbasis.of_run(problem, trajectory)
    if trajectory.preconditioner() is not None:
        trajectory = trajectory.as_gradient_descent()
    nodes, transfer = _nodes(basis.eigenvalues, trajectory)
    updates = list(trajectory.updates())
    replay = partial(_replayed, basis, target, updates, nodes, transfer)
    size = max(1, min(ENTRIES_PER_BLOCK // len(nodes), largest_block))
    return np.concatenate(list(map(replay, left_out.blocks(size))), axis=1)


def _nodes(eigenvalues, trajectory):
    """Eigenvalues that stand for all, and how the others' parts move to them.

    A direction takes part in proportion to its eigenvalue, so it is
    eigenvalue times f that is interpolated, whatever f does near zero.

    Returns
    -------
    nodes : ndarray of shape (n_nodes,)
    transfer : ndarray of shape (rank, n_nodes)
        parts @ f(eigenvalues) = (parts @ transfer) @ f(nodes) for every f that
        the run can make of a start at zero, and parts that it can have.
    """
    every = eigenvalues, np.eye(len(eigenvalues))
    if trajectory.coef[0].any():
        return every
    functions = _sampled_responses(eigenvalues, trajectory) * eigenvalues
    factor, order = qr(functions, mode="r", pivoting=True, check_finite=False)
    size = np.abs(np.diag(factor))
    n_nodes = max(1, np.count_nonzero(size > NODE_TOLERANCE * size[0]))
    if 2 * n_nodes > len(eigenvalues):
        return every
    kept, others = order[:n_nodes], order[n_nodes:]
    transfer = np.zeros((len(eigenvalues), n_nodes))
    transfer[kept] = np.eye(n_nodes)
    interpolated = solve_triangular(
        factor[:n_nodes, :n_nodes], factor[:n_nodes, n_nodes:]
    ).T
    # Directions that no row has a part in would divide by zero.
    seen = eigenvalues[others] > NULL_DIRECTION * eigenvalues.max()
    share = eigenvalues[kept] / eigenvalues[others[seen], None]
    transfer[others[seen]] = interpolated[seen] * share
    return eigenvalues[kept], transfer


def _sampled_responses(eigenvalues, trajectory):
    """Responses of every direction to random drives, (n_functions, rank)."""
    rng = np.random.default_rng(0)
    last = max(trajectory.n_updates, 1)
    times = set(np.unique(np.geomspace(1, last, N_TIMES).astype(int)))
    state = before_state = np.zeros((N_DRIVES, len(eigenvalues)))
    sampled = []
    for t, before, step, penalty in trajectory.updates():
        if before == t:
            before_state = state
        own, earlier = _multipliers(step, eigenvalues + penalty.curvature)
        following = own * state + earlier * before_state
        following += rng.standard_normal((N_DRIVES, 1))
        before_state, state = state, following
        if t + 1 in times:
            sampled.append(state / np.abs(state).max(axis=1, keepdims=True))
    return np.concatenate(sampled)


def _multipliers(step, curvature):
    """What an update multiplies this iterate and the one before by."""
    slope = step.step_size * curvature
    own = (1 + step.momentum) - (1 + step.lookahead) * slope
    return own, step.lookahead * slope - step.momentum


def _replayed(basis, target, updates, nodes, transfer, left_out):
    """Held-out residuals of a block of rows, target by target."""
    rows, target = basis.rows(left_out.rows), target[left_out.rows]
    moved = transfer.T
    leverage = moved @ (rows**2).T / left_out.n_rows
    held_out = np.empty((len(updates) + 1, *target.shape))
    for k, own_target in enumerate(target.T):
        parts = Parts(
            leverage=leverage,
            start=moved @ (rows * basis.start[:, k]).T,
            drive=moved @ (rows * basis.drive[:, k]).T,
        )
        _replay_target(nodes, parts, own_target, updates, left_out, held_out[:, :, k])
    held_out /= left_out.whitening[:, None]
    return held_out


class Parts(NamedTuple):
    """What a block of rows takes part in every node with, (n_nodes, n_rows)."""

    leverage: np.ndarray
    start: np.ndarray
    drive: np.ndarray


def _replay_target(nodes, parts, target, updates, left_out, held_out):
    """Write the whitened held-out residuals of one target, (n_iterates, n_rows)."""
    loss_scale, penalty_scale = left_out.shared_scales()
    current = before_current = parts.start
    product = np.empty_like(current)
    held_out[0] = left_out.residual_scale * (current.sum(axis=0) - target)
    step_size = 0.0
    for t, before, step, penalty in updates:
        if before == t:
            before_current = current
        if step.step_size != step_size:
            step_size = step.step_size
            drive = (step_size * left_out.loss_scale) * parts.drive
            leverage = (step_size * left_out.loss_scale) * parts.leverage
        curvature = loss_scale * nodes[:, None] + penalty_scale * penalty.curvature
        own, earlier = _multipliers(step, curvature)
        following = leverage * step.gradient_point(held_out[t], held_out[before])
        following += drive
        following += np.multiply(own, current, out=product)
        if step.momentum or step.lookahead:
            following += np.multiply(earlier, before_current, out=product)
        before_current, current = current, following
        predictor = current.sum(axis=0)
        held_out[t + 1] = left_out.residual_scale * (predictor - target)
