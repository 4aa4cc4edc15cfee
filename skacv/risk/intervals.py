"""Prediction intervals from held-out residuals, at any iterate, without refits.

With R_i the absolute residual of row i for the iterate that never saw it, and
mu_{-i} that iterate's prediction, the jackknife+ (Barber, Candes, Ramdas &
Tibshirani 2021, eq. 1.5) takes quantiles of mu_{-i}(x) -+ R_i. Its coverage is
at least 1 - 2 alpha for exchangeable rows, and close to 1 - alpha as a rule.
"""

import numpy as np

# What is a whole number but for rounding is that number.
ROUNDING = 1e-9


def rank_of(coverage, n_rows):
    """Which of the ordered values of ``n_rows`` rows covers, ceil(c (n + 1)).

    Raises
    ------
    ValueError
        If there are too few rows for that coverage.
    """
    rank = max(1, int(np.ceil(coverage * (n_rows + 1) - ROUNDING)))
    if rank > n_rows:
        needed = int(np.ceil((coverage - ROUNDING) / (1 - coverage)))
        raise ValueError(
            f"coverage={coverage} needs at least {needed} rows with held-out "
            f"residuals, there are {n_rows}."
        )
    return rank


def around_predictions(predictions, residuals, rank):
    """Predictions plus and minus one of the ordered absolute residuals.

    Parameters
    ----------
    predictions : ndarray of shape (n_samples, ...)
    residuals : ndarray of shape (n_rows, ...)
    rank : int
        From :func:`rank_of`.

    Returns
    -------
    ndarray of shape (n_samples, ..., 2)
        Lower and upper end.
    """
    width = _ranked(np.abs(residuals), rank)
    return np.stack([predictions - width, predictions + width], axis=-1)


def jackknife_plus(predictions, residuals, rank):
    """Quantiles of the predictions without each row, moved by its residual.

    Ends may cross where the rank is below half the rows; never above.

    Parameters
    ----------
    predictions : ndarray of shape (n_rows, n_samples)
        For every sample, by the iterate without each row.
    residuals : ndarray of shape (n_rows,)
    rank : int
        From :func:`rank_of`.

    Returns
    -------
    ndarray of shape (n_samples, 2)
        Lower and upper end.
    """
    width = np.abs(residuals)[:, None]
    lower = _ranked(predictions - width, len(residuals) + 1 - rank)
    upper = _ranked(predictions + width, rank)
    return np.stack([lower, upper], axis=-1)


def _ranked(values, rank):
    """The value of that rank, 1 the smallest, along the rows."""
    return np.partition(values, rank - 1, axis=0)[rank - 1]
