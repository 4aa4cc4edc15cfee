"""The temporal modes of a run, and what the memory matrix makes of them.

The residuals of T + 1 iterates, F (iterations x rows), change smoothly along the run
and have low numerical rank: F = V C with a dozen columns of V, the modes
(``temporal``), and orthonormal rows of C (``spatial``). So do the slopes of any loss.
The memory matrix W acts on the iterations alone, so an estimate works on V and never on
the rows.

Tangents carry W V for the leading modes, by random probes or by a complete basis.
:func:`solution_by` lets the other modes follow, and has the error that random probes
leave; :func:`in_rounds` adds probes until that error is small.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ...optim.blocks import MEMORY_BYTES, blocks

# Random probes where their number is not adapted: their noise is 1 / sqrt(40) of a
# trace's spread. In rounds: enough at first to see the spread, and at most so many on
# average over the modes.
N_PROBES = 40
FIRST_ROUND = 10
MAX_PROBES = 128


@dataclass
class AlongRun:
    """A quantity F of every iterate and row; ``of(rows)`` computes it for a slice."""

    shape: tuple[int, int, int]  # (n_iterates, n_rows, n_outputs)
    of: Callable  # returns a new array of such a shape
    # Known to have few modes, as linear updates leave.
    is_smooth: bool = False
    _kept: list | None = field(default=None, init=False)

    def blocks(self):
        """Slices of rows with their F, (n_iterates, n_block * n_outputs), float64."""
        # They are kept where F is small.
        if self._kept is not None:
            return self._kept
        if 8 * np.prod(self.shape) > MEMORY_BYTES // 8:
            return self._computed()
        self._kept = list(self._computed())
        return self._kept

    def _computed(self):
        n_iterates, n_rows, n_outputs = self.shape
        for rows in blocks(n_rows, 8 * n_iterates * n_outputs):
            block = self.of(rows).reshape(n_iterates, -1)
            yield rows, block.astype(np.float64, copy=False)


@dataclass(frozen=True)
class Modes:
    """F = temporal @ spatial, with orthonormal rows of spatial, large modes first."""

    temporal: np.ndarray  # (n_iterates, n_modes)
    spatial: np.ndarray  # (n_modes, n_rows, n_outputs)
    squared_norms: np.ndarray  # of F, (n_iterates,)

    def missing(self, n_modes=None):
        """Squared norms, by iterate, of what the first modes (or all) miss of F."""
        represented = (self.temporal[:, :n_modes] ** 2).sum(axis=1)
        return np.clip(self.squared_norms - represented, 0, None)


def n_leading(temporal, squared_norms, tolerance, floor):
    """How many modes represent every iterate to ``tolerance``."""
    # The tolerance is relative to the norm of the iterate's F, or to ``floor`` times
    # the largest.
    # The risk of an iterate that fits its rows closely is not small as its residuals.
    norms = np.maximum(squared_norms, floor**2 * squared_norms.max())
    missing = squared_norms[:, None] - np.cumsum(temporal**2, axis=1)
    enough = (missing <= tolerance**2 * norms[:, None]).all(axis=0)
    return int(np.argmax(enough)) + 1 if enough.any() else len(enough)


def modes_of(along, tolerance=1e-3, floor=0.05, n_combinations=256):
    """The :class:`Modes` of F, as many as represent it by :func:`n_leading`."""
    # They come from inner products of the iterates, or of random combinations of these.
    n_iterates, n_rows, n_outputs = along.shape
    rng = np.random.default_rng(0)
    combinations: Iterable[Any]
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
    temporal = np.zeros((n_iterates, len(kept)))
    for _, block in along.blocks():
        temporal += block @ (basis @ block).T
    n_kept = n_leading(temporal, squared_norms, tolerance, floor)
    spatial = np.empty((n_kept, n_rows, n_outputs))
    for rows, block in along.blocks():
        spatial[:, rows] = (basis[:n_kept] @ block).reshape(n_kept, -1, n_outputs)
    return Modes(temporal[:, :n_kept], spatial, squared_norms)


def all_modes(values, resolution=None):
    """All :class:`Modes` of F that are larger than ``resolution`` times the largest."""
    # Shapes: values (n_iterates, n_rows, n_outputs).
    n_iterates, n_rows, n_outputs = values.shape
    F = values.reshape(n_iterates, n_rows * n_outputs).astype(np.float64)
    if resolution is None:  # rounding, as in matrix_rank
        resolution = max(F.shape) * np.finfo(float).eps
    left, size, right = np.linalg.svd(F, full_matrices=False)
    kept = size > resolution * size[:1]
    spatial = right[kept].reshape(-1, n_rows, n_outputs)
    return Modes(left[:, kept] * size[kept], spatial, (F**2).sum(axis=1))


# ---------------------------------------------------------------- probes


class Accuracy(NamedTuple):
    """Shares of F that the modes which tangents carry, and all modes, may miss."""

    # They are relative to the norm of every iterate's F, or to ``floor`` times the
    # largest. The missing part is orthogonal to the carried one, so that the risk errs
    # by its square only.

    carried: float
    kept: float
    floor: float


@dataclass(frozen=True)
class Solution:
    """W V, or V + W V for the squared error, and its deviations by single probes."""

    temporal: np.ndarray  # (n_iterates, n_groups * n_modes)
    # How each probe moves it off its mean, (n_iterates, n_probes, n_groups * n_modes):
    # the sum of squares over the probes is the variance.
    deviations: np.ndarray

    @property
    def n_probes(self):
        return self.deviations.shape[1]

    def squares(self):
        """Squared norms of the iterates' E, (n_iterates,), and errors by probes."""
        change = 2 * np.einsum("tk,tjk->tj", self.temporal, self.deviations)
        error = np.sqrt((change**2).sum(axis=1))
        return (self.temporal**2).sum(axis=1), error


