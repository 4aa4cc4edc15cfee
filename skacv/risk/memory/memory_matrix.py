"""The memory-matrix estimate of the risk of every iterate (Bellec & Tan 2024).

With F the residuals of the iterates, M_{t,s} the derivative of iterate t with
respect to a shock in the gradient X'(y - X b_s)/n, and the memory matrix
A_{t,s} = tr(X M_{t,s} X')/n, strictly lower triangular,

    E_t = F_t + sum_{s<t} (A_{t,s} / n) E_s,      risk_t = ||E_t||^2 / n

estimates (b_t - beta)' Sigma (b_t - beta) + sigma^2 with neither Sigma nor
sigma known. With an intercept, n becomes n - 1 in both formulas and the risk
is multiplied by 1 + 1/n. Rows of uneven norm have residual maps of their own,
see :mod:`skacv.risk.memory.row_scales`.

Rows that a preconditioner was made from have had a part in M. The trace and the mean
square are then taken over the others, of which A_{t,s} is the mean leverage
x_i' M_{t,s} x_i as before.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..reader import Unreadable, read
from ..refit import UNCENTRED
from .row_scales import scales_of_rows, with_row_scales
from .traces import ReadRun, Solved, solve


@dataclass(frozen=True)
class RiskEstimate:
    """The risk of every iterate by the memory matrix.

    Attributes
    ----------
    path : ndarray of shape (n_iterates,)
        Estimated risk of every iterate, mean over targets.
    se_path : ndarray of shape (n_iterates,)
        Standard error of ``path``: the spread of E^2 over rows, and the
        probes', together.
    mc_se_path : ndarray of shape (n_iterates,)
        Standard error due to random probes; zero where traces are exact.
    temporal : ndarray of shape (n_iterates, n_modes)
    spatial : ndarray of shape (n_modes, n_rows, n_targets)
        The factors of E, scaled so that the (weighted) mean square of its row t is
        ``path[t]``, but for the little that the modes dropped from the factors add to
        that; in units of the target.
    n_probes : int
        Number of random probes; 0 where traces are exact.
    row_scale_share : float
        Share of the spread of the rows' squared norms that scales them; 0 is
        the published estimate.
    row_scale_error : float
        By which share of itself ``path`` may err somewhere because scales are
        taken on the modes alone; infinite where rows have none, asked for or not.
    """

    path: np.ndarray
    se_path: np.ndarray
    mc_se_path: np.ndarray
    temporal: np.ndarray
    spatial: np.ndarray
    n_probes: int
    row_scale_share: float = 0.0
    row_scale_error: float = np.inf

    @classmethod
    def of(cls, path, mc_se_path, factors, weights, n_samples=None, **others):
        """From factors of E whose rows are multiplied by the root of n ``weights``.

        They may be a sample of ``n_samples`` rows, over which the mean is.
        """
        temporal, spatial = factors
        row_se = standard_error_over_rows(temporal, spatial)
        if n_samples is not None:
            row_se *= np.sqrt(len(weights) / n_samples)
        se_path = np.sqrt(row_se**2 + mc_se_path**2)
        spatial = spatial / np.sqrt(len(weights) * weights)
        return cls(path, se_path, mc_se_path, temporal, spatial, **others)


@dataclass(frozen=True)
class MemoryMatrix:
    """Reader of the memory-matrix estimate.

    Parameters
    ----------
    method : "auto", "exact", "hutchinson" or int
        How traces are taken. "exact": from the spectrum where updates are
        linear, else by a complete basis of the smaller side of X.
        "hutchinson": by random probes, added until their standard error is
        below that of the estimate itself. An int is a number of probes.
        "auto": exact where that is cheap, else random probes.
    row_scales : bool
        Whether rows whose norms are more uneven than Gaussian rows' have
        scales of their own.
    rng : numpy Generator or RandomState
        Draws the probes.
    """

    method: object = "auto"
    row_scales: bool = False
    rng: object = None

    def requires(self, problem, trajectory):
        """The squared error, derivatives of all updates, and no batches."""
        if not problem.loss.is_quadratic:
            raise Unreadable(
                "The memory matrix is read with the squared error only, not with "
                f"{type(problem.loss).__name__}."
            )
        for update, penalty in trajectory.first_updates():
            if not update.is_affine:
                raise Unreadable(
                    "The memory matrix needs the derivative of every update, and "
                    f"{type(update).__name__} has none here."
                )
            if update.n_batches:
                raise Unreadable(
                    "The memory matrix of passes through batches is read from random "
                    "labels: see skacv.risk.memory.passes."
                )
            if problem.target.shape[1] > 1 and not penalty.is_linear:
                raise Unreadable("Updates with a prox need a single target.")

    def read(self, problem, trajectory, refit):
        """The RiskEstimate of a run."""
        n_samples, n_replicas = problem.n_samples, problem.target.shape[1]
        degrees = n_samples - 1 if refit.recentres else n_samples
        run = ReadRun.of(problem, trajectory, degrees)
        single = SingleRows.of(run, solve(run, self.method, self.rng))
        (solution, modes, _), spatial = single.solved, single.solved.modes.spatial
        n_probes, share, scale_error = solution.n_probes, 0.0, np.inf
        if self.row_scales:
            scales, share = scales_of_rows(single.design)
            scale_error = 0.0
        if share > 0:
            solution, spatial, scale_error = with_row_scales(single.balanced(), scales)
        # The rows that are read need not have the mean weight of all.
        n_read, total = len(run.problem.target), run.problem.row_weights.sum()
        inflation = 1 + 1 / n_samples if refit.recentres else 1.0
        inflation *= n_samples / degrees / (n_read * total)
        mc_se = solution.squares_error() * inflation / n_replicas
        # From here in units where the mean of E^2 over the rows is the risk.
        temporal = solution.temporal * np.sqrt(len(single.weights) * inflation)
        path = (solution.squares() + modes.missing()) * inflation / n_replicas
        return RiskEstimate.of(
            path,
            mc_se,
            (temporal, spatial),
            single.weights,
            single.n_samples,
            n_probes=n_probes,
            row_scale_share=share if np.isfinite(scale_error) else 0.0,
            row_scale_error=scale_error,
        )


@dataclass(frozen=True)
class SingleRows:
    """The rows of a problem that are single rows of the data: all, or a sample.

    Where other rows stand for many, traces and mean squares are those of all rows. What
    rows are like one by one (the spread of E^2, of their norms) is read from these.

    Attributes
    ----------
    solved : Solved
        Whose modes have these rows, as if they were all.
    design : Design
    weights : ndarray of shape (n_single, 1)
        Their sum is one.
    n_samples : int or None
        How many rows they are a sample of, at random; None of themselves.
    """

    solved: Solved
    design: object
    weights: np.ndarray
    n_samples: int | None

    @classmethod
    def of(cls, run, solved):
        """Those of a run that is read, and of E on its temporal modes."""
        n_single, weights = run.problem.n_single, run.problem.row_weights
        total = weights.sum()
        if n_single == len(weights):
            return cls(solved, run.design, weights / total, None)
        own, modes = weights[:n_single], solved.modes
        spatial = modes.spatial[:, :n_single] / np.sqrt(own.sum() / total)
        return cls(
            solved._replace(modes=replace(modes, spatial=spatial)),
            run.design.rows(slice(n_single)),
            own / own.sum(),
            run.problem.n_samples,
        )

    def balanced(self):
        """E on the modes, with rows that are orthonormal in the sample as in all."""
        if self.n_samples is None:
            return self.solved
        modes = self.solved.modes
        flat = modes.spatial.reshape(len(modes.spatial), -1)
        values, vectors = np.linalg.eigh(flat @ flat.T)
        sizes = np.sqrt(np.maximum(values, np.finfo(float).tiny))
        spatial = (vectors / sizes) @ (vectors.T @ flat)
        spatial = spatial.reshape(modes.spatial.shape)
        return self.solved._replace(modes=replace(modes, spatial=spatial))


def estimate_risk(problem, trajectory, refit=UNCENTRED, **settings):
    """Estimate the risk of every iterate of a recorded trajectory.

    Parameters
    ----------
    problem : Problem
        With the squared error as loss.
    trajectory : Trajectory
        It has one target where a penalty has a prox; else any number of
        targets, which share the memory matrix.
    refit : Refit
        What a fit without some rows would be.
    **settings
        ``method``, ``row_scales`` and ``rng`` of :class:`MemoryMatrix`.

    Returns
    -------
    RiskEstimate

    Raises
    ------
    Unreadable
        If the memory matrix is not what a run of this kind is read from.
    """
    return read(MemoryMatrix(**settings), problem, trajectory, refit)


def standard_error_over_rows(temporal, spatial, block=512):
    """Standard error of the mean over rows of E^2, a block of rows at a time."""
    n_rows = spatial.shape[1]
    total = np.zeros(len(temporal))
    total_squares = np.zeros(len(temporal))
    for first in range(0, n_rows, block):
        rows = np.tensordot(temporal, spatial[:, first : first + block], axes=1)
        cost = np.einsum("tir,tir->ti", rows, rows) / rows.shape[2]
        total += cost.sum(axis=1)
        total_squares += (cost**2).sum(axis=1)
    variance = total_squares / n_rows - (total / n_rows) ** 2
    return np.sqrt(np.clip(variance, 0, None) / max(n_rows - 1, 1))
