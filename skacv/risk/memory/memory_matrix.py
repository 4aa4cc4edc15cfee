"""The memory-matrix estimate of the risk of every iterate (Bellec & Tan 2024).

The squared error is read here. With F the residuals of the iterates, M_{t,s} the
derivative of iterate t with respect to a shock in the gradient X'(y - X b_s)/n, and the
memory matrix A_{t,s} = tr(X M_{t,s} X')/n, strictly lower triangular,

    E_t = F_t + sum_{s<t} (A_{t,s} / n) E_s,      risk_t = ||E_t||^2 / n

estimates (b_t - beta)' Sigma (b_t - beta) + sigma^2 with neither Sigma nor
sigma known. With an intercept, n becomes n - 1 in both formulas and the risk
is multiplied by 1 + 1/n. Rows of uneven norm have residual maps of their own,
see :mod:`skacv.risk.memory.row_scales`.

E is solved for on the temporal modes of F: no row is looked at again. Traces are from
the spectrum of X, or from probes on the smaller side of X.

Rows that a preconditioner was made from have had a part in M. The trace and the mean
square are then over the others, of which A_{t,s} is the mean leverage
x_i' M_{t,s} x_i as before.

Runs where every iterate is the same linear pass through batches are read by
:mod:`.passes`, those of any loss with a curvature by :mod:`.curved_run`.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ...optim.blocks import MEMORY_BYTES, blocks
from ...optim.design import Design
from ...optim.penalties import SquaredL2
from ...optim.problem import Problem
from ...optim.trajectory import Trajectory
from ..cost import RunCost, is_decomposed
from ..eigenbasis import Eigenbasis
from ..held_out_rows import UNCENTRED
from ..random_labels import random_signs
from .curved_run import curved_risk
from .modes import (
    FIRST_ROUND,
    Accuracy,
    AlongRun,
    RiskEstimate,
    in_rounds,
    is_number,
    modes_of,
    n_leading,
    n_missing,
    probe_dtype,
    solution_by,
)
from .passes import is_one_map, risk_of_passes
from .row_scales import scales_of_rows, with_row_scales
from .tangents import ColumnSet, SquaredTangents, column_sets

# Sides of X up to this are probed by a complete basis, so that traces are exact.
EXACT_SIZE = 100
SPECTRAL = Accuracy(carried=1e-4, kept=1e-4, floor=0.01)
COMPLETE = Accuracy(carried=0.02, kept=0.01, floor=0.01)
EQUALLY_PROBED = Accuracy(carried=0.07, kept=0.01, floor=0.01)
# Closely fitted iterates may miss more here, and still err by less than probes do.
IN_ROUNDS = Accuracy(carried=0.07, kept=0.005, floor=0.1)


def estimate_risk(
    problem, trajectory, rule=UNCENTRED, method="auto", row_scales=False, rng=None
):
    """The :class:`RiskEstimate` of every iterate; Unreadable where there is none."""
    # ``method``: "exact" takes traces from the spectrum where updates are linear, else
    # by a complete basis; "hutchinson" by random probes, added until their standard
    # error is below that of the estimate itself; an int by so many probes; True by the
    # cheaper way; "auto" as True, but curved losses in the time of automatic
    # leave-one-out only. With ``row_scales`` rows whose norms are more uneven than
    # those of Gaussian rows have scales.
    is_single = problem.target.shape[1] == 1
    takes_all_rows = True
    for update, penalty in trajectory.first_updates():
        # Updates with a prox have a derivative for each target: they need a single one.
        has_traces = update.is_affine and (is_single or penalty.is_linear)
        if update.n_batches or not has_traces:
            takes_all_rows = False
    if problem.loss.is_quadratic and takes_all_rows:
        return _squared_risk(problem, trajectory, rule, method, row_scales, rng)
    if problem.loss.is_quadratic and is_one_map(trajectory):
        return risk_of_passes(problem, trajectory, rule, method, rng)
    return curved_risk(problem, trajectory, rule, method, row_scales, rng)


def _squared_risk(problem, trajectory, rule, method, row_scales, rng):
    """The estimate with the squared error, of updates that take all rows."""
    n_samples, n_outputs = problem.n_samples, problem.target.shape[1]
    degrees = n_samples - 1 if rule.refits_intercept else n_samples
    # The rows that no preconditioner was made from.
    read, record, seen = problem, trajectory, trajectory.rows_seen()
    if len(seen):
        others_than_seen = np.setdiff1d(np.arange(len(problem.target)), seen)
        predictor = trajectory.predictor.select_rows(others_than_seen)
        record = replace(trajectory, predictor=predictor)
        read = problem.batch(others_than_seen)
    run = SquaredRun(problem, read, record, degrees, read.sqrt_weighted()[0])
    solution, modes, n_carried = _solve(run, method, rng)

    # Rows may stand for many. What rows are like one by one (the spread of E^2, of
    # their norms) is read from those that are single rows of the data.
    n_read, n_single, weights = len(read.target), read.n_single, read.row_weights
    total, design, spatial = weights.sum(), run.design, modes.spatial
    if n_single < n_read:
        weights = weights[:n_single]
        spatial = spatial[:, :n_single] / np.sqrt(weights.sum() / total)
        design = design.rows(slice(n_single))
    weights = weights / weights.sum()
    share, scale_error = 0.0, np.inf
    if row_scales:
        scales, share = scales_of_rows(design)
        scale_error = 0.0
    if share > 0:
        if n_single < n_read:  # orthonormal in the sample, as they are in all rows
            flat = spatial.reshape(len(spatial), -1)
            values, vectors = np.linalg.eigh(flat @ flat.T)
            sizes = np.sqrt(np.maximum(values, np.finfo(float).tiny))
            flat = (vectors / sizes) @ (vectors.T @ flat)
            spatial = flat.reshape(spatial.shape)
        solution, spatial, scale_error = with_row_scales(
            solution, modes.temporal, n_carried, spatial, scales
        )

    # The rows that are read need not have the mean weight of all.
    inflation = 1 + 1 / n_samples if rule.refits_intercept else 1.0
    inflation *= n_samples / degrees / (n_read * total)
    squares, error = solution.squares()
    return RiskEstimate.of(
        (squares + modes.missing()) * inflation / n_outputs,
        error * inflation / n_outputs,
        # In units where the mean of E^2 over the rows is the risk.
        solution.temporal * np.sqrt(len(weights) * inflation),
        spatial,
        weights,
        read.n_samples,
        n_probes=solution.n_probes,
        row_scale_share=share if np.isfinite(scale_error) else 0.0,
        row_scale_error=scale_error,
    )


def _solve(run, method, rng, least_floor=1e-5):
    """E on the temporal modes; the modes; and the number that tangents carry."""
    # Modes represent the iterates near the least risk: until then the floor is lowered.
    problem, trajectory, size = run.problem, run.trajectory, min(run.design.shape)
    cost = RunCost.recorded(run.all_rows, trajectory)
    has_one_basis = cost.has_one_basis
    if method in ("auto", True) and not is_number(method):
        widest = np.count_nonzero(trajectory.coef[:, :, 0], axis=1).max()
        # Some 32 arrays of a mode's tangents, in single precision.
        is_cheap = size <= EXACT_SIZE and size * widest * 128 <= MEMORY_BYTES
        if has_one_basis:
            is_cheap = is_decomposed(run.all_rows.design.shape)
        method = "exact" if is_cheap else "hutchinson"
    if is_number(method):
        accuracy = EQUALLY_PROBED
    elif method == "hutchinson":
        accuracy = IN_ROUNDS
    else:
        accuracy = SPECTRAL if has_one_basis else COMPLETE
    # Residuals, times the roots of n times the rows' weights.
    root = np.sqrt(len(problem.target) * problem.row_weights)

    def residuals(rows):
        F = trajectory.predictor.of_rows(rows)
        F -= problem.target[rows]
        F *= -root[rows]
        return F

    F = AlongRun(trajectory.predictor.shape, residuals, cost.is_linear)
    # Relative standard error of the estimate on Gaussian rows, whatever the probes.
    relative_error, floor = np.sqrt(2 / run.degrees), accuracy.floor

    def lacks_modes(squares):
        """Whether modes that are not carried are a large share of E near its least."""
        # The share is a root mean square over the iterates within two standard errors
        # of the least.
        squares = np.maximum(squares, np.finfo(float).tiny)
        near = squares <= (1 + 2 * relative_error) * squares.min()
        share = (modes.missing(n_carried) / squares)[near]
        return np.sqrt(np.mean(share**2)) > accuracy.carried**2

    def missing_of(solution):
        squares, error = solution.squares()
        if lacks_modes(squares):  # which come first
            return 0
        return n_missing(solution.n_probes, squares, relative_error * squares, error)

    while True:
        modes = modes_of(F, accuracy.kept, floor)
        n_carried = n_leading(
            modes.temporal, modes.squared_norms, accuracy.carried, floor
        )
        if accuracy is SPECTRAL:
            solution = run.by_spectrum(modes, n_carried)
        elif accuracy is COMPLETE:
            # A complete basis, whose length makes its mean the identity.
            basis = np.sqrt(size) * np.eye(size)
            n_by_mode = np.full(n_carried, size)
            solution = run.by_probes(modes, n_by_mode, basis, is_random=False)
        elif accuracy is EQUALLY_PROBED:
            solution = run.probed(np.full(n_carried, method), modes, rng)
        else:
            solution = in_rounds(
                partial(run.probed, modes=modes, rng=rng),
                missing_of,
                modes.temporal[:, :n_carried],
                FIRST_ROUND,
                basis_size=size,
            )
            if solution is None:
                accuracy, floor = COMPLETE, COMPLETE.floor
                continue
        if floor <= least_floor or not lacks_modes(solution.squares()[0]):
            return solution, modes, n_carried
        floor /= 10


@dataclass(frozen=True)
class SquaredRun:
    """A run, and the problem and weighted design of the rows that are read from it."""

    all_rows: Problem
    problem: Problem
    trajectory: Trajectory
    degrees: int
    design: Design

    def by_spectrum(self, modes, n_carried):
        """V + W V of linear updates, whose A is a function of the spectrum alone."""
        # They commute with the Gram matrix, whose eigenvalues one probe of ones reads.
        # With a preconditioner these are those of the preconditioned objective, and
        # rows have a share in its directions.
        trajectory = self.trajectory
        if trajectory.preconditioner() is None:
            eigenvalues = shares = self.problem.eigenvalues()
        else:
            basis = Eigenbasis.of_run(self.all_rows, trajectory)
            eigenvalues, shares = basis.eigenvalues, 0.0
            n_rows = len(self.all_rows.target)
            rows_read = np.setdiff1d(np.arange(n_rows), trajectory.rows_seen())
            for part in blocks(len(rows_read), 8 * len(eigenvalues)):
                shares = shares + (basis.rows(rows_read[part]) ** 2).sum(axis=0)
            shares = shares / len(rows_read)
            trajectory = trajectory.as_gradient_descent()
        phases = []
        for phase in trajectory.phases:
            curvature = phase.penalty.common_curvature()
            assert curvature is not None  # as in every run with one basis
            phases.append(replace(phase, penalty=SquaredL2(curvature)))
        trajectory, index = replace(trajectory, phases=phases), np.arange(len(shares))
        times_gram = partial(np.multiply, eigenvalues[:, None])
        tangents = SquaredTangents(
            trajectory,
            modes.temporal[:, :n_carried],
            np.ones(n_carried, int),
            [ColumnSet(trajectory.n_updates, index, None, times_gram)],
            np.ones((len(eigenvalues), 1)),
            shares[:, None] / self.degrees,
        )
        tangents = trajectory.followed_by(tangents)
        solution = solution_by(tangents, modes, is_random=False)
        return replace(solution, temporal=modes.temporal + solution.temporal)

    def probed(self, n_by_mode, modes, rng):
        """V + W V by one round of random probes."""
        signs = random_signs((min(self.design.shape), int(n_by_mode.max())), rng)
        return self.by_probes(modes, n_by_mode, signs, is_random=True)

    def by_probes(self, modes, n_by_mode, vectors, is_random):
        """V + W V by probes r on the smaller side of X, the columns of ``vectors``."""
        # tr(X M X')/n is r'X M X'r / n on the rows, r'(X'X/n) M r on the columns.
        design, trajectory = self.design, self.trajectory
        source = vectors.astype(design.dtype, copy=False)
        if design.side == "rows":
            source = readout = design.t_dot(source)
        else:
            readout = design.t_dot(design.dot(source))
        readout = readout / design.shape[0] / self.degrees
        dtype = probe_dtype(np.abs(source).max() * np.abs(readout).max())
        all_rows, _ = self.all_rows.sqrt_weighted()
        tangents = SquaredTangents(
            trajectory,
            modes.temporal[:, : len(n_by_mode)],
            n_by_mode,
            column_sets(all_rows, trajectory, dtype, n_by_mode.sum()),
            source.astype(dtype),
            readout.astype(dtype),
        )
        tangents = trajectory.followed_by(tangents)
        solution = solution_by(tangents, modes, is_random=is_random)
        return replace(solution, temporal=modes.temporal + solution.temporal)
