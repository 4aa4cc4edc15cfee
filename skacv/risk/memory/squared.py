"""The squared error: the memory-matrix estimate of Bellec & Tan (2024) itself.

With F the residuals of the iterates, M_{t,s} the derivative of iterate t with
respect to a shock in the gradient X'(y - X b_s)/n, and the memory matrix
A_{t,s} = tr(X M_{t,s} X')/n, strictly lower triangular,

    E_t = F_t + sum_{s<t} (A_{t,s} / n) E_s,      risk_t = ||E_t||^2 / n

estimates (b_t - beta)' Sigma (b_t - beta) + sigma^2 with neither Sigma nor
sigma known. With an intercept, n becomes n - 1 in both formulas and the risk
is multiplied by 1 + 1/n. Rows of uneven norm have residual maps of their own,
see :mod:`skacv.risk.memory.row_scales`.

E is solved for on the temporal modes of F: no row is looked at again. Traces are taken
from the spectrum of X, or from probes on the smaller side of X.

Rows that a preconditioner was made from have had a part in M. The trace and the mean
square are then taken over the others, of which A_{t,s} is the mean leverage
x_i' M_{t,s} x_i as before.
"""

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from ...optim.penalties import SquaredL2
from ...optim.problem import Problem
from ...optim.trajectory import Trajectory
from ..eigenbasis import Eigenbasis
from ..left_out.workload import Workload, is_decomposed
from ..random_labels import random_signs
from .estimate import RiskEstimate
from .modes import modes_of, n_leading, residuals_along
from .row_scales import scales_of_rows, with_row_scales
from .tangents import ColumnSet, SquaredTangents, column_sets
from .traces import Accuracy, ProbedRun, is_number, n_missing, probe_dtype

# Sides up to this are probed by a complete basis, so that traces are exact.
# For the sake of memory, only while tangents have so many entries a mode.
EXACT_SIZE = 100
EXACT_ENTRIES = 2_000_000
# Where half as many probes would be missing, a complete basis of up to this size.
EXACT_INSTEAD_SIZE = 512
# Rows at a time whose coordinates are squared.
ROW_BLOCK = 512
# The least floor of an accuracy, where there is little noise.
LEAST_FLOOR = 1e-5
SPECTRAL = Accuracy(side_runs=1e-4, kept=1e-4, floor=0.01)
COMPLETE = Accuracy(side_runs=0.02, kept=0.01, floor=0.01)
EQUALLY_PROBED = Accuracy(side_runs=0.07, kept=0.01, floor=0.01)
# Closely fitted iterates may miss more here, and still err by less than probes do.
IN_ROUNDS = Accuracy(side_runs=0.07, kept=0.005, floor=0.1)


def can_read(problem, trajectory):
    """Whether it is a run with the squared error whose updates take all rows.

    Updates with a prox have a derivative for each target, so they need a single one.
    """
    if not problem.loss.is_quadratic:
        return False
    is_single = problem.target.shape[1] == 1
    return all(
        update.is_affine and not update.n_batches and (is_single or penalty.is_linear)
        for update, penalty in trajectory.first_updates()
    )


def estimate_risk(problem, trajectory, refit, method, row_scales, rng):
    """The RiskEstimate of a run; arguments as of :func:`.memory_matrix.estimate_risk`.

    A standard error of probes is made smaller than what the estimate has on Gaussian
    rows whatever the probes.
    """
    n_samples, n_replicas = problem.n_samples, problem.target.shape[1]
    degrees = n_samples - 1 if refit.refits_intercept else n_samples
    run = SquaredRun.of(problem, trajectory, degrees)
    solution, modes, n_carried = run.solved(method, rng)
    n_probes = solution.n_probes
    spatial, design, weights = run.single_rows(modes.spatial)
    share, scale_error = 0.0, np.inf
    if row_scales:
        scales, share = scales_of_rows(design)
        scale_error = 0.0
    if share > 0:
        if len(weights) < len(run.problem.target):
            spatial = _balanced(spatial)
        solution, spatial, scale_error = with_row_scales(
            solution, modes.temporal, n_carried, spatial, scales
        )
    # The rows that are read need not have the mean weight of all.
    n_read, total = len(run.problem.target), run.problem.row_weights.sum()
    inflation = 1 + 1 / n_samples if refit.refits_intercept else 1.0
    inflation *= n_samples / degrees / (n_read * total)
    mc_se = solution.squares_error() * inflation / n_replicas
    # From here in units where the mean of E^2 over the rows is the risk.
    temporal = solution.temporal * np.sqrt(len(weights) * inflation)
    path = (solution.squares() + modes.missing()) * inflation / n_replicas
    return RiskEstimate.of(
        path,
        mc_se,
        (temporal, spatial),
        weights,
        run.problem.n_samples,
        n_probes=n_probes,
        row_scale_share=share if np.isfinite(scale_error) else 0.0,
        row_scale_error=scale_error,
    )


