"""Rows of uneven norm, which the memory matrix's average over rows misreads."""

import numpy as np

SAMPLED_ROWS = 200


def uneven_rows_bias(design, risk_path, train_path):
    """How low the memory matrix may read, as a share of it, where rows are uneven.

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
    sample = np.unique(
        np.linspace(0, n_rows - 1, min(n_rows, SAMPLED_ROWS)).astype(int)
    )
    inner = design.rows(sample).outer_gram().astype(np.float64)
    distinct = (inner**2).sum() - (np.diag(inner) ** 2).sum()
    gaussian = 2 * distinct / max(len(sample) * (len(sample) - 1), 1) / size**2
    excess = max(norms.var() / size**2 - gaussian, 0.0)
    best = np.argmin(risk_path)
    ratio = np.clip(train_path[best] / max(risk_path[best], np.finfo(float).tiny), 0, 1)
    return float(excess * (1 - np.sqrt(ratio)) ** 2)