@dataclass(frozen=True)
class RiskEstimate:
    """The risk of every iterate by the memory matrix."""

    path: np.ndarray  # (n_iterates,)
    se_path: np.ndarray  # standard errors over rows and of probes together
    mc_se_path: np.ndarray  # standard errors of probes alone
    # Factors of held-out residuals, or predictors if the loss is not of residuals,
    # (n_iterates, n_modes) and (n_modes, n_rows, n_outputs).
    temporal: np.ndarray
    spatial: np.ndarray
    n_probes: int
    # A share of the spread of the rows' squared norms; zero: the published estimate.
    row_scale_share: float = 0.0
    # Share of itself by which the path may err by scales; infinite without any.
    row_scale_error: float = np.inf

    @classmethod
    def of(cls, path, mc_se_path, temporal, spatial, weights, n_samples, **attributes):
        """The estimate from factors of E whose rows have roots of n ``weights``."""
        # Shapes: weights (n_rows, 1), of sum one; n_samples rows, or a sample of these.
        n_rows, n_outputs = len(weights), spatial.shape[2]
        total, total_squares = np.zeros((2, len(temporal)))
        for rows in blocks(n_rows, 8 * len(temporal) * n_outputs):
            E = np.tensordot(temporal, spatial[:, rows], axes=1)
            losses = np.einsum("tir,tir->ti", E, E) / n_outputs
            total += losses.sum(axis=1)
            total_squares += (losses**2).sum(axis=1)
        variance = total_squares / n_rows - (total / n_rows) ** 2
        row_se = np.sqrt(np.clip(variance, 0, None) / max(n_rows - 1, 1))
        row_se *= np.sqrt(n_rows / n_samples)
        se_path = np.sqrt(row_se**2 + mc_se_path**2)
        spatial = spatial / np.sqrt(n_rows * weights)
        return cls(path, se_path, mc_se_path, temporal, spatial, **attributes)


def is_number(method):
    """Whether a method is a number of probes, not a name."""
    return not isinstance(method, str) and method is not True


def probe_dtype(square):
    """Single precision, unless sums of squares of the size of X leave its range."""
    smallest = np.finfo(np.float32).tiny ** (2 / 3)
    return np.float32 if smallest < square < 1 / smallest else np.float64


