"""Sums over a block of rows on a worker: slopes, losses, moments.

A block is read in slices that stay in cache, which are in double precision.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ..optim.blocks import n_per_block, slices
from ..optim.losses import Loss
from ..optim.problem import largest_curvatures


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The fold, or row if ``are_rows``, that every fit leaves out; -1 for nothing.

    Shapes: numbers (n_fits,), of folds or of rows.
    """

    numbers: np.ndarray
    are_rows: bool = False

    @property
    def n_fits(self):
        return len(self.numbers)

    def train_mask(self, block, rows):
        """1.0 where a fit includes a row of a slice, else 0.0, (n, n_fits)."""
        number = block.fold[rows]
        if self.are_rows:
            number = np.arange(block.first + rows.start, block.first + rows.stop)
        return (number[:, None] != self.numbers).astype(np.float64)


@dataclass(frozen=True)
class HalfSquare(Loss):
    """z^2 / 2 for any target: slopes are the predictors themselves."""

    def value(self, target, predictor):
        return 0.5 * predictor**2

    def derivative(self, target, predictor):
        return predictor


@dataclass(frozen=True, eq=False)
class Parabolas(Loss):
    """Half squares of the predictors, times the largest curvatures of the rows.

    Those of ``loss`` are taken with these means of the targets, predictors at the start
    and ceiling. Shapes: mean, start (n_outputs,).
    """

    loss: Loss
    mean_target: np.ndarray
    start: np.ndarray
    ceiling: float

    def derivative(self, target, predictor):
        around = self.mean_target, self.start, self.ceiling
        curvatures = largest_curvatures(self.loss, target[:, :, 0], *around)
        return curvatures[:, :, None] * predictor


def add_all(sums, more_sums):
    """Two tuples of sums, added item by item."""
    return tuple(a + b for a, b in zip(sums, more_sums))


def row_slices(X, n_vectors=1):
    """Slices of the rows of X that stay in cache, in products with ``n_vectors``.

    Every slice of a CSR matrix has a product X' slopes of all columns, so it has at
    least as many rows as there are columns.
    """
    n_rows, n_columns = X.shape
    if sparse.issparse(X):
        return slices(n_rows, max(n_columns, n_per_block(8 * n_vectors)))
    # Every slice adds to sums over all columns, so it has more than a few rows.
    least = 32
    # The bytes are those of a row of X, and of its predictors.
    size = max(least, n_per_block(8 * (n_columns + n_vectors)))
    # OpenBLAS copies the factors of products of more than a million multiplications.
    n_uncopied = n_per_block(n_columns * n_vectors, 10**6)
    return slices(n_rows, min(size, n_uncopied) if n_uncopied >= least else size)


def _slice_predictors(block, coef, intercept):
    """Slices of rows, their part of X, and their predictors for all coefficients."""
    X, shape = block.X, coef.shape
    coef = coef.reshape(shape[0], -1)
    for rows in row_slices(X, coef.shape[1]):
        part = X[rows].astype(np.float64, copy=False)
        yield rows, part, (part @ coef).reshape(-1, *shape[1:]) + intercept


def slopes_of(block, coef, intercept, loss, left_out):
    """X' slopes, and the slopes, summed over the rows of every fit.

    Shapes: coef and the first sum (n_features, n_outputs, n_fits); intercept and the
    second (n_outputs, n_fits).
    """
    gradient, total = np.zeros((len(coef), coef[0].size)), np.zeros(coef.shape[1:])
    for rows, X, predictor in _slice_predictors(block, coef, intercept):
        slope = loss.derivative(block.y[rows, :, None], predictor)
        weight = block.weight[rows, None] * left_out.train_mask(block, rows)
        slope = slope * weight[:, None, :]
        gradient += X.T @ slope.reshape(len(slope), -1)
        total += slope.sum(axis=0, dtype=np.float64)
    return gradient.reshape(coef.shape), total


def values_of(block, coef, intercept, loss, left_out):
    """Losses of iterates times weights, summed over the rows of every fit.

    Shapes: coef (n_features, n_outputs, n_iterates, n_fits); intercept (n_outputs,
    n_iterates, n_fits); returned (n_iterates, n_fits).
    """
    sums = np.zeros(coef.shape[2:])
    for rows, _, predictor in _slice_predictors(block, coef, intercept):
        value = loss.value(block.y[rows, :, None, None], predictor).sum(axis=1)
        weight = block.weight[rows, None] * left_out.train_mask(block, rows)
        sums += np.einsum("rkf,rf->kf", value, weight)
    return sums


