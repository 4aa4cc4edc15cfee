"""Means and second moments of groups of rows, and a few rows that have them."""

import numpy as np
from scipy import sparse

# Entries of a block of rows, so that it stays in cache.
BLOCK_ENTRIES = 1 << 17


def moments_of(problem, group, n_groups):
    """Weighted moments of 1, X and the target for every group of rows.

    They are summed up in double precision, a block of rows at a time, less the centre
    of the problem: means that are large beside the spread would leave few digits.

    Parameters
    ----------
    problem : Problem
        Of a matrix.
    group : ndarray of int, shape (n_rows,)
    n_groups : int

    Returns
    -------
    ndarray of shape (n_groups, 1 + n_columns + n_outputs, the same)
    """
    X, center, target = problem.design.X, problem.design.center, problem.target
    (n_rows, n_columns), n_outputs = X.shape, target.shape[1]
    width = 1 + n_columns + n_outputs
    size = max(1, BLOCK_ENTRIES // width)
    values, moments = np.ones((size, width)), np.zeros((n_groups, width, width))
    weights = problem.row_weights.astype(np.float64, copy=False)
    for first in range(0, n_rows, size):
        rows = slice(first, first + size)
        block = X[rows].toarray() if sparse.issparse(X) else X[rows]
        part = values[: len(block)]
        part[:, 1 : 1 + n_columns] = block
        if center is not None:
            part[:, 1 : 1 + n_columns] -= center.T
        part[:, 1 + n_columns :] = target[rows]
        own, counts = group[rows], np.bincount(group[rows], minlength=n_groups)
        order = slice(None)
        if counts.max() < len(own):
            order = np.argsort(own, kind="stable")
        rooted = part[order] * np.sqrt(weights[rows][order])
        ends = np.cumsum(counts)
        for number in np.flatnonzero(counts):
            some = rooted[ends[number] - counts[number] : ends[number]]
            moments[number] += some.T @ some
    return moments


def pseudo_rows(moments):
    """Rows with the moments of groups, as many for each of them.

    Parameters
    ----------
    moments : ndarray of shape (n_groups, 1 + n, 1 + n)

    Returns
    -------
    rows : ndarray of shape (n_groups * 2 * n, n)
        Group after group.
    weights : ndarray of shape (n_groups * 2 * n,)
    """
    n_groups, n = len(moments), moments.shape[1] - 1
    weights = moments[:, 0, 0]
    means = moments[:, 1:, 0] / weights[:, None]
    rows = np.empty((n_groups, 2 * n, n))
    for number, mean in enumerate(means):
        covariance = moments[number, 1:, 1:] / weights[number] - np.outer(mean, mean)
        away = np.sqrt(n) * _root(covariance)
        rows[number, :n], rows[number, n:] = mean + away, mean - away
    return rows.reshape(-1, n), np.repeat(weights / (2 * n), 2 * n)


def _root(covariance):
    """Rows whose inner products, taken by columns, are the covariance.

    From that of columns of equal size: small columns keep their digits beside large
    ones.
    """
    sizes = np.sqrt(np.clip(np.diagonal(covariance), 0, None))
    divisors = np.where(sizes > 0, sizes, 1)
    values, vectors = np.linalg.eigh(covariance / divisors / divisors[:, None])
    return (vectors * np.sqrt(np.clip(values, 0, None))).T * sizes
