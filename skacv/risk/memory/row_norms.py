"""Rows of uneven norm, whose leverage is not that of the average row."""

from typing import NamedTuple

import numpy as np

SAMPLED_ROWS = 200
# Standard errors of the variance of Gaussian rows' norms that are no excess.
NOISE = 2.0


class NormSpread(NamedTuple):
    """How the squared norms of the rows spread.

    Attributes
    ----------
    relative : ndarray of shape (n_rows,)
        Squared norm of every row over their mean.
    gaussian : float
        Variance of those that Gaussian rows of the same covariance have,
        2 tr(Sigma^2) / tr(Sigma)^2.
    excess : float
        By how much their variance exceeds it; 0 where it does not.
    """

    relative: np.ndarray
    gaussian: float
    excess: float

    def share(self):
        """The share of the variance that is excess beyond sampling noise.

        The noise is the standard error of the sample variance of a chi-square
        over its d degrees, d = 2 / ``gaussian``, whose kurtosis is 3 + 12 / d.
        """
        relative_error = np.sqrt((2 + 6 * self.gaussian) / len(self.relative))
        excess = self.excess - NOISE * relative_error * self.gaussian
        return max(excess, 0.0) / max(self.relative.var(), np.finfo(float).tiny)


def norm_spread(design):
    """The spread of the squared norms of the rows of a design.

    tr(Sigma^2) is the mean squared inner product of distinct rows.

    Returns
    -------
    NormSpread
    """
    norms = design.squared_row_norms().astype(np.float64)
    n_rows, size = len(norms), norms.mean()
    if size == 0:
        return NormSpread(np.ones(n_rows), 0.0, 0.0)
    sample = np.unique(
        np.linspace(0, n_rows - 1, min(n_rows, SAMPLED_ROWS)).astype(int)
    )
    inner = design.rows(sample).outer_gram().astype(np.float64)
    distinct = (inner**2).sum() - (np.diag(inner) ** 2).sum()
    gaussian = 2 * distinct / max(len(sample) * (len(sample) - 1), 1) / size**2
    relative = norms / size
    return NormSpread(relative, gaussian, max(relative.var() - gaussian, 0.0))


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
    return float(norm_spread(design).excess * (1 - np.sqrt(ratio)) ** 2)
