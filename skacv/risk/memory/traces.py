"""Traces in the memory matrix: by the spectrum, a complete basis, or probes.

Each solves E = F + (A / n) E on the temporal modes of the residuals F, where
A_{t,s} = tr(X M_{t,s} X') / n, and says what error random probes leave.
:func:`solve` chooses one, and modes enough for it.
"""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from ...optim.problem import Problem
from ...optim.trajectory import Trajectory
from ..eigenbasis import Eigenbasis
from ..left_out.costs import Run, is_decomposed
from ..random_labels import random_signs
from .modes import Modes, modes_of, n_leading, residuals_along
from .tangents import (
    TangentProbes,
    column_working_sets,
    spectral_working_sets,
    tangent_pass,
)

# Sides up to this are probed by a complete basis, so that traces are exact.
# For the sake of memory, only while tangents have so many entries a mode.
EXACT_SIZE = 100
EXACT_ENTRIES = 2_000_000
# Random probes are added until their standard error is at most this share of
# sqrt(2 / n), the relative standard error that the estimate has on Gaussian rows
# whatever the probes. It is asked of the rows within two such errors of the least.
PROBE_ERROR_SHARE = 1.0
FIRST_ROUND = 10
MIN_ROUND = 5
# At most, on average over the modes.
MAX_PROBES = 128
# On any one mode, so that their spread can be seen.
MIN_PROBES = 2
# Where half as many probes would be missing, a complete basis of up to this size.
EXACT_INSTEAD_SIZE = 512
# Rows at a time whose coordinates are squared.
ROW_BLOCK = 512
# The least floor of an accuracy, where there is little noise.
LEAST_FLOOR = 1e-5


class Accuracy(NamedTuple):
    """How much of the residuals the modes may miss.

    Attributes
    ----------
    carried : float
        By the modes that tangents carry. What is missing is orthogonal to what
        is carried, so the risk errs by its square only.
    kept : float
        By the modes that the factors of E keep. Those that are not carried
        follow by what the others show of the memory matrix.
    floor : float
        Both are shares of the norm of an iterate's residuals, or of ``floor``
        times their largest norm where that is more.
    """

    carried: float
    kept: float
    floor: float


SPECTRAL = Accuracy(carried=1e-4, kept=1e-4, floor=0.01)
COMPLETE = Accuracy(carried=0.02, kept=0.01, floor=0.01)
EQUALLY_PROBED = Accuracy(carried=0.07, kept=0.01, floor=0.01)
# Closely fitted iterates may miss more here, and still err by less than probes do.
IN_ROUNDS = Accuracy(carried=0.07, kept=0.005, floor=0.1)


@dataclass(frozen=True)
class Solution:
    """E = F + (A / n) E on the temporal modes.

    Attributes
    ----------
    temporal : ndarray of shape (n_iterates, n_modes)
    deviations : ndarray of shape (n_iterates, n_probes, n_modes)
        How each random probe moves ``temporal`` away from its mean, scaled so
        that the sum of squares over probes is the variance.
    """

    temporal: np.ndarray
    deviations: np.ndarray

    @property
    def n_probes(self):
        return self.deviations.shape[1]

    def squares(self):
        """Squared norm of every row of E."""
        return (self.temporal**2).sum(axis=1)

    def squares_error(self):
        """Standard error of ``squares`` due to the probes."""
        change = 2 * np.einsum("tk,tjk->tj", self.temporal, self.deviations)
        return np.sqrt((change**2).sum(axis=1))

    def share_of(self, quantity, within):
        """A quantity of every row, as a share of ``squares`` where the path is read.

        Root mean square over the rows whose risk is at most ``1 + within``
        times the least.
        """
        squares = np.maximum(self.squares(), np.finfo(float).tiny)
        near = squares <= (1 + within) * squares.min()
        return np.sqrt(np.mean((quantity / squares)[near] ** 2))

    def pooled_with(self, other):
        """Two rounds of probes together, each with the weight of its number."""
        total = self.n_probes + other.n_probes
        own, others = self.n_probes / total, other.n_probes / total
        return Solution(
            own * self.temporal + others * other.temporal,
            np.concatenate([own * self.deviations, others * other.deviations], axis=1),
        )


class Solved(NamedTuple):
    """A solution, and the modes that it is on.

    Attributes
    ----------
    solution : Solution
    modes : Modes
    n_carried : int
        Tangents have carried the first so many modes: (A / n) E is known of these.
    """

    solution: Solution
    modes: Modes
    n_carried: int


