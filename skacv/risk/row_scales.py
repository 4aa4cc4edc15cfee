"""Row scales: the memory matrix where rows have uneven norms.

Left out, row i has leverage in proportion to its scale t_i (the t_i have mean
one), so it has its own residual map, with one strictly lower triangular B,

    E_i = (I + t_i B) F_i,      mean_i t_i B (I + t_i B)^-1 = A / n.

With all t_i = 1 that is the published E = (I - A/n)^-1 F.

On numbers, let b(a) solve mean_i t_i b / (1 + t_i b) = a, and

    S(a) = b(a) (1 - a) / a,

which is 1 where all t_i are (the S-transform of their law, at -a). A/n is
nilpotent and B a power series in it, hence a function of it:

    B = (A/n) (I - A/n)^-1 S(A/n).

The solution Z of Z = V + (A/n) Z on the temporal modes V gives
(A/n) (I - A/n)^-1 V = (A/n) Z = Z - V, and S is applied on the span of Z
(Galerkin), as a polynomial: there is no memory matrix, and no further tangent.
"""

import numpy as np

from .row_norms import norm_spread
from .traces import Solution

# Of the polynomial; the more the scales differ, the higher it needs to be.
DEGREE = 10
N_NODES = 64


def scales_of_rows(design):
    """The scale of every row, t_i = 1 + rho (||x_i||^2 / mean - 1), and rho.

    rho is the share of the spread of the norms that Gaussian rows of the same
    covariance do not have: their leverage does not follow their norms.

    Returns
    -------
    scales : ndarray of shape (n_rows,)
        Not negative, of mean one.
    share : float
        rho, in [0, 1].
    """
    spread = norm_spread(design)
    share = float(spread.share())
    return 1 + share * (spread.relative - 1), share


def with_row_scales(solved, scales):
    """Give every row its own residual map.

    Parameters
    ----------
    solved : Solved
        E = F + (A / n) E on the temporal modes.
    scales : ndarray of shape (n_rows,)
        Not negative, of mean one.

    Returns
    -------
    solution : Solution
        Of E with row scales, on up to twice as many modes.
    spatial : ndarray of shape (n_modes, n_rows, n_replicas)
        Their rows, orthonormal.
    """
    solution, modes, n_carried = solved
    driven = solution.temporal - modes.temporal
    inverse = np.linalg.pinv(solution.temporal[:, :n_carried])
    on_span = inverse @ driven[:, :n_carried]
    # (S - 1) of the carried modes, and of the others by their share in these.
    beyond = _s_less_one(on_span, scales) @ (inverse @ solution.temporal)

    def scaled(change):
        return change + change[..., :n_carried] @ beyond

    # E_i = V c_i + B V (t_i c_i), and the factors with orthonormal rows again.
    n_modes, n_rows, n_replicas = modes.spatial.shape
    rows = np.concatenate([modes.spatial, modes.spatial * scales[:, None]])
    spatial, mixing = np.linalg.qr(rows.reshape(2 * n_modes, -1).T)
    temporal = np.hstack([modes.temporal, scaled(driven)]) @ mixing.T
    deviations = scaled(solution.deviations) @ mixing.T[n_modes:]
    return (
        Solution(temporal, deviations),
        spatial.T.reshape(-1, n_rows, n_replicas),
    )


def _s_less_one(matrix, scales):
    """S(a) - 1 at a matrix whose eigenvalues are near the disc |a - 1/2| < 1/2."""
    identity = np.eye(len(matrix))
    value = np.zeros_like(matrix)
    for coefficient in _polynomial(scales)[::-1]:
        value = value @ (2 * matrix - identity) + coefficient * identity
    return matrix @ value


def _polynomial(scales):
    """Coefficients of r, with S(a) = 1 + a r(2 a - 1) as nearly as can be.

    S is known at b without solving for it. It is fitted where b is imaginary,
    the rim of the disc if all scales are one, and so holds inside.
    """
    b = 1j * np.tan((np.arange(N_NODES) + 0.5) * np.pi / (2 * N_NODES))
    a = np.array([np.mean(scales * y / (1 + scales * y)) for y in b])
    s = b * (1 - a) / a
    weighted = np.vander(2 * a - 1, DEGREE + 1, increasing=True) * (a / s)[:, None]
    aim = (s - 1) / s
    fitted, *_ = np.linalg.lstsq(
        np.concatenate([weighted.real, weighted.imag]),
        np.concatenate([aim.real, aim.imag]),
        rcond=None,
    )
    return fitted
