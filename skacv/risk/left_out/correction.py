"""Correction of the error of linearised gradients in runs without a row.

Replica i deviates from the recorded run by d_i. Its gradient, linearised there,
lacks

    C_i = sum_{j != i} w_j (l'_j(z_j + x_j'd_i) - l'_j(z_j) - l''_j x_j'd_i) x_j,

as many derivatives as there are rows, for every replica: one iteration of the
exact refits, all together. So it is evaluated now and then. It is of second order in
the deviation (or of the third derivative), hence in between

    C_i(d) = (d'd_i / d_i'd_i)^2 C_i(d_i),

with d_i the deviation where it was evaluated: right to first order for
deviations that only grow or shrink, and exact where they have come to rest.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...optim.blocks import slices
from ...optim.einsum import einsum

# What rows worked on together are shifted by, in all replicas, stays in cache.
SHIFT_BYTES = 1 << 19
# Deviations grow little between evaluations. Where one was next to nothing, a
# larger multiple of it would be an extrapolation, and feed on itself.
LARGEST_SCALE = 2.0
# The correction is evaluated at updates floor(GROWTH^k) of a phase, or at passes
# floor(PASS_GROWTH^k): there the error is what batches differ by, not how old it is.
GROWTH = 1.1
PASS_GROWTH = 2.0


def gradient_of_slopes(design, point, slopes_of):
    """The gradient of slopes that depend on the predictors, for every replica.

    Shapes: returned (n_columns, n_outputs, n_replicas).

    Parameters
    ----------
    design : Design of shape (n_rows, n_columns)
    point : ndarray of shape (n_columns, n_outputs, n_replicas)
        Deviations.
    slopes_of : callable
        ``slopes_of(rows, shift)`` are the slopes of some rows, (n, n_outputs,
        n_replicas), from the linear predictors of their deviations, ``shift`` of
        that shape, which it may overwrite.
    """
    n_columns, *each = point.shape
    flat = point.reshape(n_columns, math.prod(each))
    found = np.zeros_like(flat)
    size = max(1, SHIFT_BYTES // (flat.itemsize * flat.shape[1]))
    for rows in slices(design.shape[0], size):
        block = design.rows(rows)
        shift = block.dot(flat).reshape(-1, *each)
        found += block.t_dot(slopes_of(rows, shift).reshape(len(shift), -1))
    return found.reshape(point.shape)


@dataclass(frozen=True)
class Correction:
    """The correction as it was evaluated at one point of the run.

    Attributes
    ----------
    rows : ndarray of int or None
        The batch that it is taken over, or None for all rows.
    predictor : ndarray of shape (n_batch, n_outputs)
        Recorded linear predictors of these rows.
    place : ndarray of int, shape (n_replicas,)
        Where among these rows each replica's own is, or -1.
    point : ndarray of shape (n_columns, n_outputs, n_replicas)
        The deviations.
    value : ndarray of shape (n_columns, n_outputs, n_replicas)
    length : ndarray of shape (n_replicas,)
        Root of sum_j w_j e_j^2, with e_j the part of row j: no entry of ``value``
        exceeds that times the norm of the column, sqrt(sum_j w_j x_j^2).
    """

    rows: np.ndarray | None
    predictor: np.ndarray
    place: np.ndarray
    point: np.ndarray
    value: np.ndarray
    length: np.ndarray

    @classmethod
    def at(cls, problem, rows, predictor, place, point):
        """Evaluate it for a problem of these rows, on the columns of ``point``."""
        target, weights = problem.target[:, :, None], problem.row_weights[:, :, None]
        slope = problem.loss.derivative(problem.target, predictor)[:, :, None]
        curvature = curvature_matrix(problem, predictor)
        squares = np.zeros(point.shape[2])

        def slopes_of(block, shift):
            linear = curvature_times(curvature[block], shift)
            linear += slope[block]
            shift += predictor[block, :, None]
            missed = problem.loss.derivative(target[block], shift)
            missed -= linear
            own = np.flatnonzero((place >= block.start) & (place < block.stop))
            missed[place[own] - block.start, :, own] = 0
            weighted = np.multiply(missed, weights[block], out=linear)
            squares[:] += einsum("jkr,jkr->r", missed, weighted)
            return weighted

        value = gradient_of_slopes(problem.design, point, slopes_of)
        return cls(rows, predictor, place, point, value, np.sqrt(squares))

    def widened(self, problem, point):
        """The correction on more columns: those of ``problem``, where ``point`` is."""
        return self.at(problem, self.rows, self.predictor, self.place, point)

    def scale(self, point):
        """Factor of ``value`` at other deviations, (n_replicas,)."""
        ratio = einsum("jkr,jkr->r", self.point, point) / self._squares
        return np.minimum(ratio**2, LARGEST_SCALE)

    @cached_property
    def _squares(self):
        """Squared norms of the deviations; infinite for none."""
        squares = einsum("jkr,jkr->r", self.point, self.point)
        return np.where(squares == 0, np.inf, squares)


def curvature_matrix(problem, predictor):
    """The loss's, in the precision of the design."""
    curvature = problem.loss.curvature_matrix(problem.target, predictor)
    return curvature.astype(problem.design.dtype, copy=False)


def curvature_times(curvature, shift):
    """A matrix a row, (n, K, K), times shifts of the predictors, (n, K, R)."""
    if curvature.shape[1] == 1:
        # One number a row: a plain product is many times faster.
        return curvature * shift
    return curvature @ shift


def evaluated(n_updates, has_batches=False):
    """Which updates of a phase evaluate the correction, counted from one.

    Parameters
    ----------
    has_batches : bool
        Whether updates are passes in batches.

    Returns
    -------
    set of int
    """
    growth = PASS_GROWTH if has_batches else GROWTH
    n_powers = int(np.log(max(n_updates, 1)) / np.log(growth)) + 2
    numbers = np.floor(growth ** np.arange(n_powers)).astype(int)
    return set(numbers[numbers <= n_updates].tolist())