@dataclass(frozen=True)
class ReadRun:
    """A run, and the rows of it that the memory matrix is read from.

    Attributes
    ----------
    whole : Problem
        With all rows.
    problem : Problem
    trajectory : Trajectory
        The record of the rows that no preconditioner was made from.
    degrees : int
        What A is divided by: rows of ``whole``, less one for an intercept.
    """

    whole: Problem
    problem: Problem
    trajectory: Trajectory
    degrees: int

    @classmethod
    def of(cls, problem, trajectory, degrees):
        """Read all rows of a run that can be."""
        seen = trajectory.rows_seen()
        if not len(seen):
            return cls(problem, problem, trajectory, degrees)
        others = np.setdiff1d(np.arange(len(problem.target)), seen)
        read = replace(trajectory, predictor=trajectory.predictor.on_rows(others))
        return cls(problem, problem.batch(others), read, degrees)

    @cached_property
    def design(self):
        """The rows that are read, times the root of their weights."""
        return self.problem.sqrt_weighted()[0]

    @cached_property
    def has_one_basis(self):
        """Whether updates are linear, and elementwise in one eigenbasis."""
        return Run.recorded(self.whole, self.trajectory).has_one_basis()

    @property
    def smaller_side(self):
        return min(self.design.shape)

    @property
    def relative_error(self):
        """Relative standard error of the estimate on Gaussian rows."""
        return np.sqrt(2 / self.degrees)

    def represents(self, solution, modes, n_carried, tolerance):
        """Whether what is not carried is a small share of E where E is least."""
        carried = modes.temporal[:, :n_carried]
        missing = modes.squared_norms - (carried**2).sum(axis=1)
        return solution.share_of(missing, 2 * self.relative_error) <= tolerance**2


def solve(run, method, rng):
    """E on the temporal modes, by the spectrum, a complete basis, or random probes.

    Parameters
    ----------
    run : ReadRun
    method : "auto", "exact", "hutchinson" or int
        As :class:`skacv.risk.memory.memory_matrix.MemoryMatrix` takes it.
    rng : numpy Generator or RandomState

    Returns
    -------
    Solved
    """
    if method == "auto":
        method = "exact" if _is_exact_cheap(run) else "hutchinson"
    if method == "hutchinson":
        found = _on_modes(run, partial(in_rounds, rng=rng), IN_ROUNDS)
        return found or _on_modes(run, complete, COMPLETE)
    if method != "exact":
        take = partial(equally_probed, n_probes=method, rng=rng)
        return _on_modes(run, take, EQUALLY_PROBED)
    if run.has_one_basis:
        return _on_modes(run, spectral, SPECTRAL)
    return _on_modes(run, complete, COMPLETE)


def _is_exact_cheap(run):
    if run.has_one_basis:
        return is_decomposed(run.whole.design.shape)
    widest = np.count_nonzero(run.trajectory.coef[:, :, 0], axis=1).max()
    is_small = run.smaller_side * widest <= EXACT_ENTRIES
    return run.smaller_side <= EXACT_SIZE and is_small


def _on_modes(run, take, accuracy):
    """Solve on as many modes as represent the iterates near the least risk.

    Its size relative to the first residuals is known afterwards.

    Parameters
    ----------
    run : ReadRun
    take : callable
        ``take(run, modes, n_carried)`` is a Solution, or None to give up.
    accuracy : Accuracy

    Returns
    -------
    Solved or None
    """
    floor = accuracy.floor
    residuals = residuals_along(run.problem, run.trajectory)
    while True:
        modes = modes_of(residuals, accuracy.kept, floor)
        n_carried = n_leading(
            modes.temporal, modes.squared_norms, accuracy.carried, floor
        )
        solution = take(run, modes, n_carried)
        if solution is None:
            return None
        is_enough = run.represents(solution, modes, n_carried, accuracy.carried)
        if is_enough or floor <= LEAST_FLOOR:
            return Solved(solution, modes, n_carried)
        floor /= 10


def spectral(run, modes, n_carried):
    """Linear updates: A is a function of the spectrum alone.

    With a preconditioner, of that of the preconditioned objective, and of the
    share that the rows have in its directions.
    """
    trajectory = run.trajectory
    if trajectory.preconditioner() is None:
        eigenvalues = shares = run.problem.eigenvalues()
    else:
        basis = Eigenbasis.of_run(run.whole, trajectory)
        eigenvalues, shares = basis.eigenvalues, _shares(run, basis)
        trajectory = trajectory.as_gradient_descent()
    probes = TangentProbes(
        source=np.ones((len(eigenvalues), 1)),
        readout=shares[:, None] / run.degrees,
        n_by_mode=np.ones(n_carried, int),
    )
    working_sets = spectral_working_sets(trajectory, eigenvalues)
    return _without_error(modes, probes, trajectory, working_sets)


