"""Rows of any number, half of whose signal is smooth and half interactions."""

from dataclasses import dataclass
from typing import Any

import numpy as np

N_FRESH = 50_000


@dataclass(frozen=True)
class Data:
    """Rows that train and fresh ones.

    Parameters
    ----------
    task : {"regression", "classification"}
    X, X_fresh : ndarray, sparse matrix or DataFrame
    y, y_fresh : ndarray
        Classes are 0, 1, ...
    truth : ndarray of shape (n_fresh,) or None
        The mean of the fresh y, of two classes its logit; None where nobody knows.
    """

    task: str
    X: Any
    y: np.ndarray
    X_fresh: Any
    y_fresh: np.ndarray
    truth: np.ndarray | None = None


def standardized(values):
    return (values - values.mean()) / values.std()


def signal(X):
    """A sum of smooth terms and one of interactions, each of variance one."""
    smooth = np.sin(3 * X[:, 0]) + 2 * X[:, 1] ** 2
    smooth += np.cos(2 * X[:, 2] + X[:, 3]) + np.exp(X[:, 4])
    interactions = 3 * X[:, 5] * X[:, 6] + 2 * (X[:, 7] > 0) * X[:, 8]
    interactions += 2 * X[:, 0] * X[:, 9] + np.abs(X[:, 1] - X[:, 5])
    return standardized(smooth) + standardized(interactions)


def probabilities(logits):
    return 1 / (1 + np.exp(-logits))


def drawn(task, n, n_columns, seed=0, n_fresh=N_FRESH):
    """Uniform columns, ten of which matter; noise of variance one, or labels.

    Parameters
    ----------
    task : {"regression", "classification"}
    n, n_columns, seed, n_fresh : int
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n + n_fresh, n_columns))
    truth = signal(X)
    if task == "regression":
        y = truth + rng.standard_normal(len(X))
    else:
        y = (rng.random(len(X)) < probabilities(truth)).astype(int)
    return Data(task, X[:n].copy(), y[:n], X[n:].copy(), y[n:], truth[n:])
