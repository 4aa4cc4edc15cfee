"""Nodes: a few eigenvalues that stand for all of them along a run.

In :mod:`skacv.risk.left_out.spectral` an eigenvalue enters only through a smooth
function, so a few of them, with the z_ik^2 and z_ik (Z'y)_k of all moved onto them,
stand for all to rounding (an interpolative decomposition).
"""

import numpy as np
from scipy.linalg import qr, solve_triangular

from ...optim.threads import in_one_thread
from ..eigenbasis import NULL_DIRECTION

# The functions of the eigenvalue that nodes are chosen by: responses to random
# drives, at times along the run; so many more mixtures than they have dimensions.
N_DRIVES = 16
N_TIMES = 64
N_MORE = 16
NODE_TOLERANCE = 1e-14


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
