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

The span is not only cheaper than all of A/n. Where momentum and a few rows
of very large norm meet, the exact B grows geometrically along the run, although
no run without a row does; on the span it does not.
"""

import numpy as np
from numpy.polynomial.chebyshev import chebvander

from .modes import Solution

TINY = np.finfo(float).tiny


def norm_spread(design, n_sampled=200):
    """Squared norms of rows over their mean; Gaussian rows' variance; its excess."""
    # Gaussian rows of the same covariance have 2 tr(Sigma^2) / tr(Sigma)^2. tr(Sigma^2)
    # is the mean squared inner product of distinct rows, of a sample here.
    norms = design.squared_row_norms().astype(np.float64)
    n_rows, size = len(norms), norms.mean()
    if size == 0:
        return np.ones(n_rows), 0.0, 0.0
    sample = np.linspace(0, n_rows - 1, min(n_rows, n_sampled))
    sample = np.unique(sample.astype(int))
    inner = design.rows(sample).outer_gram().astype(np.float64)
    distinct = (inner**2).sum() - (np.diag(inner) ** 2).sum()
    gaussian = 2 * distinct / max(len(sample) * (len(sample) - 1), 1) / size**2
    relative = norms / size
    return relative, gaussian, max(relative.var() - gaussian, 0.0)


def scales_of_rows(design):
    """The scale of every row, t_i = 1 + rho (||x_i||^2 / mean - 1), and rho."""
    # rho is the share of the spread of the norms that Gaussian rows of the same
    # covariance do not have, beyond sampling noise: their leverage does not follow
    # their norms. The noise is two standard errors of the sample variance of a
    # chi-square over its d degrees, d = 2 / gaussian, whose kurtosis is 3 + 12 / d.
    relative, gaussian, excess = norm_spread(design)
    noise = 2 * np.sqrt((2 + 6 * gaussian) / len(relative)) * gaussian
    share = float(max(excess - noise, 0.0) / max(relative.var(), TINY))
    return 1 + share * (relative - 1), share


def uneven_rows_bias(design, risk_path, train_path):
    """How much too low the least risk may be without row scales, as a share of it."""
    # To second order its average over rows loses var(t) B^2, where t is the squared
    # norm of a row over the mean and 1 + B the ratio of held-out to training residuals.
    # Only the excess over the variance of Gaussian rows counts.
    best = np.argmin(risk_path)
    ratio = np.clip(train_path[best] / max(risk_path[best], TINY), 0, 1)
    _, _, excess = norm_spread(design)
    return float(excess * (1 - np.sqrt(ratio)) ** 2)


def with_row_scales(solution, temporal, n_carried, spatial, scales, most_open=1.0):
    """E with row scales as a Solution on twice the modes, these rows', and an error."""
    # The error is the share of itself by which the span may leave the mean square of
    # some iterate open; infinite where there are no row scales. Shapes: temporal
    # (n_iterates, n_modes), F; spatial (n_modes, n_rows, n_outputs); scales (n_rows,),
    # of mean one.
    driven = solution.temporal - temporal
    # An orthonormal basis of the span, and A/n on it.
    span, size, turn = np.linalg.svd(
        solution.temporal[:, :n_carried], full_matrices=False
    )
    resolved = size > max(span.shape) * np.finfo(float).eps * size[0]
    span, turn = span[:, resolved], turn[resolved].T / size[resolved]
    on_span = span.T @ (driven[:, :n_carried] @ turn)
    mean_response = _mean_response(on_span, scales)
    if mean_response is None:
        return solution, spatial, np.inf
    identity = np.eye(len(on_span))
    further = np.linalg.solve(mean_response, identity - on_span) - identity
    further = further @ (span.T @ solution.temporal)

    # E_i = V c_i + B V (t_i c_i), and the factors with orthonormal rows again.
    n_modes, n_rows, n_outputs = spatial.shape
    rows = np.concatenate([spatial, spatial * scales[:, None]])
    basis, mixing = np.linalg.qr(rows.reshape(2 * n_modes, -1).T)
    B_V = driven + driven[:, :n_carried] @ turn @ further
    deviations = solution.deviations
    deviations = deviations + deviations[..., :n_carried] @ turn @ further
    scaled = Solution(
        np.hstack([temporal, B_V]) @ mixing.T, deviations @ mixing.T[n_modes:]
    )

    # Squared norms of E with (A/n) Z projected on the span.
    projected = driven + span @ (on_span @ further)
    projected = ((np.hstack([temporal, projected]) @ mixing.T) ** 2).sum(axis=1)
    squares, _ = scaled.squares()
    error = float(np.abs(projected / np.maximum(squares, TINY) - 1).max())
    if not error <= most_open:
        return solution, spatial, np.inf
    return scaled, basis.T.reshape(-1, n_rows, n_outputs), error


def _mean_response(matrix, scales, n_nodes=16, max_iter=500, tol=1e-8):
    """M = mean_i t_i (I + t_i B)^-1 where B M = ``matrix``; None if not reached."""
    nodes, weights = _nodes(scales, n_nodes)
    weights, nodes = (weights * nodes)[:, None, None], nodes[:, None, None]
    identity, norm = np.eye(len(matrix)), np.linalg.norm
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            B = matrix @ np.linalg.inv(identity - matrix)  # of equal scales
            for _ in range(max_iter):
                mean = (weights * np.linalg.inv(identity + nodes * B)).sum(axis=0)
                # Half way: a full step swings about the solution, and off it.
                change = (matrix @ np.linalg.inv(mean) - B) / 2
                B = B + change
                if norm(change) <= tol * norm(B):
                    return mean
    except np.linalg.LinAlgError:
        pass
    return None


def _nodes(scales, n_nodes):
    """A few scales and weights that give the mean over rows of smooth functions."""
    # Gauss quadrature: polynomials of degrees below twice the number of nodes have
    # their mean over all rows.
    relative = 2 * scales / scales.max() - 1
    basis, _ = np.linalg.qr(chebvander(relative, n_nodes - 1))
    nodes, vectors = np.linalg.eigh(basis.T @ (scales[:, None] * basis))
    weights = len(scales) * (basis.mean(axis=0) @ vectors) ** 2
    return nodes, weights
