"""Linear updates: leave-one-out at every iterate, from one eigendecomposition.

If row i of weight w_i is left out of a weighted mean of squared errors, the gradient is
scaled by c_i = 1 / (1 - w_i), without the row's term:

    gradient_{-i}(b) = c_i (gradient(b) - w_i z_i h_i(b)).

Here z_i and y_i are the (centred) row and target, and h_i is the held-out residual, the
prediction minus the target *by the replica without the row*: h_i = k_i (z_i'b - y_i),
with k_i = c_i if an intercept is fitted and k_i = 1 if not. In the eigenbasis of
Z'Z / n an update without a prox is elementwise. So direction k contributes a part
v_ik = z_ik b_ik to the prediction that obeys

    v_ik <- (the update at curvature c_i lambda_k) v_ik
            + step_size c_i (z_ik (Z'y)_k / n + w_i z_ik^2 h_i),

and the prediction is the sum of the parts over k. With a preconditioner the same holds
in the eigenbasis of the preconditioned objective, whose eigenvalues contain the
penalty: c_i is one there, for the loss and for the penalty
(:class:`~skacv.risk.held_out_rows.LeaveOutRule`).

Parts depend on an eigenvalue through a smooth function. So a few eigenvalues, the
nodes, represent all of them to rounding: the z_ik^2 and z_ik (Z'y)_k of every direction
are distributed over the nodes (an interpolative decomposition).
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from ...optim.blocks import CACHE_BYTES, in_one_thread, n_per_block
from ..eigenbasis import NULL_DIRECTION, Eigenbasis, inverse_roots

# Updates in an UpdateBlock. If the block were twice as long, feedback would take twice
# the work per update, and everything else half.
UPDATES_PER_BLOCK = 16


def spectral_residuals(problem, trajectory, left_out, largest_block, map):
    """Held-out residuals of linear updates, (n_iterates, n_left_out, n_targets)."""
    # The loss is the squared error. ``map(function, blocks)`` applies a function to
    # independent blocks of rows.
    _, target = problem.sqrt_weighted()
    basis = Eigenbasis.of_run(problem, trajectory)
    if trajectory.preconditioner() is not None:
        trajectory = trajectory.as_gradient_descent()
    nodes, transfer = nodes_of(basis.eigenvalues, trajectory)
    residuals_of_rows = partial(
        _residuals_of_rows, basis, target, trajectory, nodes, transfer
    )
    # Entries per row: its parts, its leverages, their products, and the feedback.
    n_entries = 8 * len(nodes) + UPDATES_PER_BLOCK * (UPDATES_PER_BLOCK + 1) // 2
    size = min(n_per_block(8 * n_entries, 4 * CACHE_BYTES), largest_block)
    blocks = list(map(residuals_of_rows, left_out.blocks(size)))
    # One block is returned as it is, without a copy.
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)


@in_one_thread()
def _residuals_of_rows(basis, target, trajectory, nodes, transfer, left_out):
    """Held-out residuals of a block of rows."""
    replay = SpectralReplay(basis, target, trajectory, nodes, transfer, left_out)
    trajectory.followed_by(replay).advance()
    replay.residuals /= left_out.sqrt_weight[:, None]
    return replay.residuals


def _parts_on_nodes(rows, values, transfer):
    """Parts ``rows * values`` on the nodes, (n_targets, n_nodes, n_rows)."""
    if transfer is None:
        return values.T[:, :, None] * rows.T
    weights = np.einsum("rk,rm->kmr", values, transfer)
    parts = weights.reshape(-1, len(values)) @ rows.T
    return parts.reshape(*weights.shape[:2], -1)


@in_one_thread()
def nodes_of(eigenvalues, trajectory, n_drives=16, tol=1e-14):
    """Eigenvalues (n_nodes,) that represent all, and the transfer (rank, n_nodes)."""
    # parts @ f(eigenvalues) = (parts @ transfer) @ f(nodes) for every response f of a
    # run from zero. A transfer of None: every eigenvalue is a node. The contribution of
    # a direction is proportional to its eigenvalue, so eigenvalue * f is interpolated,
    # which is accurate whatever f is near zero.
    if trajectory.coef[0].any() or not eigenvalues.any():
        return eigenvalues, None
    responses = Responses(eigenvalues, trajectory.n_updates, n_drives)
    trajectory.followed_by(responses)
    # A response is a polynomial of the eigenvalue, of degree n_updates at most. So that
    # many random mixtures of the samples span the responses; a few more are for safety.
    samples = np.concatenate(responses.samples or [np.zeros((0, len(eigenvalues)))])
    n_mixtures = trajectory.n_updates + 1 + n_drives
    n_mixtures = min(n_mixtures, len(samples), len(eigenvalues))
    mixtures = responses.rng.standard_normal((n_mixtures, len(samples))) @ samples
    # The nodes are the pivots of a QR decomposition of the mixtures.
    factor, order = qr(
        mixtures * eigenvalues, mode="r", pivoting=True, check_finite=False
    )
    size = np.abs(np.diag(factor))
    n_nodes = max(1, int(np.count_nonzero(size > tol * size[0])))
    if 2 * n_nodes > len(eigenvalues):
        return eigenvalues, None
    nodes, rest = order[:n_nodes], order[n_nodes:]
    transfer = np.zeros((len(eigenvalues), n_nodes))
    transfer[nodes] = np.eye(n_nodes)
    interpolated = solve_triangular(
        factor[:n_nodes, :n_nodes], factor[:n_nodes, n_nodes:]
    ).T
    # Null directions contribute to no row, and would divide by zero.
    is_nonzero = eigenvalues[rest] > NULL_DIRECTION * eigenvalues.max()
    share = eigenvalues[nodes] / eigenvalues[rest[is_nonzero], None]
    transfer[rest[is_nonzero]] = interpolated[is_nonzero] * share
    return eigenvalues[nodes], transfer


class Responses:
    """Responses of every direction to random drives, sampled at times of the run."""

    def __init__(self, eigenvalues, n_updates, n_drives):
        self.eigenvalues, self.rng = eigenvalues, np.random.default_rng(0)
        times = np.geomspace(1, max(n_updates, 1), 4 * n_drives).astype(int)
        self.times, self.samples = set(np.unique(times)), []
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
            self.samples.append(following / size)


class SpectralReplay:
    """The residuals of a block of rows, a block of updates at a time."""

    # Consecutive updates of a phase are applied together if all rows share their loss
    # and penalty scales, and one at a time otherwise.

    _block: "SingleUpdate | UpdateBlock"  # the map of the updates by ``_rules``

    def __init__(self, basis, target, trajectory, nodes, transfer, left_out):
        rows, self.target = basis.rows(left_out.rows), target[left_out.rows]
        self.nodes, self.left_out = nodes, left_out
        scale = left_out.loss_scale
        squares = rows**2 if transfer is None else rows**2 @ transfer
        self.leverage = squares.T * (scale / left_out.n_rows)
        n_iterates, n_targets = trajectory.n_updates + 1, target.shape[1]
        self.residuals = np.empty((n_iterates, len(left_out.rows), n_targets))
        # Parts of the last iterate, of the one before it, and of the drive (Z'y)_k / n.
        self.parts = np.zeros((n_targets, 3, *self.leverage.shape))
        if basis.start.any():
            self.parts[:, :2] = _parts_on_nodes(rows, basis.start, transfer)[:, None]
        self.parts[:, 2] = _parts_on_nodes(rows, basis.drive, transfer) * scale
        error = self.parts[:, 0].sum(axis=1).T - self.target
        self.residuals[0] = left_out.residual_scale[:, None] * error
        # The loss and penalty scales, one entry each if all rows share them.
        n_scales = 1 if np.ptp(left_out.loss_scale) == 0 else len(left_out.rows)
        self.scales = left_out.loss_scale[:n_scales], left_out.penalty_scale[:n_scales]
        self.shares_scales = n_scales == 1
        has_memory = [update.has_memory for _, _, update, _ in trajectory.updates()]
        # Number of past iterates that an update uses.
        self.n_past = 2 if any(has_memory) else 1
        self._pending, self._rules = [], []

    def take(self, step):
        """Add an update to the pending block; apply the block first if it is full."""
        longest = UPDATES_PER_BLOCK if self.shares_scales else 1
        if self._pending and (step.restarts or len(self._pending) == longest):
            self.advance()
        self._pending.append(step)

    def advance(self):
        """Apply the pending updates."""
        if not self._pending:
            return
        rules = [(step.update, step.penalty) for step in self._pending]
        if rules != self._rules:
            self._rules, self._block = rules, self._map_of(rules)
        by_target = zip(self.parts, self.target.T, np.moveaxis(self.residuals, 2, 0))
        scale = self.left_out.residual_scale
        for parts, target, held_out in by_target:
            self._block.replay(self._pending, parts, target, scale, held_out)
        self._pending = []

    def _map_of(self, rules):
        """Consecutive updates as one map."""
        loss_scale, penalty_scale = self.scales
        curvature = loss_scale * self.nodes[:, None]
        multipliers = [
            update.multipliers(curvature + penalty_scale * penalty.common_curvature())
            for update, penalty in rules
        ]
        if not self.shares_scales:
            factor, earlier_factor = multipliers[0]
            return SingleUpdate(factor, earlier_factor, self.leverage, self.n_past)
        steps = [update.step_size for update, _ in rules]
        return UpdateBlock.of(multipliers, steps, self.leverage, self.n_past)


class SingleUpdate(NamedTuple):
    """One update of rows with different multipliers."""

    factor: np.ndarray  # of the last iterate, (n_nodes, n_rows)
    earlier_factor: np.ndarray  # of the iterate before it, (n_nodes, n_rows)
    leverage: np.ndarray  # (n_nodes, n_rows)
    n_past: int

    def replay(self, steps, parts, target, residual_scale, held_out):
        """Do what :meth:`UpdateBlock.replay` does, for a single update."""
        t, before, update, _ = steps[0]
        following = self.leverage * update.point(held_out[t], held_out[before])
        following += parts[2]
        following *= update.step_size
        following += self.factor * parts[0]
        if update.has_memory:
            following += self.earlier_factor * parts[0 if before == t else 1]
        if self.n_past == 2:
            parts[1] = parts[0]
        parts[0] = following
        error = following.sum(axis=0) - target
        np.multiply(residual_scale, error, out=held_out[t + 1])


class UpdateBlock(NamedTuple):
    """Consecutive updates as one linear map, shared by all rows."""

    # Held-out residuals feed back into later predictions of the block. Without this
    # feedback, predictions are a product of the response with the parts of the rows.

    # The response of a node, at the start and after each update, to a unit in the
    # iterate at the start, in the one before that, in the drive, and in the gradient of
    # each update, (1 + n_updates, 3 + n_updates, n_nodes).
    response: np.ndarray
    # The change of the prediction after an update by a unit residual at the gradient
    # point of this update and of each before, update by update, (n_updates * (n_updates
    # + 1) / 2, n_rows).
    feedback: np.ndarray
    leverage: np.ndarray  # (n_nodes, n_rows)
    n_past: int

    @classmethod
    def of(cls, multipliers, step_sizes, leverage, n_past):
        n_updates = len(step_sizes)
        response = np.zeros((2 + n_updates, 3 + n_updates, len(leverage)))
        # Row 0 is the iterate before the start, dropped below; row 1 is the start.
        response[0, 1] = response[1, 0] = 1
        for j, (factors, step_size) in enumerate(zip(multipliers, step_sizes)):
            factor, earlier_factor = factors
            following = response[j + 2]
            np.multiply(factor[:, 0], response[j + 1], out=following)
            following += earlier_factor[:, 0] * response[j]
            following[[2, 3 + j]] += step_size
        response = response[1:]
        update_index, gradient_index = np.tril_indices(n_updates)
        feedback = response[1 + update_index, 3 + gradient_index] @ leverage
        return cls(response, feedback, leverage, n_past)

    def replay(self, steps, parts, target, residual_scale, held_out):
        """Write the residuals of one target, times root weights, and update its parts.

        Shapes: parts (3, n_nodes, n_rows), of the iterate, the one before it, and the
        drive; target (n_rows,); held_out (n_iterates, n_rows).
        """
        t, before, *_ = steps[0]
        if before == t:
            parts[1] = parts[0]
        # Predictions without feedback, minus the target.
        part_response = self.response[1:, :3].reshape(len(steps), -1)
        error = part_response @ parts.reshape(-1, parts.shape[2]) - target
        slopes, first = np.empty_like(error), 0
        for j, (t, before, update, _) in enumerate(steps):
            slopes[j] = update.point(held_out[t], held_out[before])
            feedback = self.feedback[first : first + j + 1]
            error[j] += np.einsum("sr,sr->r", feedback, slopes[: j + 1])
            np.multiply(residual_scale, error[j], out=held_out[t + 1])
            first += j + 1
        # The parts of the last iterates, from the last responses.
        following = []
        for response in self.response[: -1 - self.n_past : -1]:
            following.append(np.einsum("ck,ckr->kr", response[:3], parts))
            following[-1] += self.leverage * (response[3:].T @ slopes)
        parts[: self.n_past] = following


def coefficient_deviations(problem, trajectory, left_out, held_out):
    """Changes (n_columns, n_left_out) of the last coefficients if a row is left out."""
    # ``held_out``, (n_iterates, n_left_out), has the held-out residuals of one target.
    # The run starts at zero.
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
