"""Linear updates: leave-one-out at every iterate, from one eigendecomposition.

Leaving row i of weight w_i out of a weighted mean of squared errors scales the
gradient by c_i = 1 / (1 - w_i) and takes away the row's own part,

    gradient_{-i}(b) = c_i (gradient(b) - w_i z_i h_i(b)),

with z_i and y_i the (centred) row and target and h_i the prediction less the target
*of the replica that never saw the row*: h_i = k_i (z_i'b - y_i), k_i = c_i where an
intercept is fitted and 1 where not. In the eigenbasis of Z'Z / n an update
without a prox is elementwise, so the part v_ik = z_ik b_ik of the prediction
that direction k contributes obeys

    v_ik <- (the update at curvature c_i lambda_k) v_ik
            + step_size c_i (z_ik (Z'y)_k / n + w_i z_ik^2 h_i),

and the prediction is their sum over k. With a preconditioner the same holds in the
eigenbasis of the preconditioned objective, whose eigenvalues contain the penalty:
c_i is one there, for the loss and for the penalty
(:class:`~skacv.risk.held_out_rows.LeaveOutRule`).

An eigenvalue enters only through a smooth function, so a few of them, the nodes, with
the z_ik^2 and z_ik (Z'y)_k of all moved onto them, stand for all to rounding (an
interpolative decomposition).
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from ...optim.blocks import CACHE_BYTES, in_one_thread, n_per_block
from ..eigenbasis import NULL_DIRECTION, Eigenbasis, inverse_roots

# Updates in an UpdateBlock. Twice as many double the work of feedback for each, and
# halve all other work.
UPDATES_PER_BLOCK = 16


def spectral_residuals(problem, trajectory, left_out, largest_block, map):
    """Held-out residuals of linear updates, (n_iterates, n_left_out, n_targets)."""
    # The loss is the squared error. ``map(function, blocks)`` goes through independent
    # blocks of rows.
    _, target = problem.sqrt_weighted()
    basis = Eigenbasis.of_run(problem, trajectory)
    if trajectory.preconditioner() is not None:
        trajectory = trajectory.as_gradient_descent()
    nodes, transfer = nodes_of(basis.eigenvalues, trajectory)
    replay = partial(_residuals_of_rows, basis, target, trajectory, nodes, transfer)
    # The parts of a row, its leverages, products of these, and feedback.
    n_entries = 8 * len(nodes) + UPDATES_PER_BLOCK * (UPDATES_PER_BLOCK + 1) // 2
    size = min(n_per_block(8 * n_entries, 4 * CACHE_BYTES), largest_block)
    blocks = list(map(replay, left_out.blocks(size)))
    # One block needs no other array of its size.
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)


@in_one_thread()
def _residuals_of_rows(basis, target, trajectory, nodes, transfer, left_out):
    """Held-out residuals of a block of rows."""
    replay = SpectralReplay(basis, target, trajectory, nodes, transfer, left_out)
    trajectory.followed_by(replay).advance()
    replay.residuals /= left_out.sqrt_weight[:, None]
    return replay.residuals


def _on_nodes(rows, values, transfer):
    """Parts ``rows * values`` on the nodes, (n_targets, n_nodes, n_rows)."""
    if transfer is None:
        return values.T[:, :, None] * rows.T
    weights = np.einsum("rk,rm->kmr", values, transfer)
    parts = weights.reshape(-1, len(values)) @ rows.T
    return parts.reshape(*weights.shape[:2], -1)


@in_one_thread()
def nodes_of(eigenvalues, trajectory, n_drives=16, tol=1e-14):
    """Eigenvalues (n_nodes,) that stand for all, and the transfer (rank, n_nodes)."""
    # A direction contributes in proportion to its eigenvalue, so it is eigenvalue times
    # f that is interpolated, whatever f does near zero. Without a transfer, None, every
    # eigenvalue is a node; else parts @ f(eigenvalues) = (parts @ transfer) @ f(nodes)
    # for every f that the run can make of a start at zero.
    if trajectory.coef[0].any() or not eigenvalues.any():
        return eigenvalues, None
    responses = Responses(eigenvalues, trajectory.n_updates, n_drives)
    trajectory.followed_by(responses)
    # Responses are polynomials of the eigenvalue, whose degree is the number of
    # updates: as many random mixtures span them, and a few more to be safe.
    sampled = np.concatenate(responses.sampled or [np.zeros((0, len(eigenvalues)))])
    n_mixtures = trajectory.n_updates + 1 + n_drives
    n_mixtures = min(n_mixtures, len(sampled), len(eigenvalues))
    mixtures = responses.rng.standard_normal((n_mixtures, len(sampled))) @ sampled
    # Pivoted columns of the mixtures are the nodes.
    factor, order = qr(
        mixtures * eigenvalues, mode="r", pivoting=True, check_finite=False
    )
    size = np.abs(np.diag(factor))
    n_nodes = max(1, np.count_nonzero(size > tol * size[0]))
    if 2 * n_nodes > len(eigenvalues):
        return eigenvalues, None
    nodes, rest = order[:n_nodes], order[n_nodes:]
    transfer = np.zeros((len(eigenvalues), n_nodes))
    transfer[nodes] = np.eye(n_nodes)
    interpolated = solve_triangular(
        factor[:n_nodes, :n_nodes], factor[:n_nodes, n_nodes:]
    ).T
    # Directions without a part in any row would divide by zero.
    seen = eigenvalues[rest] > NULL_DIRECTION * eigenvalues.max()
    share = eigenvalues[nodes] / eigenvalues[rest[seen], None]
    transfer[rest[seen]] = interpolated[seen] * share
    return eigenvalues[nodes], transfer


class Responses:
    """Responses of every direction to random drives, at times along the run."""

    def __init__(self, eigenvalues, n_updates, n_drives):
        self.eigenvalues, self.rng = eigenvalues, np.random.default_rng(0)
        times = np.geomspace(1, max(n_updates, 1), 4 * n_drives).astype(int)
        self.times, self.sampled = set(np.unique(times)), []
        self.current = self.earlier = np.zeros((n_drives, len(eigenvalues)))

    def take(self, step):
        if step.restarts:
            self.earlier = self.current
        curvature = self.eigenvalues + step.penalty.common_curvature()
        factor, earlier_factor = step.update.multipliers(curvature)
        following = factor * self.current + earlier_factor * self.earlier
        following += self.rng.standard_normal((len(following), 1))
        self.earlier, self.current = self.current, following
        if step.t + 1 in self.times:
            size = np.abs(following).max(axis=1, keepdims=True)
            self.sampled.append(following / size)


class SpectralReplay:
    """The residuals of a block of rows, a block of updates at a time."""

    # Updates that follow each other in a phase are taken together; one at a time where
    # rows do not share their scales.

    def __init__(self, basis, target, trajectory, nodes, transfer, left_out):
        rows, self.target = basis.rows(left_out.rows), target[left_out.rows]
        self.nodes, self.left_out = nodes, left_out
        scale = left_out.loss_scale
        squares = rows**2 if transfer is None else rows**2 @ transfer
        self.leverage = squares.T * (scale / left_out.n_rows)
        n_iterates, n_targets = trajectory.n_updates + 1, target.shape[1]
        self.residuals = np.empty((n_iterates, len(left_out.rows), n_targets))
        # Parts of the iterate, of the one before it, and of the drive.
        self.parts = np.zeros((n_targets, 3, *self.leverage.shape))
        if basis.start.any():
            self.parts[:, :2] = _on_nodes(rows, basis.start, transfer)[:, None]
        self.parts[:, 2] = _on_nodes(rows, basis.drive, transfer) * scale
        error = self.parts[:, 0].sum(axis=1).T - self.target
        self.residuals[0] = left_out.residual_scale[:, None] * error
        # Loss and penalty scales; one entry each if all rows share them.
        n_scales = 1 if np.ptp(left_out.loss_scale) == 0 else len(left_out.rows)
        self.scales = left_out.loss_scale[:n_scales], left_out.penalty_scale[:n_scales]
        self.is_shared = n_scales == 1
        has_memory = [update.has_memory for _, _, update, _ in trajectory.updates()]
        # How many of the last iterates later updates refer to.
        self.n_kept = 2 if any(has_memory) else 1
        self._waiting, self._rules, self._block = [], None, None

    def take(self, step):
        """Let an update wait; those before it are taken where it cannot join them."""
        longest = UPDATES_PER_BLOCK if self.is_shared else 1
        if self._waiting and (step.restarts or len(self._waiting) == longest):
            self.advance()
        self._waiting.append(step)

    def advance(self):
        """Take the updates that wait."""
        if not self._waiting:
            return
        rules = [(step.update, step.penalty) for step in self._waiting]
        if rules != self._rules:
            self._rules, self._block = rules, self._block_of(rules)
        by_target = zip(self.parts, self.target.T, np.moveaxis(self.residuals, 2, 0))
        scale = self.left_out.residual_scale
        for parts, target, held_out in by_target:
            self._block.replay(self._waiting, parts, target, scale, held_out)
        self._waiting = []

    def _block_of(self, rules):
        """Consecutive updates as one map."""
        loss_scale, penalty_scale = self.scales
        curvature = loss_scale * self.nodes[:, None]
        multipliers = [
            update.multipliers(curvature + penalty_scale * penalty.common_curvature())
            for update, penalty in rules
        ]
        if not self.is_shared:
            return SingleUpdate(*multipliers[0], self.leverage, self.n_kept)
        steps = [update.step_size for update, _ in rules]
        return UpdateBlock.of(multipliers, steps, self.leverage, self.n_kept)


class SingleUpdate(NamedTuple):
    """One update of rows that have multipliers of their own."""

    factor: np.ndarray  # of the last iterate, (n_nodes, n_rows)
    earlier_factor: np.ndarray  # of the iterate before it, (n_nodes, n_rows)
    leverage: np.ndarray  # (n_nodes, n_rows)
    n_kept: int

    def replay(self, steps, parts, target, residual_scale, held_out):
        """Do what :meth:`UpdateBlock.replay` does, for a single update."""
        t, before, update, _ = steps[0]
        following = self.leverage * update.point(held_out[t], held_out[before])
        following += parts[2]
        following *= update.step_size
        following += self.factor * parts[0]
        if update.has_memory:
            following += self.earlier_factor * parts[0 if before == t else 1]
        if self.n_kept == 2:
            parts[1] = parts[0]
        parts[0] = following
        error = following.sum(axis=0) - target
        np.multiply(residual_scale, error, out=held_out[t + 1])


class UpdateBlock(NamedTuple):
    """Consecutive updates as a map of all rows at once."""

    # Residuals feed back into predictions within the block; the rest is a product of
    # the ``response`` to units with the parts of the rows.

    # The response of a node, at the start and after each update, to a unit in the
    # iterate at the start, in the one before that, in the drive, and in the gradient of
    # each update, (1 + n_updates, 3 + n_updates, n_nodes).
    response: np.ndarray
    # The change of the prediction after an update by a unit residual at the gradient
    # point of this update and of each before, update by update, (n_updates * (n_updates
    # + 1) / 2, n_rows).
    feedback: np.ndarray
    leverage: np.ndarray  # (n_nodes, n_rows)
    n_kept: int

    @classmethod
    def of(cls, multipliers, step_sizes, leverage, n_kept):
        n_updates = len(step_sizes)
        response = np.zeros((2 + n_updates, 3 + n_updates, len(leverage)))
        # Rows so far are those of the iterate before the start, which is dropped below,
        # and of the start.
        response[0, 1] = response[1, 0] = 1
        for j, (factors, step_size) in enumerate(zip(multipliers, step_sizes)):
            factor, earlier_factor = factors
            following = response[j + 2]
            np.multiply(factor[:, 0], response[j + 1], out=following)
            following += earlier_factor[:, 0] * response[j]
            following[[2, 3 + j]] += step_size
        response = response[1:]
        after, gradient = np.tril_indices(n_updates)
        feedback = response[1 + after, 3 + gradient] @ leverage
        return cls(response, feedback, leverage, n_kept)

    def replay(self, steps, parts, target, residual_scale, held_out):
        """Write the root-weighted residuals of one target, and advance its parts.

        Shapes: parts (3, n_nodes, n_rows), of the iterate, the one before it, and the
        drive; target (n_rows,); held_out (n_iterates, n_rows).
        """
        t, before, *_ = steps[0]
        if before == t:
            parts[1] = parts[0]
        # Predictions without feedback, less the target.
        over_parts = self.response[1:, :3].reshape(len(steps), -1)
        error = over_parts @ parts.reshape(-1, parts.shape[2]) - target
        slopes, first = np.empty_like(error), 0
        for j, (t, before, update, _) in enumerate(steps):
            slopes[j] = update.point(held_out[t], held_out[before])
            feedback = self.feedback[first : first + j + 1]
            error[j] += np.einsum("sr,sr->r", feedback, slopes[: j + 1])
            np.multiply(residual_scale, error[j], out=held_out[t + 1])
            first += j + 1
        # The parts of the last iterates, by the last responses.
        following = []
        for response in self.response[: -1 - self.n_kept : -1]:
            following.append(np.einsum("ck,ckr->kr", response[:3], parts))
            following[-1] += self.leverage * (response[3:].T @ slopes)
        parts[: self.n_kept] = following


def coefficient_deviations(problem, trajectory, left_out, held_out):
    """Changes (n_columns, n_left_out) of the last coefficients without each row."""
    # From held-out residuals (n_iterates, n_left_out) of one target, and linear updates
    # from zero.
    design, preconditioner = problem.sqrt_weighted()[0], trajectory.preconditioner()
    values, vectors = problem.row_basis(preconditioner)
    rows = vectors[left_out.rows] * np.sqrt(len(vectors) * values)
    if preconditioner is not None:
        trajectory = trajectory.as_gradient_descent()
    parts = trajectory.followed_by(Deviations(values, rows, left_out, held_out))
    inverse = inverse_roots(values, len(vectors))
    coef = design.t_dot((vectors * inverse) @ parts.current)
    return coef if preconditioner is None else preconditioner.dot(coef)


class Deviations:
    """Changes of the coefficients by leaving rows out, update by update."""

    def __init__(self, eigenvalues, rows, left_out, held_out):
        self.eigenvalues, self.left_out = eigenvalues[:, None], left_out
        self.held_out = held_out * left_out.sqrt_weight
        self.rows = rows.T * (left_out.loss_scale / left_out.n_rows)
        self.current = self.earlier = np.zeros_like(self.rows)

    def take(self, step):
        t, before, update, penalty = step
        if step.restarts:
            self.earlier = self.current
        curvature = self.left_out.loss_scale * self.eigenvalues
        curvature = curvature + self.left_out.penalty_scale * penalty.common_curvature()
        factor, earlier_factor = update.multipliers(curvature)
        residual = update.point(self.held_out[t], self.held_out[before])
        following = factor * self.current + earlier_factor * self.earlier
        following += update.step_size * self.rows * residual
        self.earlier, self.current = self.current, following
