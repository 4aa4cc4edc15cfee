"""The ways to take the traces in the memory matrix: spectrum, basis, probes.

Each solves E = F + (A / n) E on the temporal modes of the residuals F, where
A_{t,s} = tr(X M_{t,s} X') / n, and says what error random probes leave.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from .eigenbasis import Eigenbasis
from .modes import residual_modes
from .tangents import (
    Probes,
    column_working_sets,
    spectral_working_sets,
    tangent_pass,
)

# Sides up to this are probed by a complete basis, so that traces are exact.
# For the sake of memory, only while tangents have so many entries a mode.
EXACT_SIZE = 100
EXACT_ENTRIES = 2_000_000
# Linear updates take the spectrum up to this size of the smaller side.
SPECTRAL_SIZE = 2000
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

# How far the floor of an accuracy is lowered, where the noise is little.
LEAST_FLOOR = 1e-5


class Accuracy(NamedTuple):
    """What the modes of a way to take traces may miss of the residuals.

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


class TraceSolver:
    """Solves for E by the spectrum, a complete basis, or random probes.

    Parameters
    ----------
    problem : Problem
    trajectory : Trajectory
    degrees : int
        What A is divided by: rows, less one for an intercept.
    method : "auto", "exact", "hutchinson" or int
        As :func:`skacv.risk.memory_matrix.estimate_risk` takes it.
    """

    def __init__(self, problem, trajectory, degrees, method):
        self.whole, self.whole_design = problem, problem.whitened()[0]
        self.problem, self.trajectory = problem, trajectory
        seen = trajectory.rows_seen()
        if len(seen):
            others = np.setdiff1d(np.arange(len(problem.target)), seen)
            self.problem = problem.batch(others)
            self.trajectory = trajectory.of_rows(others)
        self.design, _ = self.problem.whitened()
        self.degrees = degrees
        self.smaller_side = min(self.design.shape)
        if method == "auto":
            method = "exact" if self._is_exact_cheap() else "hutchinson"
        self._solve, self.accuracy = self._way(method)
        self.modes = None

    def _is_exact_cheap(self):
        if self.trajectory.has_one_basis():
            return min(self.whole_design.shape) <= SPECTRAL_SIZE
        widest = np.count_nonzero(self.trajectory.coef[:, :, 0], axis=1).max()
        is_small = self.smaller_side * widest <= EXACT_ENTRIES
        return self.smaller_side <= EXACT_SIZE and is_small

    def solve(self, rng):
        """E on the temporal modes, which stay in ``modes``.

        How small the least risk is beside the first residuals shows afterwards:
        modes are added until they represent the iterates near it.

        Returns
        -------
        Solution
        """
        while True:
            _, kept, floor = self.accuracy
            self.modes = residual_modes(self.problem, self.trajectory, kept, floor)
            solution = self._solve(rng)
            if self._is_represented(solution) or floor <= LEAST_FLOOR:
                return solution
            self.accuracy = self.accuracy._replace(floor=floor / 10)

    def _is_represented(self, solution):
        """Whether what is not carried is a small share of E where E is least."""
        carried = self.modes.temporal[:, : self.n_carried()]
        missing = self.modes.squared_norms - (carried**2).sum(axis=1)
        share = solution.share_of(missing, self._near())
        return share <= self.accuracy.carried**2

    def _near(self):
        """Twice the relative standard error of the estimate on Gaussian rows."""
        return 2 * np.sqrt(2 / self.degrees)

    def _way(self, method):
        """What solves, as a function of the generator, and how accurately."""
        if method == "exact" and self.trajectory.has_one_basis():
            return self.spectral, SPECTRAL
        if method == "exact":
            return self.complete, COMPLETE
        if method == "hutchinson":
            return self.in_rounds, IN_ROUNDS
        return partial(self.equally_probed, method), EQUALLY_PROBED

    def n_carried(self):
        """How many modes tangents carry."""
        return self.modes.n_leading(self.accuracy.carried, self.accuracy.floor)

    def spectral(self, rng):
        """Linear updates: A is a function of the spectrum alone.

        With a preconditioner, of that of the preconditioned objective, and of the
        share that the rows have in its directions.
        """
        trajectory = self.trajectory
        if trajectory.preconditioner() is None:
            eigenvalues = shares = self.problem.eigenvalues()
        else:
            basis = Eigenbasis.of_run(self.whole, trajectory)
            eigenvalues, shares = basis.eigenvalues, self._shares(basis)
            trajectory = trajectory.as_gradient_descent()
        ones = np.ones(self.n_carried(), int)
        probes = Probes(
            source=np.ones((len(eigenvalues), 1)),
            readout=shares[:, None] / self.degrees,
            n_by_mode=ones,
            weight=ones,
        )
        working_sets = spectral_working_sets(trajectory, eigenvalues)
        return self._without_error(probes, trajectory, working_sets)

    def _shares(self, basis):
        """Mean square of the rows' coordinates in a basis, (rank,)."""
        n_rows, shares = len(self.whole.target), 0.0
        others = np.setdiff1d(np.arange(n_rows), self.trajectory.rows_seen())
        for rows in np.array_split(others, -(-len(others) // ROW_BLOCK)):
            shares = shares + (basis.rows(rows) ** 2).sum(axis=0)
        return shares / len(others)

    def complete(self, rng):
        """A complete basis of the smaller side: traces without error."""
        n_leading = self.n_carried()
        probes = Probes(
            *self._ends(np.eye(self.smaller_side)),
            n_by_mode=np.full(n_leading, self.smaller_side),
            weight=np.ones(n_leading),
        )
        working_sets = self._working_sets(probes)
        return self._without_error(probes, self.trajectory, working_sets)

    def in_rounds(self, rng):
        """Random probes until their standard error is small enough.

        A complete basis instead, where that takes about as many.
        """
        target = PROBE_ERROR_SHARE * np.sqrt(2 / self.degrees)
        wanted = self._by_size(FIRST_ROUND)
        found, n_tangents = self.probed(wanted, rng), wanted.sum()
        at_most = MAX_PROBES * self.n_carried()
        while n_tangents < at_most and self._is_represented(found):
            ratio = found.share_of(found.squares_error(), self._near()) / target
            if ratio <= 1:
                break
            # As many as should do by what has been seen so far.
            missing = int(np.ceil(found.n_probes * (ratio**2 - 1)))
            if self._is_complete_as_cheap(missing):
                self._solve, self.accuracy = self.complete, COMPLETE
                return self.solve(rng)
            share = (at_most - n_tangents) / self._by_size(missing).sum()
            wanted = self._by_size(max(int(min(share, 1.0) * missing), MIN_ROUND))
            found = found.pooled_with(self.probed(wanted, rng))
            n_tangents += wanted.sum()
        return found

    def _is_complete_as_cheap(self, n_probes):
        """Whether a complete basis carries at most twice so many probes' tangents."""
        tangents = self.smaller_side * self.n_carried()
        is_small = self.smaller_side <= EXACT_INSTEAD_SIZE
        return is_small and tangents <= 2 * self._by_size(n_probes).sum()

    def equally_probed(self, n_probes, rng):
        """So many random probes for every mode: the textbook's pooled trace."""
        return self.probed(np.full(self.n_carried(), n_probes), rng)

    def probed(self, n_by_mode, rng):
        """One tangent pass over random probes, with the error they leave."""
        n_probes = int(n_by_mode.max())
        signs = rng.choice([-1.0, 1.0], size=(self.smaller_side, n_probes))
        probes = Probes(*self._ends(signs), n_by_mode, 1 / n_by_mode)
        working_sets = self._working_sets(probes)
        temporal, responses = self._carried(probes, self.trajectory, working_sets)
        through = self._feedback(temporal[:, : len(n_by_mode)])
        deviations = np.zeros((len(temporal), n_probes, temporal.shape[1]))
        for k, n in enumerate(n_by_mode):
            own = responses[:, probes.mode == k]
            spread = own - own.mean(axis=1, keepdims=True)
            deviations[:, :n, k] = through(spread) / np.sqrt(n * max(n - 1, 1))
        return Solution(temporal, deviations)

    def _by_size(self, n_probes):
        """Probes in proportion to the size of a mode, as its error matters."""
        sizes = np.linalg.norm(self.modes.temporal[:, : self.n_carried()], axis=0)
        wanted = np.ceil(n_probes * sizes / sizes[0]).astype(int)
        return np.clip(wanted, min(MIN_PROBES, n_probes), n_probes)

    def _ends(self, vectors):
        """Source and readout of vectors on the smaller side, rows or columns.

        tr(X M X')/n is read on the rows as r'X M X'r / n, on the columns as
        r'(X'X/n) M r.
        """
        n_rows, n_columns = self.design.shape
        vectors = vectors.astype(self.design.dtype, copy=False)
        if n_rows <= n_columns:
            source = self.design.t_dot(vectors)
            readout = source / n_rows
        else:
            source = vectors
            readout = self.design.t_dot(self.design.dot(vectors)) / n_rows
        readout = readout / self.degrees
        return source.astype(np.float32), readout.astype(np.float32)

    def _working_sets(self, probes):
        return column_working_sets(
            self.whole_design, self.trajectory, probes.n_tangents, probes.source.dtype
        )

    def _without_error(self, probes, trajectory, working_sets):
        temporal, _ = self._carried(probes, trajectory, working_sets)
        return Solution(temporal, np.zeros((len(temporal), 0, temporal.shape[1])))

    def _carried(self, probes, trajectory, working_sets):
        """Carry the leading modes; let the others follow what is known then."""
        temporal = self.modes.temporal.copy()
        n_leading = len(probes.n_by_mode)
        solution, responses = tangent_pass(
            trajectory, temporal[:, :n_leading], probes, working_sets
        )
        through = self._feedback(solution)
        temporal[:, :n_leading] = solution
        temporal[:, n_leading:] = through(temporal[:, n_leading:])
        return temporal, responses

    def _feedback(self, solution):
        """The map x -> (I - A/n)^-1 x, as far as ``solution`` determines it.

        (A/n) z = z - v is known for the carried modes; elsewhere x is taken at
        its projection on them (Galerkin).
        """
        driven = solution - self.modes.temporal[:, : solution.shape[1]]
        inverse = np.linalg.pinv(solution)
        closed = np.linalg.pinv(np.eye(solution.shape[1]) - inverse @ driven)
        return lambda x: x + driven @ (closed @ (inverse @ x))
