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
(:class:`~skacv.risk.leave_out_rule.LeaveOutRule`).

An eigenvalue enters only through a smooth function, so a few of them, the nodes, with
the z_ik^2 and z_ik (Z'y)_k of all moved onto them, stand for all to rounding (an
interpolative decomposition).
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from ...optim.threads import in_one_thread
from ..eigenbasis import NULL_DIRECTION, Eigenbasis, inverse_roots

# Entries of all arrays that a block of rows needs: they stay in cache.
ENTRIES_PER_BLOCK = 1 << 19
# Updates taken together. Twice as many double the work of feedback for each, and
# halve all other work.
STRETCH = 16
# Arrays of nodes by rows that a stretch needs.
ARRAYS_OF_NODES = 8
# The functions of the eigenvalue that nodes are chosen by: responses to random
# drives, at times along the run; so many more mixtures than they have dimensions.
N_DRIVES = 16
N_TIMES = 64
N_MORE = 16
NODE_TOLERANCE = 1e-14


def leave_one_out(problem, trajectory, left_out, largest_block, map):
    """Held-out residuals of every iterate of linear updates, exactly.

    Parameters
    ----------
    problem : Problem
        With the squared error as loss; weights shared by its targets.
    trajectory : Trajectory
        With linear updates, elementwise in one basis.
    map : callable
        ``map(function, blocks)``; blocks of rows are independent.

    Returns
    -------
    ndarray of shape (n_iterates, n_left_out, n_targets), float64
        Prediction less target, row by row.
    """
    _, target = problem.sqrt_weighted()
    basis = Eigenbasis.of_run(problem, trajectory)
    if trajectory.preconditioner() is not None:
        trajectory = trajectory.as_gradient_descent()
    nodes, transfer = nodes_of(basis.eigenvalues, trajectory)
    replay = partial(_replayed, basis, target, trajectory, nodes, transfer)
    per_row = ARRAYS_OF_NODES * len(nodes) + STRETCH * (STRETCH + 1) // 2
    size = max(1, min(ENTRIES_PER_BLOCK // per_row, largest_block))
    blocks = list(map(replay, left_out.blocks(size)))
    # One block needs no other array of its size.
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)


@in_one_thread()
def _replayed(basis, target, trajectory, nodes, transfer, left_out):
    """Held-out residuals of a block of rows."""
    held_out = HeldOut(basis, target, trajectory, nodes, transfer, left_out)
    trajectory.followed_by(held_out).replay()
    held_out.residuals /= left_out.sqrt_weight[:, None]
    return held_out.residuals


def _moved(rows, values, transfer):
    """Parts ``rows * values`` moved onto the nodes, (n_targets, n_nodes, n_rows)."""
    if transfer is None:
        return values.T[:, :, None] * rows.T
    weights = np.einsum("rk,rm->kmr", values, transfer)
    moved = weights.reshape(-1, len(values)) @ rows.T
    return moved.reshape(*weights.shape[:2], -1)


@in_one_thread()
def nodes_of(eigenvalues, trajectory):
    """Eigenvalues that stand for all, and how the others' parts move to them.

    A direction takes part in proportion to its eigenvalue, so it is
    eigenvalue times f that is interpolated, whatever f does near zero.

    Returns
    -------
    nodes : ndarray of shape (n_nodes,)
    transfer : ndarray of shape (rank, n_nodes) or None
        None where every eigenvalue is a node; else
        parts @ f(eigenvalues) = (parts @ transfer) @ f(nodes) for every f that
        the run can make of a start at zero, and parts that it can have.
    """
    every = eigenvalues, None
    if trajectory.coef[0].any() or not eigenvalues.any():
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
    responses = Responses(eigenvalues, trajectory.n_updates)
    trajectory.followed_by(responses)
    # They are polynomials of the eigenvalue, whose degree is the number of updates.
    sampled = np.concatenate(responses.sampled)
    n_mixtures = trajectory.n_updates + 1 + N_MORE
    n_mixtures = min(n_mixtures, len(sampled), len(eigenvalues))
    return responses.rng.standard_normal((n_mixtures, len(sampled))) @ sampled


class Responses:
    """Responses of every direction to random drives, update by update."""

    def __init__(self, eigenvalues, n_updates):
        self.eigenvalues, self.rng = eigenvalues, np.random.default_rng(0)
        times = np.geomspace(1, max(n_updates, 1), N_TIMES).astype(int)
        self.times, self.sampled = set(np.unique(times)), []
        self.current = self.earlier = np.zeros((N_DRIVES, len(eigenvalues)))

    def take(self, taken):
        """Move all responses on by an update."""
        if taken.restarts:
            self.earlier = self.current
        curvature = self.eigenvalues + taken.penalty.common_curvature()
        own, earlier = taken.update.multipliers(curvature)
        following = own * self.current + earlier * self.earlier
        following += self.rng.standard_normal((N_DRIVES, 1))
        self.earlier, self.current = self.current, following
        if taken.t + 1 in self.times:
            size = np.abs(following).max(axis=1, keepdims=True)
            self.sampled.append(following / size)


class HeldOut:
    """The residuals of a block of rows, some updates at a time.

    Updates that follow each other in a phase are taken together; one at a time where
    rows do not share their scales.
    """

    def __init__(self, basis, target, trajectory, nodes, transfer, left_out):
        rows, self.target = basis.rows(left_out.rows), target[left_out.rows]
        self.nodes, self.left_out = nodes, left_out
        scale = left_out.loss_scale
        squares = rows**2 if transfer is None else rows**2 @ transfer
        self.leverage = squares.T * (scale / left_out.n_rows)
        n_iterates, n_targets = trajectory.n_updates + 1, target.shape[1]
        self.residuals = np.empty((n_iterates, len(left_out.rows), n_targets))
        self.parts = np.zeros((n_targets, 3, *self.leverage.shape))
        if basis.start.any():
            self.parts[:, :2] = _moved(rows, basis.start, transfer)[:, None]
        self.parts[:, 2] = _moved(rows, basis.drive, transfer) * scale
        away = self.parts[:, 0].sum(axis=1).T - self.target
        self.residuals[0] = left_out.residual_scale[:, None] * away
        self.scales = left_out.shared_scales()
        self.is_shared = len(self.scales[0]) == 1
        has_memory = [update.has_memory for _, _, update, _ in trajectory.updates()]
        self.n_kept = 2 if any(has_memory) else 1
        self._together, self._rules, self._stretch = [], None, None

    def take(self, taken):
        """Note an update; those before it are done where it cannot join them."""
        longest = STRETCH if self.is_shared else 1
        if self._together and (taken.restarts or len(self._together) == longest):
            self.replay()
        self._together.append(taken)

    def replay(self):
        """Do the updates that have been noted."""
        if not self._together:
            return
        rules = [(taken.update, taken.penalty) for taken in self._together]
        if rules != self._rules:
            self._rules, self._stretch = rules, self._stretch_of(rules)
        by_target = zip(self.parts, self.target.T, np.moveaxis(self.residuals, 2, 0))
        for parts, target, held_out in by_target:
            self._stretch.replay(self._together, parts, target, self.left_out, held_out)
        self._together = []

    def _stretch_of(self, rules):
        """Some updates together, as one map."""
        loss_scale, penalty_scale = self.scales
        curvature = loss_scale * self.nodes[:, None]
        multipliers = [
            update.multipliers(curvature + penalty_scale * penalty.common_curvature())
            for update, penalty in rules
        ]
        if not self.is_shared:
            return Single(*multipliers[0], self.leverage, self.n_kept)
        steps = [update.step_size for update, _ in rules]
        return Stretch.of(multipliers, steps, self.leverage, self.n_kept)


class Single(NamedTuple):
    """One update, of rows that have multipliers of their own.

    Attributes
    ----------
    own, earlier : ndarray of shape (n_nodes, n_rows)
        What multiplies the parts of the iterate, and of the one before it.
    leverage : ndarray of shape (n_nodes, n_rows)
        What a row takes part in every node with.
    n_kept : int
        How many of the last iterates later updates refer to.
    """

    own: np.ndarray
    earlier: np.ndarray
    leverage: np.ndarray
    n_kept: int

    def replay(self, updates, parts, target, left_out, held_out):
        """Take a single update; parameters are those of :meth:`Stretch.replay`."""
        t, before, update, _ = updates[0]
        following = self.leverage * update.point(held_out[t], held_out[before])
        following += parts[2]
        following *= update.step_size
        following += self.own * parts[0]
        if update.has_memory:
            following += self.earlier * parts[0 if before == t else 1]
        if self.n_kept == 2:
            parts[1] = parts[0]
        parts[0] = following
        away = following.sum(axis=0) - target
        np.multiply(left_out.residual_scale, away, out=held_out[t + 1])


class Stretch(NamedTuple):
    """Some updates in a row, as what they do to all rows at once.

    Residuals feed back into predictions within the stretch; all else is a
    product of what the updates make of a unit with the parts of the rows.

    Attributes
    ----------
    response : ndarray of shape (1 + n_updates, 3 + n_updates, n_nodes)
        What is there of a unit in a node, at the start and after each update:
        a unit in the iterate at the start, in the one before that, in the
        drive, and in the gradient of each update.
    feedback : ndarray of shape (n_updates * (n_updates + 1) / 2, n_rows)
        What is added to the prediction after an update for the residual at
        the gradient point of this one and of each before, update by update.
    leverage : ndarray of shape (n_nodes, n_rows)
        What a row takes part in every node with.
    n_kept : int
        How many of the last iterates later updates refer to.
    """

    response: np.ndarray
    feedback: np.ndarray
    leverage: np.ndarray
    n_kept: int

    @classmethod
    def of(cls, multipliers, step_sizes, leverage, n_kept):
        """Follow a unit of everything through updates of these multipliers."""
        n_updates = len(step_sizes)
        response = np.zeros((2 + n_updates, 3 + n_updates, len(leverage)))
        # Up to here from the iterate before the start, which is dropped below.
        response[0, 1] = response[1, 0] = 1
        for j, ((own, earlier), step_size) in enumerate(zip(multipliers, step_sizes)):
            moved = response[j + 2]
            np.multiply(own[:, 0], response[j + 1], out=moved)
            moved += earlier[:, 0] * response[j]
            moved[[2, 3 + j]] += step_size
        response = response[1:]
        after, of = np.tril_indices(n_updates)
        feedback = response[1 + after, 3 + of] @ leverage
        return cls(response, feedback, leverage, n_kept)

    def replay(self, updates, parts, target, left_out, held_out):
        """Write the root-weighted held-out residuals of one target, and move its parts.

        Parameters
        ----------
        updates : list of Step
        parts : ndarray of shape (3, n_nodes, n_rows)
            Parts of the iterate, of the one before it, and of the drive. The first
            ``n_kept`` are those after the updates when this returns.
        target : ndarray of shape (n_rows,)
        held_out : ndarray of shape (n_iterates, n_rows)
        """
        t, before, *_ = updates[0]
        if before == t:
            parts[1] = parts[0]
        over_parts = self.response[1:, :3].reshape(len(updates), -1)
        away = over_parts @ parts.reshape(-1, parts.shape[2]) - target
        slopes, first = np.empty_like(away), 0
        for j, (t, before, update, _) in enumerate(updates):
            slopes[j] = update.point(held_out[t], held_out[before])
            feedback = self.feedback[first : first + j + 1]
            away[j] += np.einsum("sr,sr->r", feedback, slopes[: j + 1])
            np.multiply(left_out.residual_scale, away[j], out=held_out[t + 1])
            first += j + 1
        leads = self.response[: -1 - self.n_kept : -1]
        parts[: self.n_kept] = [self._moved(lead, parts, slopes) for lead in leads]

    def _moved(self, response, parts, slopes):
        """The parts of the iterate that a response leads to."""
        moved = np.einsum("ck,ckr->kr", response[:3], parts)
        moved += self.leverage * (response[3:].T @ slopes)
        return moved


def deviations(problem, trajectory, left_out, held_out):
    """Change of the last coefficients by leaving each row out, from its residuals.

    Shapes: returned (n_columns, n_left_out).

    Parameters
    ----------
    problem : Problem
        A problem with one target; inner products are those of its rows.
    trajectory : Trajectory
        With linear updates, elementwise in one basis, from zero.
    held_out : ndarray of shape (n_iterates, n_left_out)
        Held-out residuals of these rows.
    """
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

    def take(self, taken):
        """Move the deviations on by an update."""
        t, before, update, penalty = taken
        if taken.restarts:
            self.earlier = self.current
        curvature = self.left_out.loss_scale * self.eigenvalues
        curvature = curvature + self.left_out.penalty_scale * penalty.common_curvature()
        own, earlier = update.multipliers(curvature)
        residual = update.point(self.held_out[t], self.held_out[before])
        following = own * self.current + earlier * self.earlier
        following += update.step_size * self.rows * residual
        self.earlier, self.current = self.current, following