def path_values_of(block, coef, intercept, loss, n_folds):
    """Weighted losses of the run on all rows, then of folds on their held-out rows.

    First are those that the run minimises, then those that judge it and the folds.

    Shapes: coef (n_features, n_outputs, n_iterates, 1 + n_folds); intercept (n_outputs,
    n_iterates, 1 + n_folds); returned (n_iterates, 2 + n_folds).
    """
    X, n_fits, judge = block.X, 1 + n_folds, loss.judge
    sums = np.zeros((coef.shape[2], 1 + n_fits))
    coefs = [coef[..., fit].reshape(X.shape[1], -1) for fit in range(n_fits)]
    for rows in row_slices(X, coefs[0].shape[1]):
        part, fold = X[rows].astype(np.float64, copy=False), block.fold[rows]
        for fit in range(n_fits):
            index = slice(None) if fit == 0 else np.flatnonzero(fold == fit - 1)
            predictor = (part[index] @ coefs[fit]).reshape(-1, *coef.shape[1:3])
            target, weight = block.y[rows][index], block.weight[rows][index]
            predictor += intercept[..., fit]
            value = judge.value(target[:, :, None], predictor)
            sums[:, 1 + fit] += weight @ value.sum(axis=1)
            if fit == 0 and judge is not loss:
                value = loss.value(target[:, :, None], predictor)
                sums[:, 0] += weight @ value.sum(axis=1)
    if judge is loss:
        sums[:, 0] = sums[:, 1]
    return sums


# ------------------------------------------------------------------- moments


class BlockMoments(NamedTuple):
    """Weighted sums over the rows of every part: the folds, or all rows as one part.

    ``least`` and ``largest`` are those of every column, of every target and of the
    weights, over the ``n_positive`` rows of positive weight.

    Shapes: weight (n_parts,), X (n_features, n_parts), target (n_outputs, n_parts).
    """

    weight: np.ndarray
    X: np.ndarray
    target: np.ndarray
    n_positive: int
    least: tuple
    largest: tuple


def block_moments(block, n_folds):
    """:class:`BlockMoments` of one block."""
    X, n_parts = block.X, max(n_folds, 1)
    weight, X_sum = np.zeros(n_parts), np.zeros((n_parts, X.shape[1]))
    target_sum = np.zeros((n_parts, block.y.shape[1]))
    for rows in row_slices(X):
        weights = fold_weights(block, rows, n_parts)
        weight += weights.sum(axis=1)
        X_sum += weights @ X[rows]
        target_sum += weights @ block.y[rows]
    mask = block.weight > 0
    parts = X[mask], block.y[mask], block.weight[mask, None]
    least = tuple(_by_column(part, "min", np.inf) for part in parts)
    largest = tuple(_by_column(part, "max", -np.inf) for part in parts)
    n_positive = int(np.count_nonzero(mask))
    return BlockMoments(weight, X_sum.T, target_sum.T, n_positive, least, largest)


def add_moments(a, b):
    """The :class:`BlockMoments` of two sets of rows together."""
    return BlockMoments(
        *add_all(a[:4], b[:4]),
        tuple(map(np.minimum, a.least, b.least)),
        tuple(map(np.maximum, a.largest, b.largest)),
    )


def squares_of(block, mean, n_folds):
    """Weighted squares about means, summed over the rows of every part.

    Shapes: mean (n_features,); returned (n_features, n_parts).
    """
    X, n_parts = block.X, max(n_folds, 1)
    sums = np.zeros((n_parts, X.shape[1]))
    for rows in row_slices(X):
        weights = fold_weights(block, rows, n_parts)
        if sparse.issparse(X):  # sum w (x - m)^2 = sum w x^2 - 2 m sum w x + m^2 sum w
            part = X[rows].astype(np.float64)
            sums += weights @ part.multiply(part) - 2 * mean * (weights @ part)
            sums += mean**2 * weights.sum(axis=1, keepdims=True)
        else:
            sums += weights @ (X[rows] - mean) ** 2
    return sums.T


def fold_weights(block, rows, n_parts):
    """Weights of a slice of rows in every fold, zero in others, (n_parts, n)."""
    is_in = np.arange(n_parts)[:, None] == block.fold[rows]
    return (block.weight[rows] * is_in).astype(np.float64)


def _by_column(part, method, if_empty):
    """``min`` or ``max`` of every column."""
    if not part.shape[0]:
        return np.full(part.shape[1], if_empty)
    result = getattr(part, method)(axis=0)
    result = result.toarray() if sparse.issparse(result) else result
    return np.ravel(result).astype(np.float64)
