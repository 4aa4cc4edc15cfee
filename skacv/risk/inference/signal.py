"""Variance of the signal, from a debiased iterate or from the labels."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

# Where there are at least so many rows to a column, least squares tell the signal from
# the noise; else the coefficients are taken as if they were random.
ROWS_PER_COLUMN = 2


class Signal(NamedTuple):
    """An unbiased estimate of a linear predictor's variance; it may be negative."""

    size: float
    error: float
    # Covariance with coefficient j of a debiased iterate, over the predictor's.
    shared: float


def of_debiased(coef, mean_score, covariance, scores):
    """The variance of x'(c beta), from an iterate b and h = X'scores / n, as Signal."""
    # The variance of the debiased iterate Z = b + Omega h, less p v of its noise, is
    # Z'Sigma Z - p v = b'Sigma b + 2 b'h + h'Omega h - p v. Shapes: coef, mean_score
    # (n_columns,); scores (n_rows,).
    noise = np.sum(scores**2) / len(scores) ** 2
    size = coef @ covariance.covariance @ coef + 2 * coef @ mean_score
    size += mean_score @ covariance.solved(mean_score) - len(coef) * noise
    variance = 2 * len(coef) * noise**2 + 4 * noise * max(size, 0.0)
    return Signal(float(size), float(np.sqrt(variance)), 2 * noise)


def of_labels(X, labels, scores):
    """The variance of the part of the labels that is linear in x, as Signal."""
    # The covariance of X is not needed. The error is correlated with that of the
    # debiased iterate, whose scores are given. Shapes: labels, scores (n_rows,).
    n_rows, n_columns = X.shape
    X, centered = X - X.mean(axis=0), labels - labels.mean()
    estimate = by_random_coefficients
    if n_rows >= ROWS_PER_COLUMN * n_columns:
        estimate = by_least_squares
    size, error = estimate(X, centered)
    return Signal(size, error, 2 * float(scores @ centered) / n_rows**2)


def by_least_squares(X, y):
    """Variance of y that centred columns explain, by adjusted R^2, and its error."""
    n_free = len(y) - 1 - X.shape[1]
    residual = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    noise = residual @ residual / n_free
    size = y @ y / (len(y) - 1) - noise
    return float(size), float(noise * np.sqrt(2 / n_free))


def by_random_coefficients(X, y):
    """Variance of y that centred columns explain, by maximum likelihood; its error."""
    # The coefficients are taken to be random. The estimate holds for fixed ones that
    # are unrelated to the principal components of X (Jiang et al. 2016).
    scale = np.sqrt(np.mean(X**2, axis=0))
    scaled = X / np.where(scale > 0, scale, 1.0)
    gram = scaled @ scaled.T
    # The constant, which centred columns leave out, is made the first direction, the
    # only one below zero: further ones may have no part in the columns either.
    gram -= gram.trace() / len(y) ** 2
    values, vectors = np.linalg.eigh(gram)
    values, squares = values[1:], (vectors[:, 1:].T @ y) ** 2
    values = values / values.mean()

    def minus_log_likelihood(share):
        spread = share * values + 1 - share
        return np.log(spread).sum() + len(spread) * np.log(np.mean(squares / spread))

    bounds = 0.0, 0.999
    share = minimize_scalar(minus_log_likelihood, bounds=bounds, method="bounded").x
    spread = share * values + 1 - share
    total = np.mean(squares / spread)
    # The error of both variances, by the information in the likelihood.
    slopes = np.stack([values, np.ones_like(values)]) / (total * spread)
    error = np.sqrt(np.linalg.inv(slopes @ slopes.T / 2)[0, 0])
    return float(total * share), float(error)
