"""The memory-matrix estimate of the risk of every iterate (Bellec & Tan 2024).

With F the residuals of the iterates, M_{t,s} the derivative of iterate t with
respect to a shock in the gradient X'(y - X b_s)/n, and the memory matrix
A_{t,s} = tr(X M_{t,s} X')/n, strictly lower triangular,

    E_t = F_t + sum_{s<t} (A_{t,s} / n) E_s,      risk_t = ||E_t||^2 / n

estimates (b_t - beta)' Sigma (b_t - beta) + sigma^2 with neither Sigma nor
sigma known. With an intercept, n becomes n - 1 in both formulas and the risk
is multiplied by 1 + 1/n.
"""

from dataclasses import dataclass

import numpy as np

from .modes import FLOOR, residual_modes
from .tangents import (
    Probes,
    column_working_sets,
    spectral_working_sets,
    tangent_pass,
)

# Sides up to this are probed by a complete basis, so that traces are exact.
EXACT_SIZE = 100
# Linear updates take the spectrum up to this size of the smaller side.
SPECTRAL_SIZE = 2000
# Random probes are added until their standard error is at most this share of
# sqrt(2 / n), the relative standard error that the estimate has on Gaussian rows
# whatever the probes. It is asked of the rows within two such errors of the least.
PROBE_ERROR_SHARE = 1.0
FIRST_ROUND = 10
MAX_PROBES = 128
# On any one mode, so that their spread can be seen.
MIN_PROBES = 2
# The share of the residuals that the carried modes may miss. What is missing is
# orthogonal to what is carried, so the risk errs by its square only. Modes that
# are not carried follow by what the others show of the memory matrix; the
# factors of E keep modes up to the last share.
PROBED_TOLERANCE = 0.07
COMPLETE_TOLERANCE = 0.02
SPECTRAL_TOLERANCE = 1e-4
# Where the number of probes is left to the error, closely fitted iterates may be
# missed by a larger share of the largest residuals, and still err by less than
# probes do.
ROUNDS_FLOOR = 0.1
KEPT = (5e-3, ROUNDS_FLOOR)


@dataclass(frozen=True)
class RiskEstimate:
    """What the memory matrix says of a trajectory.

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
        The factors of E, scaled so that the mean square of its row t is
        ``path[t]``; in units of the target.
    n_probes : int
        Number of random probes; 0 where traces are exact.
    """

    path: np.ndarray
    se_path: np.ndarray
    mc_se_path: np.ndarray
    temporal: np.ndarray
    spatial: np.ndarray
    n_probes: int


def estimate_risk(problem, trajectory, *, method="auto", fit_intercept=False, rng=None):
    """Estimate the risk of every iterate of a recorded trajectory.

    Parameters
    ----------
    problem : Problem
        With the squared error as loss.
    trajectory : Trajectory
        Of one replica where a penalty has a prox; else of any number of
        targets, which share the memory matrix.
    method : "auto", "exact", "hutchinson" or int
        How traces are taken. "exact": from the spectrum where updates are
        linear, else by a complete basis of the smaller side of X.
        "hutchinson": by random probes, added until their standard error is
        below that of the estimate itself. An int is a number of probes.
        "auto": exact where that is cheap, else random probes.
    fit_intercept : bool
        Whether the design and the target were centred by their means.
    rng : numpy Generator or RandomState
        Draws the probes.

    Returns
    -------
    RiskEstimate
    """
    design, _ = problem.whitened()
    n_rows, n_replicas = problem.target.shape
    if n_replicas > 1 and not trajectory.has_linear_updates():
        raise ValueError("Updates with a prox need a single target.")
    exactly_linear = trajectory.has_linear_updates() and method in ("auto", "exact")
    kept = (SPECTRAL_TOLERANCE, FLOOR) if exactly_linear else KEPT
    modes = residual_modes(problem, trajectory, *kept)
    degrees = n_rows - 1 if fit_intercept else n_rows
    solution = _Solver(design, trajectory, modes, degrees).solve(method, rng)
    inflation = (1 + 1 / n_rows if fit_intercept else 1.0) / degrees
    mc_se = solution.squares_error() * inflation / n_replicas
    # From here in units where the mean of E^2 over the rows is the risk.
    temporal = solution.temporal * np.sqrt(n_rows * inflation)
    row_se = _standard_error_over_rows(temporal, modes.spatial)
    return RiskEstimate(
        path=(solution.squares() + modes.missing()) * inflation / n_replicas,
        se_path=np.sqrt(row_se**2 + mc_se**2),
        mc_se_path=mc_se,
        temporal=temporal,
        spatial=modes.spatial / np.sqrt(n_rows * problem.row_weights),
        n_probes=solution.n_probes,
    )


def _standard_error_over_rows(temporal, spatial, block=512):
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


def uneven_rows_bias(design, estimate, train_path):
    """How low the estimate may read, as a share of it, where rows are uneven.

    The estimator averages the leverage of the rows. To second order the
    average loses var(t) B^2, where t is the squared norm of a row over the
    mean and 1 + B the ratio of held-out to training residuals. Only the
    variance of t beyond that of Gaussian rows, 2 tr(Sigma^2) / tr(Sigma)^2,
    counts; tr(Sigma^2) is the mean squared inner product of distinct rows.

    Returns
    -------
    float
        At the iterate of least estimated risk.
    """
    norms = design.squared_row_norms().astype(np.float64)
    size = norms.mean()
    if size == 0:
        return 0.0
    n_rows = len(norms)
    sample = np.unique(np.linspace(0, n_rows - 1, min(n_rows, 200)).astype(int))
    inner = design.rows(sample).outer_gram().astype(np.float64)
    distinct = (inner**2).sum() - (np.diag(inner) ** 2).sum()
    gaussian = 2 * distinct / max(len(sample) * (len(sample) - 1), 1) / size**2
    excess = max(norms.var() / size**2 - gaussian, 0.0)
    best = np.argmin(estimate.path)
    ratio = np.clip(train_path[best] / max(estimate.path[best], 1e-300), 0, 1)
    return float(excess * (1 - np.sqrt(ratio)) ** 2)


