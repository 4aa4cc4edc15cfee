"""Data that all benchmarks share."""

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
