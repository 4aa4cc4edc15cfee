"""The few temporal modes that the residuals of a trajectory are made of.

The residuals of T + 1 iterates, F (iterations x rows), change smoothly along
the run and have low numerical rank: F = temporal @ spatial with a dozen modes.
The memory matrix acts on the iterations alone, so an estimate works on the
temporal factor and never on the rows. So do the slopes of any loss.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from ...optim.blocks import slices

# Up to this many iterates the modes come from their inner products; beyond,
# from those of random combinations of the iterates. Linear updates leave few
# modes as a rule; where they are more than half of the few combinations, many.
MAX_INNER_PRODUCTS = 300
FEW_COMBINATIONS, N_COMBINATIONS = 64, 256
# Inner products resolve modes down to this size, relative to the largest.
RESOLUTION = 3e-7
ENTRIES_PER_BLOCK = 1 << 18  # fits in cache
# F is gone through several times. It is kept if it has no more entries than that.
MOST_KEPT = 1 << 22


@dataclass(frozen=True)
class AlongRun:
    """A quantity of every iterate and row, F, computed a block of rows at a time.

    Attributes
    ----------
    shape : tuple of int
        Iterates, rows and outputs.
    of : callable
        ``of(rows)`` of a slice is an array (n_iterates, n_block, n_outputs), a new one.
    is_smooth : bool
        Whether it is known to have few modes, as linear updates leave.
    """

    shape: tuple[int, int, int]
    of: Callable
    is_smooth: bool = False

    def blocks(self):
        """Blocks of rows with their F, (n_iterates, block * n_outputs), in float64."""
        is_kept = np.prod(self.shape) <= MOST_KEPT
        return self._computed if is_kept else self._blocks()

    @cached_property
    def _computed(self):
        return list(self._blocks())

    def _blocks(self):
        n_iterates, n_rows, n_outputs = self.shape
        size = max(1, ENTRIES_PER_BLOCK // (n_iterates * n_outputs))
        for rows in slices(n_rows, size):
            block = self.of(rows).reshape(n_iterates, -1)
            yield rows, block.astype(np.float64, copy=False)


@dataclass(frozen=True)
class Modes:
    """F = temporal @ spatial, with orthonormal rows in ``spatial``.

    Attributes
    ----------
    temporal : ndarray of shape (n_iterates, n_modes)
        Columns in decreasing order of size.
    spatial : ndarray of shape (n_modes, n_rows, n_outputs)
    squared_norms : ndarray of shape (n_iterates,)
        Sum of the squares of F, over rows and outputs, of every iterate.
    """

    temporal: np.ndarray
    spatial: np.ndarray
    squared_norms: np.ndarray

    def missing(self, n_modes=None):
        """Squared norm of what the first modes, or all, miss of F at every iterate."""
        represented = (self.temporal[:, :n_modes] ** 2).sum(axis=1)
        return np.clip(self.squared_norms - represented, 0, None)


def n_leading(temporal, squared_norms, tolerance, floor):
    """How many modes represent every iterate to ``tolerance``.

    Relative to the norm of its F, or to ``floor`` times the largest norm along the
    path where that is more: the risk of an iterate that fits its rows closely is not
    small as its residuals are.

    Parameters
    ----------
    temporal, squared_norms : ndarray
        Arguments of :class:`Modes`.
    """
    norms = np.maximum(squared_norms, floor**2 * squared_norms.max())
    missing = squared_norms[:, None] - np.cumsum(temporal**2, axis=1)
    enough = (missing <= tolerance**2 * norms[:, None]).all(axis=0)
    return int(np.argmax(enough)) + 1 if enough.any() else len(enough)


def residuals_along(problem, trajectory):
    """The residuals of every iterate, times the roots of n times the rows' weights.

    No array of all predictors is made.
    """
    scale = np.sqrt(len(problem.target) * problem.row_weights)

    def residuals(rows):
        found = trajectory.predictor.of_rows(rows)
        found -= problem.target[rows]
        found *= -scale[rows]
        return found

    return AlongRun(trajectory.predictor.shape, residuals, trajectory.is_linear())


def modes_of(along, tolerance, floor):
    """Factor F to ``tolerance``, relative to what :func:`n_leading` says of ``floor``.

    Returns
    -------
    Modes
    """
    n_iterates, n_rows, n_outputs = along.shape
    for combine in _combinations(along):
        basis, squared_norms = _row_basis(along, combine)
        if 2 * len(basis) <= combine.shape[0]:
            break
    if not len(basis):  # F is zero
        return Modes(
            np.zeros((n_iterates, 1)), np.zeros((1, n_rows, n_outputs)), squared_norms
        )
    temporal = sum(block @ (basis @ block).T for _, block in along.blocks())
    n_kept = n_leading(temporal, squared_norms, tolerance, floor)
    spatial = np.empty((n_kept, n_rows, n_outputs))
    for rows, block in along.blocks():
        spatial[:, rows] = (basis[:n_kept] @ block).reshape(n_kept, -1, n_outputs)
    return Modes(temporal[:, :n_kept], spatial, squared_norms)


def all_modes(values, resolution):
    """The factors of F by a singular value decomposition of all of it.

    Parameters
    ----------
    values : ndarray of shape (n_iterates, n_rows, n_outputs)
        F.
    resolution : float
        Modes of less size, relative to the largest, are rounding.

    Returns
    -------
    Modes
    """
    n_iterates, n_rows, n_outputs = values.shape
    whole = values.reshape(n_iterates, n_rows * n_outputs).astype(np.float64)
    left, size, right = np.linalg.svd(whole, full_matrices=False)
    kept = size > resolution * size[:1]
    return Modes(
        left[:, kept] * size[kept],
        right[kept].reshape(-1, n_rows, n_outputs),
        (whole**2).sum(axis=1),
    )


def _combinations(along):
    """Matrices that combine iterates, (n_combinations, n_iterates): few, then more."""
    n_iterates = along.shape[0]
    if n_iterates <= MAX_INNER_PRODUCTS:
        yield sparse.eye(n_iterates, format="csr")
        return
    rng = np.random.default_rng(0)
    if along.is_smooth:
        yield rng.standard_normal((FEW_COMBINATIONS, n_iterates))
    yield rng.standard_normal((N_COMBINATIONS, n_iterates))


def _row_basis(along, combine):
    """An orthonormal basis of what the combined F are made of.

    Returns
    -------
    basis : ndarray of shape (n_modes, n_iterates)
        The rows of basis @ F are orthonormal, in decreasing order of size.
    squared_norms : ndarray of shape (n_iterates,)
    """
    squared_norms, inner = np.zeros(combine.shape[1]), 0.0
    for _, block in along.blocks():
        squared_norms += np.einsum("ti,ti->t", block, block)
        combined = combine @ block
        inner = inner + combined @ combined.T
    values, vectors = np.linalg.eigh(inner)
    kept = np.flatnonzero(values > RESOLUTION**2 * values[-1])[::-1]
    basis = (vectors[:, kept] / np.sqrt(values[kept])).T @ combine
    return np.asarray(basis), squared_norms