def solution_by(tangents, modes, n_groups=1, is_random=True):
    """The :class:`Solution` by tangents of the leading modes, after the last update."""
    # W v solves z = G (v + D z), of which G X = Z is known for X = V + D Z at the
    # gradients; elsewhere v is taken at its projection on X (Galerkin), and D and z at
    # their means over the rows. With the squared error D is one, and X known at the
    # iterates.
    n_iterates, n_each, n_carried = tangents.solution.shape
    n_modes, n_by_mode = modes.temporal.shape[1], np.bincount(tangents.mode)
    temporal = np.zeros((n_iterates, n_each, n_modes))
    temporal[:, :, :n_carried] = tangents.solution
    n_probes = int(n_by_mode.max()) if is_random else 0
    deviations = np.zeros((n_iterates, n_probes, n_each, n_modes))
    for group in range(n_groups):
        alike = slice(group, None, n_groups)  # this group at all positions in a pass
        curvature = tangents.mean_curvature[:, alike, None]
        fed_back = (curvature * tangents.at_points[:, alike]).mean(axis=1)
        projection = np.linalg.pinv(tangents.temporal + fed_back)
        closed = np.linalg.pinv(np.eye(n_carried) - projection @ fed_back)
        response = tangents.solution[:, alike]
        following = closed @ (projection @ modes.temporal[:, n_carried:])
        temporal[:, alike, n_carried:] = response @ following
        if not is_random:
            continue
        for k, n in enumerate(n_by_mode.tolist()):
            # The deviation of a probe's reading, and those that it drives later.
            spread = tangents.responses[:, alike, tangents.mode == k]
            spread = spread - spread.mean(axis=2, keepdims=True)
            driven = (curvature * spread[: len(curvature)]).mean(axis=1)
            spread = spread + response @ (closed @ (projection @ driven))
            spread /= np.sqrt(n * max(n - 1, 1))
            deviations[:, :n, alike, k] = np.moveaxis(spread, 2, 1)
    deviations = deviations.reshape(n_iterates, n_probes, n_each * n_modes)
    return Solution(temporal.reshape(n_iterates, n_each * n_modes), deviations)


def n_missing(n_probes, path, row_se, mc_se, share=1.0):
    """How many more probes make their error a share of that over rows, or 0."""
    # Errors are those at iterates within two standard errors of the least. Shapes:
    # path, row_se, mc_se (n_iterates,).
    least = path.argmin()
    near = path <= path[least] + 2 * row_se[least]
    limit = share * np.sqrt(np.mean(row_se[near] ** 2))
    error = np.sqrt(np.mean(mc_se[near] ** 2))
    if error <= limit or limit == 0:
        return 0
    return int(np.ceil(n_probes * ((error / limit) ** 2 - 1)))


def by_size(temporal, n_probes):
    """Numbers of probes in proportion to the size of a mode, two or more."""
    # Two probes show their spread.
    sizes = np.linalg.norm(temporal, axis=0)
    n_by_mode = np.ceil(n_probes * sizes / sizes[0]).astype(int)
    return np.clip(n_by_mode, min(2, n_probes), n_probes)


def in_rounds(probed, missing_of, temporal, first, at_most=np.inf, basis_size=np.inf):
    """A :class:`Solution` by random probes, until their error is small enough."""
    # None where a complete basis has at most twice the tangents of missing probes.
    n_carried = temporal.shape[1]
    at_most = min(at_most, MAX_PROBES * n_carried)
    n_by_mode = by_size(temporal, first)
    solution, n_tangents = probed(n_by_mode), n_by_mode.sum()
    while n_tangents < at_most and (missing := missing_of(solution)):
        n_further = by_size(temporal, missing).sum()
        is_small = basis_size <= 4 * MAX_PROBES
        if is_small and basis_size * n_carried <= 2 * n_further:
            return None
        share = min(1.0, (at_most - n_tangents) / n_further)
        n_by_mode = by_size(temporal, max(int(share * missing), FIRST_ROUND // 2))
        n_tangents += n_by_mode.sum()
        # Each round has the weight of its number of probes.
        further = probed(n_by_mode)
        weight = further.n_probes / (solution.n_probes + further.n_probes)
        deviations = (1 - weight) * solution.deviations, weight * further.deviations
        solution = Solution(
            (1 - weight) * solution.temporal + weight * further.temporal,
            np.concatenate(deviations, axis=1),
        )
    return solution