def _shares(run, basis):
    """Mean square of the rows' coordinates in a basis, (rank,)."""
    n_rows, shares = len(run.whole.target), 0.0
    others = np.setdiff1d(np.arange(n_rows), run.trajectory.rows_seen())
    for rows in np.array_split(others, -(-len(others) // ROW_BLOCK)):
        shares = shares + (basis.rows(rows) ** 2).sum(axis=0)
    return shares / len(others)


def complete(run, modes, n_carried):
    """A complete basis of the smaller side: traces without error."""
    size = run.smaller_side
    # With that length their mean stands for the identity, as that of random signs does.
    ends = _ends(run, np.sqrt(size) * np.eye(size))
    probes = TangentProbes(*ends, n_by_mode=np.full(n_carried, size))
    return _without_error(modes, probes, run.trajectory, _working_sets(run, probes))


def in_rounds(run, modes, n_carried, rng):
    """Random probes until their standard error is small enough.

    Returns
    -------
    Solution or None
        None where a complete basis takes about as many.
    """
    target = PROBE_ERROR_SHARE * run.relative_error
    wanted_of = partial(by_size, modes.temporal[:, :n_carried])
    wanted = wanted_of(FIRST_ROUND)
    found, n_tangents = _probed(run, modes, wanted, rng), wanted.sum()
    at_most = MAX_PROBES * n_carried
    while n_tangents < at_most and run.represents(
        found, modes, n_carried, IN_ROUNDS.carried
    ):
        error = found.share_of(found.squares_error(), 2 * run.relative_error)
        if error <= target:
            break
        # As many as should do by what has been seen so far.
        missing = int(np.ceil(found.n_probes * ((error / target) ** 2 - 1)))
        n_missing, size = wanted_of(missing).sum(), run.smaller_side
        # Where a complete basis carries at most twice their tangents.
        if size <= EXACT_INSTEAD_SIZE and size * n_carried <= 2 * n_missing:
            return None
        share = (at_most - n_tangents) / n_missing
        wanted = wanted_of(max(int(min(share, 1.0) * missing), MIN_ROUND))
        found = found.pooled_with(_probed(run, modes, wanted, rng))
        n_tangents += wanted.sum()
    return found


def by_size(carried, n_probes):
    """Probes in proportion to the size of a mode, as its error matters."""
    sizes = np.linalg.norm(carried, axis=0)
    wanted = np.ceil(n_probes * sizes / sizes[0]).astype(int)
    return np.clip(wanted, min(MIN_PROBES, n_probes), n_probes)


def equally_probed(run, modes, n_carried, n_probes, rng):
    """So many random probes for every mode: the textbook's pooled trace."""
    return _probed(run, modes, np.full(n_carried, n_probes), rng)


def _probed(run, modes, n_by_mode, rng):
    """One tangent pass over random probes, with the error they leave."""
    n_probes = int(n_by_mode.max())
    signs = random_signs((run.smaller_side, n_probes), rng)
    probes = TangentProbes(*_ends(run, signs), n_by_mode)
    working_sets = _working_sets(run, probes)
    temporal, responses = _carried(modes, probes, run.trajectory, working_sets)
    through = _feedback(modes, temporal[:, : len(n_by_mode)])
    deviations = np.zeros((len(temporal), n_probes, temporal.shape[1]))
    for k, n in enumerate(n_by_mode):
        own = responses[:, probes.mode == k]
        spread = own - own.mean(axis=1, keepdims=True)
        deviations[:, :n, k] = through(spread) / np.sqrt(n * max(n - 1, 1))
    return Solution(temporal, deviations)


def _ends(run, vectors):
    """Source and readout of vectors on the smaller side, rows or columns.

    tr(X M X')/n is read on the rows as r'X M X'r / n, on the columns as
    r'(X'X/n) M r.
    """
    design = run.design
    n_rows = design.shape[0]
    vectors = vectors.astype(design.dtype, copy=False)
    if design.side == "rows":
        source = design.t_dot(vectors)
        readout = source / n_rows
    else:
        source = vectors
        readout = design.t_dot(design.dot(vectors)) / n_rows
    readout = readout / run.degrees
    return source.astype(np.float32), readout.astype(np.float32)


def _working_sets(run, probes):
    design, _ = run.whole.sqrt_weighted()
    dtype = probes.source.dtype
    return column_working_sets(design, run.trajectory, probes.n_tangents, dtype)


def _without_error(modes, probes, trajectory, working_sets):
    temporal, _ = _carried(modes, probes, trajectory, working_sets)
    return Solution(temporal, np.zeros((len(temporal), 0, temporal.shape[1])))


def _carried(modes, probes, trajectory, working_sets):
    """Carry the leading modes; let the others follow what is known then."""
    temporal = modes.temporal.copy()
    n_carried = len(probes.n_by_mode)
    solution, responses = tangent_pass(
        trajectory, temporal[:, :n_carried], probes, working_sets
    )
    through = _feedback(modes, solution)
    temporal[:, :n_carried] = solution
    temporal[:, n_carried:] = through(temporal[:, n_carried:])
    return temporal, responses


def _feedback(modes, solution):
    """The map x -> (I - A/n)^-1 x, as far as ``solution`` determines it.

    (A/n) z = z - v is known for the carried modes; elsewhere x is taken at
    its projection on them (Galerkin).
    """
    driven = solution - modes.temporal[:, : solution.shape[1]]
    inverse = np.linalg.pinv(solution)
    closed = np.linalg.pinv(np.eye(solution.shape[1]) - inverse @ driven)
    return lambda x: x + driven @ (closed @ (inverse @ x))
