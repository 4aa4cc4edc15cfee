"""Data and sums that all benchmarks share."""

import numpy as np


def sparse_regression(n, p, n_nonzero, seed):
    """The Gaussian design of Bellec & Tan's page: X, y, beta, noise level 1.5."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    beta = np.zeros(p)
    beta[:n_nonzero] = 15 / np.sqrt(n)
    return X, X @ beta + 1.5 * rng.standard_normal(n), beta


def true_risk(coef, intercept, beta, noise_variance=1.5**2):
    """Of linear predictions, rows being standard Gaussian with mean zero."""
    return ((coef - beta) ** 2).sum(axis=-1) + np.square(intercept) + noise_variance


def rows_of(kind, n, p, rng):
    """Rows of a design, and the root of their covariance (None: identity)."""
    draw = rng.standard_normal((n, p))
    if kind == "AR(.5)":
        distance = np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
        root = np.linalg.cholesky(0.5**distance)
        return draw @ root.T, root
    if kind == "Rademacher":
        return np.sign(draw), None
    if kind in ("t5 rows", "t3 rows"):
        degrees = int(kind[1])
        # Scaled to the covariance of the others, identity.
        chi2 = rng.chisquare(degrees, (n, 1))
        return draw * np.sqrt((degrees - 2) / chi2), None
    if kind == "two groups":
        # Each half of the rows on its own half of the columns, one twice as large.
        first = rng.random((n, 1)) < 0.5
        is_left = np.arange(p) < p // 2
        scale = np.where(is_left, 2.0, 1.0)
        return draw * scale * (first == is_left), np.diag(scale / np.sqrt(2))
    return draw, None


def mean_ratio(ratios):
    return ratios.mean(), ratios.std(ddof=1) / np.sqrt(len(ratios))


def mean_cell(ratios):
    mean, error = mean_ratio(ratios)
    return f"{mean:.3f} ({error:.3f})"


class FixedSigns:
    """Draws the given probes."""

    def __init__(self, signs):
        self.signs = signs

    def choice(self, values, size):
        return self.signs
