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

from ...optim.blocks import MEMORY_BYTES, blocks


@dataclass(frozen=True)
class AlongRun:
    """A quantity F of every iterate and row; ``of(rows)`` computes it for a slice.

    Shapes: shape (n_iterates, n_rows, n_outputs); ``of(rows)`` likewise, a new array.
    """

    shape: tuple[int, int, int]
    of: Callable
    # Known to have few modes, as linear updates leave.
    is_smooth: bool = False

    def blocks(self):
        """Slices of rows with their F as float64; they are kept where F is small.

        Shapes: F (n_iterates, n_block * n_outputs).
        """
        is_small = 8 * np.prod(self.shape) <= MEMORY_BYTES // 8
        return self._kept if is_small else self._computed()

    @cached_property
    def _kept(self):
        return list(self._computed())

    def _computed(self):
        n_iterates, n_rows, n_outputs = self.shape
        for rows in blocks(n_rows, 8 * n_iterates * n_outputs):
            block = self.of(rows).reshape(n_iterates, -1)
            yield rows, block.astype(np.float64, copy=False)


@dataclass(frozen=True)
class Modes:
    """F = temporal @ spatial, with orthonormal rows in ``spatial``, large modes first.

    Shapes: temporal (n_iterates, n_modes); spatial (n_modes, n_rows, n_outputs);
    squared_norms (n_iterates,), of F.
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
    """
    norms = np.maximum(squared_norms, floor**2 * squared_norms.max())
    missing = squared_norms[:, None] - np.cumsum(temporal**2, axis=1)
    enough = (missing <= tolerance**2 * norms[:, None]).all(axis=0)
    return int(np.argmax(enough)) + 1 if enough.any() else len(enough)


def modes_of(along, tolerance=1e-3, floor=0.05, n_combinations=256):
    """The :class:`Modes` of F, as many as represent it by :func:`n_leading`.

    They come from inner products of the iterates, or of random combinations of these.
    """
    n_iterates, n_rows, n_outputs = along.shape
    rng = np.random.default_rng(0)
    if n_iterates <= n_combinations:
        combinations = [sparse.eye(n_iterates, format="csr")]
    else:
        sizes = [n_combinations // 4, n_combinations]
        if not along.is_smooth:
            sizes = sizes[1:]
        combinations = (rng.standard_normal((size, n_iterates)) for size in sizes)
    for combine in combinations:
        squared_norms, inner = np.zeros(n_iterates), 0.0
        for _, block in along.blocks():
            squared_norms += np.einsum("ti,ti->t", block, block)
            combined = combine @ block
            inner = inner + combined @ combined.T
        # Inner products resolve modes down to 20 roots of the precision.
        values, vectors = np.linalg.eigh(inner)
        resolved = values > 20**2 * np.finfo(float).eps * values[-1]
        kept = np.flatnonzero(resolved)[::-1]
        if 2 * len(kept) <= combine.shape[0]:
            break  # few combinations are enough
    if not len(kept):  # F is zero
        spatial = np.zeros((1, n_rows, n_outputs))
        return Modes(np.zeros((n_iterates, 1)), spatial, squared_norms)
    # The rows of basis @ F are orthonormal, in decreasing order of size.
    basis = np.asarray((vectors[:, kept] / np.sqrt(values[kept])).T @ combine)
    temporal = sum(block @ (basis @ block).T for _, block in along.blocks())
    n_kept = n_leading(temporal, squared_norms, tolerance, floor)
    spatial = np.empty((n_kept, n_rows, n_outputs))
    for rows, block in along.blocks():
        spatial[:, rows] = (basis[:n_kept] @ block).reshape(n_kept, -1, n_outputs)
    return Modes(temporal[:, :n_kept], spatial, squared_norms)


def all_modes(values, resolution=None):
    """All :class:`Modes` of F that are larger than ``resolution`` times the largest.

    Shapes: values (n_iterates, n_rows, n_outputs).
    """
    n_iterates, n_rows, n_outputs = values.shape
    F = values.reshape(n_iterates, n_rows * n_outputs).astype(np.float64)
    if resolution is None:  # rounding, as in matrix_rank
        resolution = max(F.shape) * np.finfo(float).eps
    left, size, right = np.linalg.svd(F, full_matrices=False)
    kept = size > resolution * size[:1]
    spatial = right[kept].reshape(-1, n_rows, n_outputs)
    return Modes(left[:, kept] * size[kept], spatial, (F**2).sum(axis=1))