@dataclass(frozen=True)
class SquaredRun(ProbedRun):
    """A run, and the rows of it that the memory matrix is read from.

    Attributes
    ----------
    all_rows : Problem
        With all rows.
    trajectory : Trajectory
        The record of the rows that no preconditioner was made from.
    degrees : int
        What A is divided by: rows of ``all_rows``, less one for an intercept.
    """

    all_rows: Problem
    problem: Problem
    trajectory: Trajectory
    degrees: int

    exact_instead = EXACT_INSTEAD_SIZE

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
        return Workload.recorded(self.all_rows, self.trajectory).has_one_basis()

    @property
    def basis_size(self):
        """The smaller side of X."""
        return min(self.design.shape)

    @property
    def relative_error(self):
        """Relative standard error of the estimate on Gaussian rows."""
        return np.sqrt(2 / self.degrees)

    def single_rows(self, spatial):
        """The rows that are single rows of the data: all, or a sample at the beginning.

        Where other rows stand for many, traces and mean squares are those of all rows.
        What rows are like one by one (the spread of E^2, of their norms) is read from
        these.

        Returns
        -------
        spatial : ndarray of shape (n_modes, n_single, n_replicas)
            What they have of the modes, as if they were all.
        design : Design
        weights : ndarray of shape (n_single, 1)
            Their sum is one.
        """
        n_single, weights = self.problem.n_single, self.problem.row_weights
        if n_single == len(weights):
            return spatial, self.design, weights / weights.sum()
        own = weights[:n_single]
        spatial = spatial[:, :n_single] / np.sqrt(own.sum() / weights.sum())
        return spatial, self.design.rows(slice(n_single)), own / own.sum()

    def solved(self, method, rng):
        """E on the temporal modes, by the spectrum, a complete basis or random probes.

        Returns
        -------
        solution : Solution
        modes : Modes
            The modes that it is on.
        n_carried : int
            Tangents have carried the first so many: (A / n) E is known of these.
        """
        if is_number(method):
            take = partial(self._equally_probed, n_probes=method, rng=rng)
            return self._on_modes(take, EQUALLY_PROBED)
        if method in ("auto", True):
            method = "exact" if self._is_exact_cheap() else "hutchinson"
        if method == "hutchinson":
            found = self._on_modes(partial(self.in_rounds, rng=rng), IN_ROUNDS)
            return found or self._on_modes(self.complete, COMPLETE)
        if self.has_one_basis:
            return self._on_modes(self._spectral, SPECTRAL)
        return self._on_modes(self.complete, COMPLETE)

    def _is_exact_cheap(self):
        if self.has_one_basis:
            return is_decomposed(self.all_rows.design.shape)
        widest = np.count_nonzero(self.trajectory.coef[:, :, 0], axis=1).max()
        is_small = self.basis_size * widest <= EXACT_ENTRIES
        return self.basis_size <= EXACT_SIZE and is_small

    def _on_modes(self, take, accuracy):
        """Solve on as many modes as represent the iterates near the least risk.

        Its size relative to the first residuals is known afterwards.

        Parameters
        ----------
        take : callable
            ``take(modes, n_carried)`` is a Solution, or None to give up.

        Returns
        -------
        solution, modes, n_carried
            As of :meth:`solved`; or None.
        """
        floor = accuracy.floor
        residuals = residuals_along(self.problem, self.trajectory)
        while True:
            modes = modes_of(residuals, accuracy.kept, floor)
            n_carried = n_leading(
                modes.temporal, modes.squared_norms, accuracy.side_runs, floor
            )
            solution = take(modes, n_carried)
            if solution is None:
                return None
            is_enough = self._represents(solution, modes, n_carried, accuracy.side_runs)
            if is_enough or floor <= LEAST_FLOOR:
                return solution, modes, n_carried
            floor /= 10

    def _represents(self, solution, modes, n_carried, tolerance):
        """Whether what is not carried is a small share of E where E is least.

        In root mean square over the iterates within two standard errors of the least.
        """
        squares = np.maximum(solution.squares(), np.finfo(float).tiny)
        near = squares <= (1 + 2 * self.relative_error) * squares.min()
        share = (modes.missing(n_carried) / squares)[near]
        return np.sqrt(np.mean(share**2)) <= tolerance**2

    def missing_probes(self, modes, n_carried, found):
        """How many more a solution takes; none where it takes more modes first."""
        if not self._represents(found, modes, n_carried, IN_ROUNDS.side_runs):
            return 0
        squares, error = found.squares(), found.squares_error()
        return n_missing(found.n_probes, squares, self.relative_error * squares, error)

    def _equally_probed(self, modes, n_carried, n_probes, rng):
        """The same number of random probes for every mode: the usual pooled trace."""
        return self.probed(modes, np.full(n_carried, n_probes), rng)

    def _spectral(self, modes, n_carried):
        """Linear updates: A is a function of the spectrum alone.

        They commute with the Gram matrix, whose eigenvalues one probe, a vector of
        ones, reads without error. With a preconditioner these are those of the
        preconditioned objective, and rows have a share in its directions.
        """
        trajectory = self.trajectory
        if trajectory.preconditioner() is None:
            eigenvalues = shares = self.problem.eigenvalues()
        else:
            basis = Eigenbasis.of_run(self.all_rows, trajectory)
            eigenvalues, shares = basis.eigenvalues, self._shares(basis)
            trajectory = trajectory.as_gradient_descent()
        plain = [
            replace(phase, penalty=SquaredL2(phase.penalty.common_curvature()))
            for phase in trajectory.phases
        ]
        trajectory = replace(trajectory, phases=plain)
        index, n_updates = np.arange(len(eigenvalues)), trajectory.n_updates
        times_gram = partial(np.multiply, eigenvalues[:, None])
        tangents = SquaredTangents(
            trajectory,
            modes.temporal[:, :n_carried],
            np.ones(n_carried, int),
            [ColumnSet(n_updates, index, None, times_gram)],
            np.ones((len(eigenvalues), 1)),
            shares[:, None] / self.degrees,
        )
        return self.without_error(modes, trajectory.followed_by(tangents))

    def _shares(self, basis):
        """Mean square of the rows' coordinates in a basis, (rank,)."""
        n_rows, shares = len(self.all_rows.target), 0.0
        others = np.setdiff1d(np.arange(n_rows), self.trajectory.rows_seen())
        for rows in np.array_split(others, -(-len(others) // ROW_BLOCK)):
            shares = shares + (basis.rows(rows) ** 2).sum(axis=0)
        return shares / len(others)

    def probes(self, method, rng):
        """Source and readout of vectors on the smaller side, rows or columns.

        tr(X M X')/n is read on the rows as r'X M X'r / n, on the columns as
        r'(X'X/n) M r.
        """
        design, size = self.design, self.basis_size
        if method == "exact":
            # Their length makes their mean the identity, as that of signs is.
            vectors = np.sqrt(size) * np.eye(size)
        else:
            vectors = random_signs((size, method), rng)
        source = vectors.astype(design.dtype, copy=False)
        if design.side == "rows":
            source = readout = design.t_dot(source)
        else:
            readout = design.t_dot(design.dot(source))
        readout = readout / design.shape[0] / self.degrees
        square = np.abs(source).max() * np.abs(readout).max()
        dtype = probe_dtype(square)
        return source.astype(dtype), readout.astype(dtype)

    def tangents(self, temporal, n_by_mode, probes):
        source, readout = probes
        design, _ = self.all_rows.sqrt_weighted()
        sets = column_sets(design, self.trajectory, source.dtype, n_by_mode.sum())
        return self.trajectory.followed_by(
            SquaredTangents(self.trajectory, temporal, n_by_mode, sets, source, readout)
        )

    def _temporal(self, modes, tangents, feedback):
        """V + W V."""
        return modes.temporal + super()._temporal(modes, tangents, feedback)


def _balanced(spatial):
    """Modes of a sample of rows, orthonormal in it as they are in all rows."""
    flat = spatial.reshape(len(spatial), -1)
    values, vectors = np.linalg.eigh(flat @ flat.T)
    sizes = np.sqrt(np.maximum(values, np.finfo(float).tiny))
    return ((vectors / sizes) @ (vectors.T @ flat)).reshape(spatial.shape)
