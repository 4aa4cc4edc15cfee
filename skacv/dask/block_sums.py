"""Sums over a block of rows on a worker: slopes, losses, moments.

Rows are taken in slices that stay in cache, which are in double precision.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ..optim.losses import Loss

# Entries of X in a slice, and the fewest rows of one.
SLICE_ENTRIES, SLICE_ROWS = 1 << 19, 64
# Products of so few multiplications go without the copies that BLAS makes for larger
# ones: with few vectors, in slices of not too few rows, that is twice as fast.
SMALL_PRODUCT, SMALL_ROWS = 10**6, 16
# Predictors of a slice of a CSR matrix.
SPARSE_ENTRIES = 1 << 22


@dataclass(frozen=True, eq=False)
class LeftOut:
    """What every one of some fits leaves out: a fold, or a row.

    Parameters
    ----------
    numbers : ndarray of int, shape (n_fits,)
        Numbers of the folds, or of the rows; -1 where a fit has all rows.
    are_rows : bool
        Whether they are of rows.
    """

    numbers: np.ndarray
    are_rows: bool = False

    @property
    def n_fits(self):
        return len(self.numbers)

    def stays(self, block, rows):
        """Which of some rows every fit has, 1.0 or 0.0, (n, n_fits)."""
        own = block.fold[rows]
        if self.are_rows:
            own = np.arange(block.first + rows.start, block.first + rows.stop)
        return (own[:, None] != self.numbers).astype(np.float64)


@dataclass(frozen=True)
class HalfSquare(Loss):
    """z^2 / 2 whatever the target: slopes are the predictors themselves."""

    def value(self, target, predictor):
        return 0.5 * predictor**2

    def derivative(self, target, predictor):
        return predictor


def added(one, other):
    """Sums over two sets of rows, as one."""
    return tuple(a + b for a, b in zip(one, other))


def slopes_of(block, coef, intercept, loss, left_out):
    """X' slopes, and the slopes, summed over the rows of every fit.

    Parameters
    ----------
    block : Block
        With targets as the loss takes them, (n_rows, n_outputs).
    coef : ndarray of shape (n_features, n_outputs, n_fits)
    intercept : ndarray of shape (n_outputs, n_fits)
    left_out : LeftOut

    Returns
    -------
    ndarray of shape (n_features, n_outputs, n_fits), float64
    ndarray of shape (n_outputs, n_fits), float64
    """
    gradient, total = np.zeros((len(coef), coef[0].size)), np.zeros(coef.shape[1:])
    for rows, X, predictor in _predictors(block, coef, intercept):
        slope = loss.derivative(block.y[rows, :, None], predictor)
        weight = block.weight[rows, None] * left_out.stays(block, rows)
        slope = slope * weight[:, None, :]
        gradient += X.T @ slope.reshape(len(slope), -1)
        total += slope.sum(axis=0, dtype=np.float64)
    return gradient.reshape(coef.shape), total


def _predictors(block, coef, intercept):
    """Slices of rows, X there, and the predictors of all coefficients."""
    X, shape = block.X, coef.shape
    coef = coef.reshape(shape[0], -1)
    for rows in slices(X, coef.shape[1]):
        part = X[rows].astype(np.float64, copy=False)
        yield rows, part, (part @ coef).reshape(-1, *shape[1:]) + intercept


def values_of(block, coef, intercept, loss, left_out):
    """Losses of every iterate times the weights of the rows, summed over the rows.

    Shapes: coef (n_features, n_outputs, n_iterates, n_fits); intercept (n_outputs,
    n_iterates, n_fits).

    Returns
    -------
    ndarray of shape (n_iterates, n_fits), float64
        Over the rows of every fit.
    """
    found = np.zeros(coef.shape[2:])
    for rows, _, predictor in _predictors(block, coef, intercept):
        value = loss.value(block.y[rows, :, None, None], predictor).sum(axis=1)
        weight = block.weight[rows, None] * left_out.stays(block, rows)
        found += np.einsum("rkf,rf->kf", value, weight)
    return found


def path_values_of(block, coef, intercept, loss, n_folds):
    """Weighted sums of the losses of the run, and of folds on their held-out rows.

    Shapes: coef (n_features, n_outputs, n_iterates, 1 + n_folds); intercept (n_outputs,
    n_iterates, 1 + n_folds).

    Returns
    -------
    ndarray of shape (n_iterates, 1 + n_folds), float64
        The first over all rows, the others over the rows of each fold.
    """
    X, n_fits = block.X, 1 + n_folds
    found = np.zeros((coef.shape[2], n_fits))
    of_fit = [np.ascontiguousarray(coef[..., fit]) for fit in range(n_fits)]
    for rows in slices(X, of_fit[0][0].size):
        part, fold = X[rows].astype(np.float64, copy=False), block.fold[rows]
        place = np.arange(rows.start, rows.stop)
        for fit in range(n_fits):
            some = slice(None) if fit == 0 else np.flatnonzero(fold == fit - 1)
            own = place[some]
            predictor = part[some] @ of_fit[fit].reshape(X.shape[1], -1)
            predictor = predictor.reshape(-1, *coef.shape[1:3]) + intercept[..., fit]
            value = loss.value(block.y[own, :, None], predictor).sum(axis=1)
            found[:, fit] += block.weight[own] @ value
    return found


class Moments(NamedTuple):
    """Sums over rows, of all of them and of every fold.

    Attributes
    ----------
    weight : ndarray of shape (n_parts,)
    X : ndarray of shape (n_features, n_parts)
        Times their weights.
    target : ndarray of shape (n_outputs, n_parts)
        Times their weights.
    n_positive : int
        Rows of positive weight.
    least, largest : tuple of ndarray
        Least and largest value of every column, of every target and of the weights,
        over rows with positive weight.
    """

    weight: np.ndarray
    X: np.ndarray
    target: np.ndarray
    n_positive: int
    least: tuple
    largest: tuple


def moments_of(block, n_folds):
    """Sums over a block, :class:`Moments`; the parts are the folds, or all rows."""
    X, n_parts = block.X, max(n_folds, 1)
    weight, of_X = np.zeros(n_parts), np.zeros((n_parts, X.shape[1]))
    of_target = np.zeros((n_parts, block.y.shape[1]))
    for rows in slices(X):
        shares = shares_of(block, rows, n_parts)
        weight += shares.sum(axis=1)
        of_X += shares @ X[rows]
        of_target += shares @ block.y[rows]
    there = block.weight > 0
    parts = X[there], block.y[there], block.weight[there, None]
    least = tuple(_by_column(part, "min", np.inf) for part in parts)
    largest = tuple(_by_column(part, "max", -np.inf) for part in parts)
    n_positive = int(np.count_nonzero(there))
    return Moments(weight, of_X.T, of_target.T, n_positive, least, largest)


def shares_of(block, rows, n_parts):
    """Weights of some rows in every fold, (n_parts, n_rows): one part is all rows."""
    is_in = np.arange(n_parts)[:, None] == block.fold[rows]
    return (block.weight[rows] * is_in).astype(np.float64)


def squares_of(block, mean, n_folds):
    """Weighted squares about means, summed over the rows of every fold, or of all.

    Shapes: mean (n_features,); returned (n_features, n_parts).
    """
    X, n_parts = block.X, max(n_folds, 1)
    found = np.zeros((n_parts, X.shape[1]))
    for rows in slices(X):
        shares = shares_of(block, rows, n_parts)
        if sparse.issparse(X):
            part = X[rows].astype(np.float64)
            found += shares @ part.multiply(part) - 2 * mean * (shares @ part)
            found += mean**2 * shares.sum(axis=1, keepdims=True)
        else:
            found += shares @ (X[rows] - mean) ** 2
    return found.T


def _by_column(part, name, of_none):
    """The least, or largest, of every column."""
    if not part.shape[0]:
        return np.full(part.shape[1], of_none)
    found = getattr(part, name)(axis=0)
    found = found.toarray() if sparse.issparse(found) else found
    return np.ravel(found).astype(np.float64)


def joined_moments(one, other):
    """Moments of two sets of rows, as one."""
    return Moments(
        one.weight + other.weight,
        one.X + other.X,
        one.target + other.target,
        one.n_positive + other.n_positive,
        tuple(map(np.minimum, one.least, other.least)),
        tuple(map(np.maximum, one.largest, other.largest)),
    )


def slices(X, n_vectors=1):
    """Rows of X that stay in cache, for products with so many vectors."""
    n_rows, n_columns = X.shape
    if sparse.issparse(X):  # every slice has a product of all columns
        size = max(SLICE_ROWS, SPARSE_ENTRIES // n_vectors)
        return [slice(k, min(k + size, n_rows)) for k in range(0, n_rows, size)]
    size = max(SLICE_ROWS, SLICE_ENTRIES // max(n_columns + n_vectors, 1))
    small = SMALL_PRODUCT // max(n_columns * n_vectors, 1)
    if n_vectors > 1 and small >= SMALL_ROWS:
        size = min(size, small)
    return [slice(k, min(k + size, n_rows)) for k in range(0, n_rows, size)]
