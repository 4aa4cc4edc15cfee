"""Means and second moments of rows: pseudo-rows, and gradients of the squared error.

Moments are computed for groups of rows. The weights of two rows of a group have the
same ratio in all fits, so that one pass over the rows serves a run and its folds.
"""

import numpy as np
from scipy import sparse
from scipy.linalg import helmert

from .blocks import CACHE_BYTES, MEMORY_BYTES, n_per_block, slices
from .costs import ENTRY
from .design import ROUNDINGS


class Moments:
    """Weight, means and scatter of rows, to which rows can be added.

    The scatter is the weighted sum of (row - mean)' (row - mean), so that large means
    cost no digits. Sums are merged as in Chan, Golub and LeVeque (1983).
    """

    def __init__(self, width):
        self.weight = 0.0
        self.mean = np.zeros(width)
        self.scatter = np.zeros((width, width))

    def add_rows(self, rows, weights):
        """Add rows (n, width) in double precision, which are overwritten."""
        total = weights.sum()
        mean = weights @ rows / total
        rows -= mean
        if np.ptp(weights):
            rows *= np.sqrt(weights)[:, None]
            scatter = rows.T @ rows
        else:
            scatter = rows.T @ rows
            scatter *= weights[0]
        self.add(total, mean, scatter)

    def add(self, weight, mean, scatter):
        """Add rows with this weight, these means and this scatter."""
        if not weight:
            return
        total, shift = self.weight + weight, mean - self.mean
        self.scatter += scatter
        self.scatter += np.outer(shift * (self.weight * weight / total), shift)
        self.mean += shift * (weight / total)
        self.weight = total


def blocks_of_rows(n_rows, width, n_groups):
    """Slices of rows that fit in cache, or are long compared with ``n_groups``."""
    # The products of so many rows take longer than the additions of their sums.
    size = max(n_per_block(8 * width, CACHE_BYTES), 2 * width * n_groups)
    return slices(n_rows, size)


def add_to_groups(moments, group, rows, weights):
    """Add every row to the moments of its group; ``rows`` are overwritten."""
    counts = np.bincount(group, minlength=len(moments))
    if counts.max(initial=0) < len(group):
        order = np.argsort(group, kind="stable")
        rows, weights = rows[order], weights[order]
    ends = np.cumsum(counts)
    for k in np.flatnonzero(counts):
        in_group = slice(ends[k] - counts[k], ends[k])
        moments[k].add_rows(rows[in_group], weights[in_group])


def group_rows(codes_by_fit, n_rows, n_most):
    """Groups of rows with equal codes, 0 to 3, in all fits; None if over ``n_most``.

    Shapes: codes_by_fit n_fits of (n_rows,); returned group (n_rows,), codes (n_groups,
    n_fits)."""
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
    """The weighted moments of [X, target] of every group, centred as the design is."""
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
    """Rows of [X, target], dense and in double precision, a new array."""
    n_columns = X.shape[1]
    rows = np.empty((X.shape[0], n_columns + target.shape[1]))
    rows[:, :n_columns] = X.toarray() if sparse.issparse(X) else X
    rows[:, n_columns:] = target
    return rows


def pseudo_rows(moments):
    """Rows with the same moments as the groups, and the weights of these rows.

    With q = width, a group has q + 1 pseudo-rows m + sqrt(q + 1) (H' R)_j. Here m are
    its means, R'R is its scatter over its weight, and H is Helmert's matrix: q
    orthonormal rows, each with sum zero.
    """
    width = len(moments[0].mean)
    rotation = np.sqrt(width + 1) * helmert(width + 1).T
    rows, weights = [], []
    for group in moments:
        # R is computed from scaled columns, so that small columns lose no digits.
        covariance = group.scatter / group.weight
        scales = np.sqrt(np.clip(np.diagonal(covariance), 0, None))
        divisors = np.where(scales > 0, scales, 1)
        values, vectors = np.linalg.eigh(covariance / divisors / divisors[:, None])
        root = (vectors * np.sqrt(np.clip(values, 0, None))).T * scales
        rows.append(group.mean + rotation @ root)
        weights.append(group.weight / (width + 1))
    return np.concatenate(rows), np.repeat(weights, width + 1)


def merged(moments):
    """The moments of the union of all groups."""
    union = Moments(len(moments[0].mean))
    for group in moments:
        union.add(group.weight, group.mean, group.scatter)
    return union


