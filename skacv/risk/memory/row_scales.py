"""Row scales: the memory matrix where rows have uneven norms.

Left out, row i has leverage in proportion to its scale t_i (the t_i have mean
one), so it has its own residual map, with one strictly lower triangular B,

    E_i = (I + t_i B) F_i,      mean_i t_i B (I + t_i B)^-1 = A / n.

With all t_i = 1 that is the published E = (I - A/n)^-1 F.

B commutes with A/n, so with M = mean_i t_i (I + t_i B)^-1 the equation is
B M = A/n. The solution Z of Z = V + (A/n) Z on the temporal modes V gives
V = (I - A/n) Z and (A/n) Z = Z - V, hence

    B V = M^-1 (A/n) (I - A/n) Z = M^-1 (I - A/n) (Z - V).

On the span of Z, A/n is a small matrix (Galerkin), and so are B and M: there is
no memory matrix, and no further tangent. How far the span leaves B V open shows
where (A/n) Z, which is known, is itself projected on it.

The span is not only cheaper than the whole of A/n. Where momentum and a few rows
of very large norm meet, the exact B grows geometrically along the run, although
no run without a row does; on the span it does not.
"""

import numpy as np
from numpy.polynomial.chebyshev import chebvander

from .traces import Solution

# Rows whose inner products say what norms Gaussian rows would have.
SAMPLED_ROWS = 200
# Standard errors of the variance of Gaussian rows' norms that are no excess.
NOISE = 2.0
# Nodes that stand for the scales of all rows.
N_NODES = 16
# Rounds for B on the span. Some 30 to 150 do.
MAX_ROUNDS = 500
ROUNDS_TOLERANCE = 1e-8
# Directions of the span of less relative size are rounding.
SINGULAR = 1e-12
# Where the span leaves the path open by more than this share, there are no scales.
UNDETERMINED = 1.0


def norm_spread(design):
    """How the squared norms of the rows of a design spread.

    tr(Sigma^2) is the mean squared inner product of distinct rows.

    Returns
    -------
    relative : ndarray of shape (n_rows,)
        Squared norm of every row over their mean.
    gaussian : float
        Variance of those that Gaussian rows of the same covariance have,
        2 tr(Sigma^2) / tr(Sigma)^2.
    excess : float
        By how much their variance exceeds it; 0 where it does not.
    """
    norms = design.squared_row_norms().astype(np.float64)
    n_rows, size = len(norms), norms.mean()
    if size == 0:
        return np.ones(n_rows), 0.0, 0.0
    sample = np.linspace(0, n_rows - 1, min(n_rows, SAMPLED_ROWS))
    sample = np.unique(sample.astype(int))
    inner = design.rows(sample).outer_gram().astype(np.float64)
    distinct = (inner**2).sum() - (np.diag(inner) ** 2).sum()
    gaussian = 2 * distinct / max(len(sample) * (len(sample) - 1), 1) / size**2
    relative = norms / size
    return relative, gaussian, max(relative.var() - gaussian, 0.0)


def scales_of_rows(design):
    """The scale of every row, t_i = 1 + rho (||x_i||^2 / mean - 1), and rho.

    rho is the share of the spread of the norms that Gaussian rows of the same
    covariance do not have, beyond sampling noise: their leverage does not follow their
    norms. The noise is the standard error of the sample variance of a chi-square over
    its d degrees, d = 2 / gaussian, whose kurtosis is 3 + 12 / d.

    Returns
    -------
    scales : ndarray of shape (n_rows,)
        Not negative, of mean one.
    share : float
        rho, in [0, 1].
    """
    relative, gaussian, excess = norm_spread(design)
    noise = NOISE * np.sqrt((2 + 6 * gaussian) / len(relative)) * gaussian
    variance = max(relative.var(), np.finfo(float).tiny)
    share = float(max(excess - noise, 0.0) / variance)
    return 1 + share * (relative - 1), share


def uneven_rows_bias(design, risk_path, train_path):
    """How much too low the memory matrix may be without row scales, as a share of it.

    To second order its average over rows loses var(t) B^2, where t is the
    squared norm of a row over the mean and 1 + B the ratio of held-out to
    training residuals. Only the excess over the variance of Gaussian rows
    counts.

    Returns
    -------
    float
        At the iterate of least estimated risk.
    """
    best = np.argmin(risk_path)
    ratio = np.clip(train_path[best] / max(risk_path[best], np.finfo(float).tiny), 0, 1)
    _, _, excess = norm_spread(design)
    return float(excess * (1 - np.sqrt(ratio)) ** 2)


