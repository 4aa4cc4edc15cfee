"""Variance of the signal, from a debiased iterate or from the labels."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

# Where there are at least so many rows to a column, least squares tell the signal from
# the noise; else the coefficients are taken as if they were random.
ROWS_PER_COLUMN = 2
# Shares of the variance between which that of random coefficients is looked for.
SHARES = (0.0, 0.999)


class Signal(NamedTuple):
    """The variance of a linear predictor.

    Attributes
    ----------
    size : float
        An estimate without bias: it may be negative.
    error : float
        Its standard error.
    shared : float
        Its covariance with coefficient j of a debiased iterate, over that of the linear
        predictor.
    """

    size: float
    error: float
    shared: float


def of_debiased(coef, mean_score, known, scores):
    """The variance of x'(c beta), from an iterate and what debiases it.

    That of the debiased iterate Z = b + Omega h, less p v of its noise,

        Z'Sigma Z - p v = b'Sigma b + 2 b'h + h'Omega h - p v.

    Parameters
    ----------
    coef : ndarray of shape (n_columns,)
        b.
    mean_score : ndarray of shape (n_columns,)
        h: X'scores / n.
    known : object
        ``covariance`` of the columns, and ``solved``, its inverse times an array.
    scores : ndarray of shape (n_rows,)

    Returns
    -------
    Signal
    """
    noise = np.sum(scores**2) / len(scores) ** 2
    size = coef @ known.covariance @ coef + 2 * coef @ mean_score
    size += mean_score @ known.solved(mean_score) - len(coef) * noise
    variance = 2 * len(coef) * noise**2 + 4 * noise * max(size, 0.0)
    return Signal(float(size), float(np.sqrt(variance)), 2 * noise)


def of_labels(X, labels, scores):
    """The variance of what is linear in x of the labels, without the covariance of X.

    By least squares where there are rows enough: the variance that they explain,
    adjusted for their number. Else by maximum likelihood with coefficients of the
    columns, of unit variance, as independent normal variables: right for any fixed ones
    that have nothing to do with the principal components of X (Jiang et al. 2016).

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    labels : ndarray of shape (n_rows,)
    scores : ndarray of shape (n_rows,)
        Scores of the debiased iterate, whose error is correlated with this one.

    Returns
    -------
    Signal
    """
    n_rows, n_columns = X.shape
    X, away = X - X.mean(axis=0), labels - labels.mean()
    estimate = by_random_coefficients
    if n_rows >= ROWS_PER_COLUMN * n_columns:
        estimate = by_least_squares
    size, error = estimate(X, away)
    return Signal(size, error, 2 * float(scores @ away) / n_rows**2)


def by_least_squares(X, y):
    """Variance explained by centred columns, with its standard error.

    Shapes: X (n_rows, n_columns); y (n_rows,).
    """
    n_free = len(y) - 1 - X.shape[1]
    left = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    noise = left @ left / n_free
    size = y @ y / (len(y) - 1) - noise
    return float(size), float(noise * np.sqrt(2 / n_free))


def by_random_coefficients(X, y):
    """The same by maximum likelihood, of random coefficients.

    Shapes: X (n_rows, n_columns); y (n_rows,).
    """
    scale = np.sqrt(np.mean(X**2, axis=0))
    scaled = X / np.where(scale > 0, scale, 1.0)
    gram = scaled @ scaled.T
    # The constant, which centred columns leave out, is made the first direction, the
    # only one below zero: others may have no part in the columns either.
    gram -= gram.trace() / len(y) ** 2
    values, vectors = np.linalg.eigh(gram)
    values, squares = values[1:], (vectors[:, 1:].T @ y) ** 2
    values = values / values.mean()

    def variances(share):
        return share * values + 1 - share

    def misfit(share):
        spread = variances(share)
        return np.log(spread).sum() + len(spread) * np.log(np.mean(squares / spread))

    share = minimize_scalar(misfit, bounds=SHARES, method="bounded").x
    spread = variances(share)
    total = np.mean(squares / spread)
    # The error of both variances, by the information that the likelihood has.
    slopes = np.stack([values, np.ones_like(values)]) / (total * spread)
    error = np.sqrt(np.linalg.inv(slopes @ slopes.T / 2)[0, 0])
    return float(total * share), float(error)