@dataclass(frozen=True)
class _Solution:
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

    def relative_error(self, within):
        """Relative standard error due to the probes where the path is read.

        Root mean square over the rows whose risk is at most ``1 + within``
        times the least.
        """
        squares = np.maximum(self.squares(), np.finfo(float).tiny)
        near = squares <= (1 + within) * squares.min()
        return np.sqrt(np.mean((self.squares_error() / squares)[near] ** 2))

    def pooled_with(self, other):
        """Two rounds of probes together, each with the weight of its number."""
        total = self.n_probes + other.n_probes
        own, others = self.n_probes / total, other.n_probes / total
        return _Solution(
            own * self.temporal + others * other.temporal,
            np.concatenate([own * self.deviations, others * other.deviations], axis=1),
        )


class _Solver:
    """The ways to solve for E: by the spectrum, a complete basis, or probes."""

    def __init__(self, design, trajectory, modes, degrees):
        self.design = design
        self.trajectory = trajectory
        self.modes = modes
        self.degrees = degrees
        self.smaller_side = min(design.shape)

    def solve(self, method, rng):
        linear = self.trajectory.has_linear_updates()
        if method == "auto":
            cheap = SPECTRAL_SIZE if linear else EXACT_SIZE
            method = "exact" if self.smaller_side <= cheap else "hutchinson"
        if method == "exact":
            return self.spectral() if linear else self.complete()
        if method == "hutchinson":
            return self.in_rounds(rng)
        return self.equally_probed(method, rng)

    def spectral(self):
        """Linear updates: A is a function of the spectrum alone."""
        eigenvalues = self.design.spectrum()
        n_leading = self.modes.n_leading(SPECTRAL_TOLERANCE)
        ones = np.ones(n_leading, int)
        probes = Probes(
            source=np.ones((len(eigenvalues), 1)),
            readout=eigenvalues[:, None] / self.degrees,
            n_by_mode=ones,
            weight=ones,
        )
        working_sets = spectral_working_sets(self.trajectory, eigenvalues)
        return self._without_error(probes, working_sets)

    def complete(self):
        """A complete basis of the smaller side: traces without error."""
        n_leading = self.modes.n_leading(COMPLETE_TOLERANCE)
        probes = Probes(
            *self._ends(np.eye(self.smaller_side)),
            n_by_mode=np.full(n_leading, self.smaller_side),
            weight=np.ones(n_leading),
        )
        working_sets = self._working_sets(probes)
        return self._without_error(probes, working_sets)

    def in_rounds(self, rng):
        """Random probes until their standard error is small enough."""
        intrinsic = np.sqrt(2 / self.degrees)
        most = min(MAX_PROBES, self.smaller_side)
        n_probes = min(FIRST_ROUND, most)
        found = self.probed(self._by_size(n_probes), rng)
        while found.n_probes < most:
            ratio = found.relative_error(2 * intrinsic) / intrinsic
            if ratio <= PROBE_ERROR_SHARE:
                break
            # As many as should do by what has been seen so far.
            wanted = found.n_probes * (ratio / PROBE_ERROR_SHARE) ** 2
            missing = int(np.ceil(wanted)) - found.n_probes
            n_probes = np.clip(missing, FIRST_ROUND // 2, most - found.n_probes)
            found = found.pooled_with(self.probed(self._by_size(n_probes), rng))
        return found

    def equally_probed(self, n_probes, rng):
        """So many random probes for every mode: the textbook's pooled trace."""
        n_leading = self.modes.n_leading(PROBED_TOLERANCE)
        return self.probed(np.full(n_leading, n_probes), rng)

    def probed(self, n_by_mode, rng):
        """One tangent pass over random probes, with the error they leave."""
        n_probes = int(n_by_mode.max())
        signs = rng.choice([-1.0, 1.0], size=(self.smaller_side, n_probes))
        probes = Probes(*self._ends(signs), n_by_mode, 1 / n_by_mode)
        working_sets = self._working_sets(probes)
        temporal, responses = self._carried(probes, working_sets)
        through = self._feedback(temporal[:, : len(n_by_mode)])
        deviations = np.zeros((len(temporal), n_probes, temporal.shape[1]))
        for k, n in enumerate(n_by_mode):
            own = responses[:, probes.mode == k]
            spread = own - own.mean(axis=1, keepdims=True)
            deviations[:, :n, k] = through(spread) / np.sqrt(n * max(n - 1, 1))
        return _Solution(temporal, deviations)

    def _by_size(self, n_probes):
        """Probes in proportion to the size of a mode, as its error matters."""
        n_leading = self.modes.n_leading(PROBED_TOLERANCE, ROUNDS_FLOOR)
        sizes = np.linalg.norm(self.modes.temporal[:, :n_leading], axis=0)
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
            self.design, self.trajectory, probes.n_tangents, probes.source.dtype
        )

    def _without_error(self, probes, working_sets):
        temporal, _ = self._carried(probes, working_sets)
        return _Solution(temporal, np.zeros((len(temporal), 0, temporal.shape[1])))

    def _carried(self, probes, working_sets):
        """Carry the leading modes; let the others follow what is known then."""
        temporal = self.modes.temporal.copy()
        n_leading = len(probes.n_by_mode)
        solution, responses = tangent_pass(
            self.trajectory, temporal[:, :n_leading], probes, working_sets
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