def with_row_scales(solution, temporal, n_carried, spatial, scales):
    """Give every row its own residual map.

    Parameters
    ----------
    solution : Solution
        E = F + (A / n) E on the temporal modes.
    temporal : ndarray of shape (n_iterates, n_modes)
        F on these modes.
    n_carried : int
        Tangents have carried the first so many modes.
    spatial : ndarray of shape (n_modes, n_rows, n_replicas)
        What rows have of these modes, orthonormal.
    scales : ndarray of shape (n_rows,)
        Not negative, of mean one.

    Returns
    -------
    solution : Solution
        Solution for E with row scales, on up to twice as many modes.
    spatial : ndarray of shape (n_modes, n_rows, n_replicas)
        Their rows, orthonormal.
    error : float
        By which share of itself the span may leave the mean square of some
        iterate open; infinite where it does not determine row scales, and the
        solution is the one without.
    """
    driven = solution.temporal - temporal
    # An orthonormal basis of the span, and what A/n makes of it.
    side_runs = solution.temporal[:, :n_carried]
    span, size, turn = np.linalg.svd(side_runs, full_matrices=False)
    kept = size > SINGULAR * size[0]
    span, turn = span[:, kept], turn[kept].T / size[kept]
    mapped = driven[:, :n_carried] @ turn
    on_span = span.T @ mapped
    mean_response = _mean_response(on_span, scales)
    if mean_response is None:
        return solution, spatial, np.inf
    identity = np.eye(len(on_span))
    further = np.linalg.solve(mean_response, identity - on_span) - identity
    further = further @ (span.T @ solution.temporal)

    # E_i = V c_i + B V (t_i c_i), and the factors with orthonormal rows again.
    n_modes, n_rows, n_replicas = spatial.shape
    rows = np.concatenate([spatial, spatial * scales[:, None]])
    basis, mixing = np.linalg.qr(rows.reshape(2 * n_modes, -1).T)

    def scaled(change):
        return change + change[..., :n_carried] @ turn @ further

    def on_rows(change):
        return np.hstack([temporal, change]) @ mixing.T

    found = Solution(
        on_rows(scaled(driven)), scaled(solution.deviations) @ mixing.T[n_modes:]
    )
    projected = on_rows(driven + span @ (on_span @ further))
    squares = np.maximum(found.squares(), np.finfo(float).tiny)
    error = float(np.abs((projected**2).sum(axis=1) / squares - 1).max())
    if not error <= UNDETERMINED:
        return solution, spatial, np.inf
    return found, basis.T.reshape(-1, n_rows, n_replicas), error


def _mean_response(matrix, scales):
    """M = mean_i t_i (I + t_i B)^-1 where B M = ``matrix``, or None."""
    nodes, weights = _nodes(scales)
    weights, nodes = (weights * nodes)[:, None, None], nodes[:, None, None]
    identity, norm = np.eye(len(matrix)), np.linalg.norm
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            solution = matrix @ np.linalg.inv(identity - matrix)  # of equal scales
            for _ in range(MAX_ROUNDS):
                inverses = np.linalg.inv(identity + nodes * solution)
                mean = (weights * inverses).sum(axis=0)
                # Half way: the whole way swings about the solution, and off it.
                change = (matrix @ np.linalg.inv(mean) - solution) / 2
                solution = solution + change
                if norm(change) <= ROUNDS_TOLERANCE * norm(solution):
                    return mean
    except np.linalg.LinAlgError:
        pass
    return None


def _nodes(scales):
    """A few scales and their weights, with the mean of any smooth function.

    A quadrature of Gauss: polynomials up to twice the number of nodes have their
    mean over all rows.
    """
    relative = 2 * scales / scales.max() - 1
    basis, _ = np.linalg.qr(chebvander(relative, N_NODES - 1))
    nodes, vectors = np.linalg.eigh(basis.T @ (scales[:, None] * basis))
    weights = len(scales) * (basis.mean(axis=0) @ vectors) ** 2
    return nodes, weights
