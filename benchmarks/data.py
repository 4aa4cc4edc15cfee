"""Data that benchmarks draw, and the sums that they share."""

import numpy as np
from scipy.special import expit


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
    if kind.startswith(("t5", "t3")):
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


def three_directions(n_rows, d=50, seed=0):
    """A smooth function of three directions of Gaussian rows, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, d))
    Z = X @ rng.standard_normal((d, 3)) / np.sqrt(d)
    y = np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2] + Z[:, 0]
    return X, y + 0.3 * rng.standard_normal(n_rows)


def drawn_targets(kind, shape, n_nonzero, seed):
    """Standard normal rows, normal coefficients, and a target of a kind."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape)
    n_scores = 3 if kind == "classes" else 1
    scores = X[:, :n_nonzero] @ rng.standard_normal((n_nonzero, n_scores))
    scores *= np.sqrt(5 / n_nonzero)
    signal = scores[:, 0]
    targets = {
        "binary": lambda: (rng.random(len(X)) < expit(signal)).astype(int),
        "classes": lambda: np.argmax(scores + rng.gumbel(size=scores.shape), axis=1),
        "real": lambda: signal + rng.standard_t(2, len(X)),
        "counts": lambda: rng.poisson(np.exp(signal / 3)),
    }
    return X, targets[kind]()


def mean_cell(ratios):
    """A mean, and its standard error in brackets."""
    error = np.std(ratios, ddof=1) / np.sqrt(len(ratios))
    return f"{np.mean(ratios):.3f} ({error:.3f})"


def covered(ends, truth):
    """Share of intervals that cover the truth, and their mean length."""
    lower, upper = ends.T
    return np.mean((lower <= truth) & (truth <= upper)), np.mean(upper - lower)