def shifted(moments, shift, scale=1.0):
    """Moments of (rows - shift) / scale."""
    mapped = Moments(len(moments.mean))
    mapped.weight = moments.weight
    if moments.weight:
        mapped.mean = (moments.mean - shift) / scale
    scale = np.broadcast_to(scale, len(moments.mean))
    mapped.scatter = moments.scatter / scale / scale[:, None]
    return mapped


def varying(moments, center):
    """Mask of the columns whose spread exceeds the rounding error of their centre."""
    spread = np.sqrt(np.diagonal(moments.scatter) / moments.weight)
    rounding = ROUNDINGS * np.finfo(float).eps * np.abs(center)
    return (spread > rounding) | (center == 0)


class GradientByMoments:
    """Gradients of the squared error, A_f b - c_f for fit f, from second moments,

        A_f = sum_i w_if z_i z_i',    c_f = sum_i w_if z_i y_i'.

    The first gradients are computed by rows. The moments follow when these gradients
    have cost as much as the moments will, so that a short run never pays for them.
    """

    def __init__(self, fits):
        problem = fits.problem
        (n_rows, n_columns), n_outputs = problem.design.shape, problem.target.shape[1]
        cost_by_rows = 2 * problem.design.n_stored * fits.n_fits * n_outputs
        self.n_gradients_by_rows = (
            n_rows * (n_columns + n_outputs) ** 2 // max(cost_by_rows, 1)
        )
        self.moments = None

    def gradient(self, fits, coef):
        """Gradients at coefficients, or None if they are to be computed by rows."""
        if self.n_gradients_by_rows >= 0:
            self.n_gradients_by_rows -= 1
            if self.n_gradients_by_rows < 0:
                self.moments = second_moments(fits)
        if self.moments is None:
            return None
        gram, linear = self.moments
        gradient = np.matmul(gram, coef.transpose(2, 0, 1))
        gradient -= linear
        return gradient.transpose(1, 2, 0).astype(coef.dtype, copy=False)


def second_moments(fits):
    """A_f and c_f of all fits, or None if there are too many groups of rows.

    Shapes: A (n_fits, n_columns, n_columns); c (n_fits, n_columns, n_outputs)."""
    problem, n_columns = fits.problem, fits.problem.design.shape[1]
    # A group has the rows that are left out by the same fits.
    weights, n_rows = fits.row_weights[:, 0], len(problem.target)
    width = n_columns + problem.target.shape[1]
    # A group costs about as much as ENTRY rows.
    n_most = min(n_rows // ENTRY, MEMORY_BYTES // (8 * width**2))
    groups = group_rows((weights > 0).T, n_rows, n_most)
    if groups is None:
        return None
    group, codes = groups
    row_of_group = np.empty(len(codes), np.intp)
    row_of_group[group] = np.arange(n_rows)
    # In a group, the weights of a fit are its share times the problem's weights.
    shares = weights[row_of_group] / problem.row_weights[row_of_group].astype(
        np.float64
    )
    rounding = ROUNDINGS * float(np.finfo(problem.row_weights.dtype).eps)
    expected = shares[group] * problem.row_weights
    if not np.allclose(weights, expected, rtol=rounding, atol=0):
        return None
    groups = moments_of(problem, group, len(shares))
    parts = [(moments.weight, moments.mean, moments.scatter) for moments in groups]
    totals, means, scatters = map(np.stack, zip(*parts))
    group_weights = totals[:, None] * shares
    gram, linear = [], []
    for k, (share, group_weight) in enumerate(zip(shares.T, group_weights.T)):
        shift, factor = np.zeros(width), np.ones(n_columns)
        if fits.refits_intercept:
            shift = group_weight @ means / group_weight.sum()
        elif fits.columns is not None:
            shift[:n_columns] = fits.columns.center[:, k]
        if fits.columns is not None:
            factor = fits.columns.factor[:, k].astype(np.float64)
        means_k = means - shift
        moments_k = (
            np.tensordot(share, scatters, axes=1) + (means_k.T * group_weight) @ means_k
        )
        columns = factor[:, None] * moments_k[:n_columns]
        gram.append(columns[:, :n_columns] * factor)
        linear.append(columns[:, n_columns:])
    return np.stack(gram), np.stack(linear)
