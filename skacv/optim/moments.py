"""Means and second moments of groups of rows, and pseudo-rows with these moments."""

import numpy as np
from scipy import sparse
from scipy.linalg import helmert

from .blocks import slices

# Entries of a block of rows, so that it stays in cache.
BLOCK_ENTRIES = 1 << 17
# A column whose spread is so many roundings of its mean is constant.
CONSTANT = 1000
# Rows to a block, times its width, so that a sum of its products outweighs adding it.
LEAST_ROWS = 2


class Moments:
    """Weight, means and scatter of rows, which those of other rows can be added to.

    The scatter is about the means, so that means which are large relative to the spread
    lose no digits. Two of them are merged as Chan, Golub and LeVeque (1983) do.

    Parameters
    ----------
    width : int
        Entries of a row.

    Attributes
    ----------
    weight : float
        Sum of the weights of the rows.
    mean : ndarray of shape (width,)
    scatter : ndarray of shape (width, width)
        Weighted sum over rows of (row - mean)' (row - mean).
    """

    def __init__(self, width):
        self.weight = 0.0
        self.mean = np.zeros(width)
        self.scatter = np.zeros((width, width))

    def add_rows(self, rows, weights):
        """Take in rows.

        Parameters
        ----------
        rows : ndarray of shape (n, width), float64
            At least one; it is overwritten.
        weights : ndarray of shape (n,)
            Positive.
        """
        total = weights.sum()
        mean = weights @ rows / total
        rows -= mean
        if np.ptp(weights):
            rows *= np.sqrt(weights)[:, None]
            scatter = rows.T @ rows
        else:
            scatter = rows.T @ rows
            scatter *= weights[0]
        self._add(total, mean, scatter)

    def merge(self, other):
        """Take in the rows of other moments."""
        if other.weight:
            self._add(other.weight, other.mean, other.scatter)

    def _add(self, weight, mean, scatter):
        total, shift = self.weight + weight, mean - self.mean
        self.scatter += scatter
        self.scatter += np.outer(shift * (self.weight * weight / total), shift)
        self.mean += shift * (weight / total)
        self.weight = total


def blocks_of_rows(n_rows, width, n_groups):
    """Slices of rows that stay in cache, if there is enough to sum up in each."""
    size = max(BLOCK_ENTRIES // width, LEAST_ROWS * width * n_groups)
    return slices(n_rows, size)


def add_to_groups(moments, group, rows, weights):
    """Add every row to the moments of its group.

    Parameters
    ----------
    moments : list of Moments
    group : ndarray of int, shape (n,)
    rows : ndarray of shape (n, width), float64
        It is overwritten.
    weights : ndarray of shape (n,)
    """
    counts = np.bincount(group, minlength=len(moments))
    if counts.max(initial=0) < len(group):
        order = np.argsort(group, kind="stable")
        rows, weights = rows[order], weights[order]
    ends = np.cumsum(counts)
    for number in np.flatnonzero(counts):
        own = slice(ends[number] - counts[number], ends[number])
        moments[number].add_rows(rows[own], weights[own])


def group_rows(codes_by_fit, n_rows, n_most):
    """Groups of rows that have the same codes, from 0 to 3, in all fits.

    None where there are more than ``n_most`` groups.

    Shapes: codes_by_fit n_fits of (n_rows,); returned group (n_rows,), codes (n_groups,
    n_fits).
    """
    group, codes = np.zeros(n_rows, np.int32), np.zeros((1, 0), np.int8)
    for code in codes_by_fit:
        joint, n_joint = group * 4 + code, 4 * len(codes)
        present = np.flatnonzero(np.bincount(joint, minlength=n_joint))
        if len(present) > n_most:
            return None
        number = np.zeros(n_joint, np.int32)
        number[present] = np.arange(len(present))
        group, codes = number[joint], np.c_[codes[present // 4], present % 4]
    return (group, codes) if len(codes) <= n_most else None


def moments_of(problem, group, n_groups):
    """Weighted moments of X and the target, in double precision, for groups of rows.

    Parameters
    ----------
    problem : Problem
        A problem with a matrix as its design; X is centred.
    group : ndarray of int, shape (n_rows,)

    Returns
    -------
    list of Moments
    """
    X, center, target = problem.design.X, problem.design.center, problem.target
    (n_rows, n_columns), n_outputs = X.shape, target.shape[1]
    moments = [Moments(n_columns + n_outputs) for _ in range(n_groups)]
    weights = problem.row_weights[:, 0].astype(np.float64, copy=False)
    for rows in blocks_of_rows(n_rows, n_columns + n_outputs, n_groups):
        block = dense_rows(X[rows], target[rows])
        if center is not None:
            block[:, :n_columns] -= center.T
        add_to_groups(moments, group[rows], block, weights[rows])
    return moments


def dense_rows(X, target):
    """Rows of [X, target], dense and in double precision, as a new array."""
    n_columns = X.shape[1]
    found = np.empty((X.shape[0], n_columns + target.shape[1]))
    found[:, :n_columns] = X.toarray() if sparse.issparse(X) else X
    found[:, n_columns:] = target
    return found


def pseudo_rows(moments):
    """Rows with the moments of groups, one more than their width for each of them.

    With m the means, R'R the scatter over the weight, and H'R rows whose sum is zero
    (H of Helmert, of q orthonormal rows orthogonal to a constant), these are

        m + sqrt(q + 1) (H' R)_j,      j = 1, ..., q + 1.

    Returns
    -------
    rows : ndarray of shape (n_groups * (width + 1), width)
        Group after group.
    weights : ndarray of shape (n_groups * (width + 1),)
    """
    width = len(moments[0].mean)
    turn = np.sqrt(width + 1) * helmert(width + 1).T
    rows = [each.mean + turn @ _root(each.scatter / each.weight) for each in moments]
    weights = np.array([each.weight for each in moments]) / (width + 1)
    return np.concatenate(rows), np.repeat(weights, width + 1)


def _root(covariance):
    """Rows whose inner products, taken by columns, are the covariance.

    From that of columns of equal size: small columns keep their digits beside large
    ones.
    """
    sizes = np.sqrt(np.clip(np.diagonal(covariance), 0, None))
    divisors = np.where(sizes > 0, sizes, 1)
    values, vectors = np.linalg.eigh(covariance / divisors / divisors[:, None])
    return (vectors * np.sqrt(np.clip(values, 0, None))).T * sizes


def merged(moments):
    """Moments of the union of the groups."""
    found = Moments(len(moments[0].mean))
    for each in moments:
        found.merge(each)
    return found


def shifted(moments, shift, scale=1.0):
    """Moments of (rows - shift) / scale."""
    found = Moments(len(moments.mean))
    found.weight = moments.weight
    if moments.weight:
        found.mean = (moments.mean - shift) / scale
    scale = np.broadcast_to(scale, len(moments.mean))
    found.scatter = moments.scatter / scale / scale[:, None]
    return found


def varying(moments, center):
    """Which columns are more than rounding, once their centre is taken off.

    Shapes: returned (width,).

    Parameters
    ----------
    moments : Moments
        Moments of all rows.
    center : ndarray of shape (width,)
        Means, or zeros where nothing is taken off.
    """
    spread = np.sqrt(np.diagonal(moments.scatter) / moments.weight)
    rounding = CONSTANT * np.finfo(float).eps * np.abs(center)
    return (spread > rounding) | (center == 0)
