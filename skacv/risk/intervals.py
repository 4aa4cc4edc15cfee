"""Prediction intervals from held-out residuals, at any iterate, without refits.

With R_i the absolute residual of row i for the iterate that never saw it, and
mu_{-i} that iterate's prediction, the jackknife+ (Barber, Candes, Ramdas &
Tibshirani 2021, eq. 1.5) takes quantiles of mu_{-i}(x) -+ R_i. Its coverage is
at least 1 - 2 alpha for exchangeable rows, and close to 1 - alpha as a rule.
"""

import numpy as np


def rank_of(coverage, n_rows):
    """Which of the ordered values of ``n_rows`` rows covers, ceil(c (n + 1)).

    Raises
    ------
    ValueError
        If there are too few rows for that coverage.
    """
    # What is a whole number but for rounding is that number.
    rank = int(np.ceil(coverage * (n_rows + 1) - 1e-9))
    if rank > n_rows:
        needed = int(np.ceil(coverage / (1 - coverage) - 1e-9))
        raise ValueError(
            f"coverage={coverage} needs at least {needed} rows with held-out "
            f"residuals, there are {n_rows}."
        )
    return rank


def around_predictions(predictions, residuals, coverage):
    """Predictions plus and minus a quantile of the absolute residuals.

    Parameters
    ----------
    predictions : ndarray of shape (n_samples, ...)
    residuals : ndarray of shape (n_rows, ...)
    coverage : float

    Returns
    -------
    ndarray of shape (n_samples, ..., 2)
        Lower and upper end.
    """
    rank = rank_of(coverage, len(residuals))
    width = np.sort(np.abs(residuals), axis=0)[rank - 1]
    return np.stack([predictions - width, predictions + width], axis=-1)


def jackknife_plus(predictions, residuals, coverage):
    """Quantiles of the predictions without each row, moved by its residual.

    Parameters
    ----------
    predictions : ndarray of shape (n_rows, n_samples)
        For every sample, by the iterate without each row.
    residuals : ndarray of shape (n_rows,)
    coverage : float

    Returns
    -------
    ndarray of shape (n_samples, 2)
        Lower and upper end.
    """
    rank = rank_of(coverage, len(residuals))
    width = np.abs(residuals)[:, None]
    lower = np.sort(predictions - width, axis=0)[len(residuals) - rank]
    upper = np.sort(predictions + width, axis=0)[rank - 1]
    return np.stack([lower, upper], axis=-1)
