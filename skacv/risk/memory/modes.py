"""The few temporal modes that the residuals of a trajectory are made of.

The residuals of T + 1 iterates, F (iterations x rows), change smoothly along
the run and have low numerical rank: F = temporal @ spatial with a dozen modes.
The memory matrix acts on the iterations alone, so an estimate works on the
temporal factor and never on the rows.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

# Up to this many iterates the modes come from their inner products; beyond,
# from those of random combinations of the iterates. Linear updates leave few
# modes as a rule; where they are more than half of the few combinations, many.
MAX_INNER_PRODUCTS = 300
FEW_COMBINATIONS, N_COMBINATIONS = 64, 256
# Inner products resolve modes down to this size, relative to the largest.
RESOLUTION = 3e-7
ENTRIES_PER_BLOCK = 1 << 18  # fits in cache


@dataclass(frozen=True)
class ResidualModes:
    """F = temporal @ spatial, with orthonormal rows in ``spatial``.

    Attributes
    ----------
    temporal : ndarray of shape (n_iterates, n_modes)
        Columns in decreasing order of size.
    spatial : ndarray of shape (n_modes, n_rows, n_replicas)
    squared_norms : ndarray of shape (n_iterates,)
        Sum of the squared residuals, over rows and replicas, of every iterate.
    """

    temporal: np.ndarray
    spatial: np.ndarray
    squared_norms: np.ndarray

    def missing(self):
        """Squared norm of what the modes miss of every iterate's residuals."""
        represented = (self.temporal**2).sum(axis=1)
        return np.clip(self.squared_norms - represented, 0, None)


def n_leading(temporal, squared_norms, tolerance, floor):
    """How many modes represent every iterate to ``tolerance``.

    Relative to the norm of its residuals, or to ``floor`` times their largest norm
    along the path where that is more: the risk of an iterate that fits its rows
    closely is not small as its residuals are.

    Parameters
    ----------
    temporal, squared_norms : ndarray
        Of :class:`ResidualModes`.
    tolerance, floor : float
    """
    norms = np.maximum(squared_norms, floor**2 * squared_norms.max())
    missing = squared_norms[:, None] - np.cumsum(temporal**2, axis=1)
    enough = (missing <= tolerance**2 * norms[:, None]).all(axis=0)
    return int(np.argmax(enough)) + 1 if enough.any() else len(enough)


def residual_modes(problem, trajectory, tolerance, floor):
    """Factor the (root-weighted) residuals of every iterate to ``tolerance``.

    Relative to what :func:`n_leading` says of ``floor``.

    The rows are gone through in blocks; no second copy of the predictors is
    made.

    Returns
    -------
    ResidualModes
    """
    n_iterates, n_rows, n_replicas = trajectory.predictor.shape
    for combine in _combinations(trajectory):
        basis, squared_norms = _row_basis(problem, trajectory, combine)
        if 2 * len(basis) <= combine.shape[0]:
            break
    if not len(basis):  # no residuals at all
        return ResidualModes(
            np.zeros((n_iterates, 1)),
            np.zeros((1, n_rows, n_replicas)),
            squared_norms,
        )
    temporal = sum(
        block @ (basis @ block).T for _, block in _residual_blocks(problem, trajectory)
    )
    n_kept = n_leading(temporal, squared_norms, tolerance, floor)
    spatial = np.empty((n_kept, n_rows, n_replicas))
    for rows, block in _residual_blocks(problem, trajectory):
        spatial[:, rows] = (basis[:n_kept] @ block).reshape(n_kept, -1, n_replicas)
    return ResidualModes(temporal[:, :n_kept], spatial, squared_norms)


def _combinations(trajectory):
    """Matrices that combine iterates, (n_combinations, n_iterates): few, then more."""
    n_iterates = len(trajectory.predictor)
    if n_iterates <= MAX_INNER_PRODUCTS:
        yield sparse.eye(n_iterates, format="csr")
        return
    rng = np.random.default_rng(0)
    if trajectory.is_linear():
        yield rng.standard_normal((FEW_COMBINATIONS, n_iterates))
    yield rng.standard_normal((N_COMBINATIONS, n_iterates))


def _row_basis(problem, trajectory, combine):
    """An orthonormal basis of what the combined residuals are made of.

    Returns
    -------
    basis : ndarray of shape (n_modes, n_iterates)
        The rows of basis @ F are orthonormal, in decreasing order of size.
    squared_norms : ndarray of shape (n_iterates,)
    """
    squared_norms, inner = np.zeros(combine.shape[1]), 0.0
    for _, block in _residual_blocks(problem, trajectory):
        squared_norms += np.einsum("ti,ti->t", block, block)
        combined = combine @ block
        inner = inner + combined @ combined.T
    values, vectors = np.linalg.eigh(inner)
    kept = np.flatnonzero(values > RESOLUTION**2 * values[-1])[::-1]
    basis = (vectors[:, kept] / np.sqrt(values[kept])).T @ combine
    return np.asarray(basis), squared_norms


def _residual_blocks(problem, trajectory):
    """Blocks of rows with their residuals, (n_iterates, block * n_replicas)."""
    n_iterates, n_rows, n_replicas = trajectory.predictor.shape
    block = max(1, ENTRIES_PER_BLOCK // (n_iterates * n_replicas))
    scale = np.sqrt(n_rows * problem.row_weights)
    for first in range(0, n_rows, block):
        rows = slice(first, first + block)
        residuals = problem.target[rows] - trajectory.predictor[:, rows]
        residuals *= scale[rows]
        yield rows, residuals.reshape(n_iterates, -1).astype(np.float64, copy=False)
