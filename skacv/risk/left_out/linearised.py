"""Leave-one-out along a run with a curved loss, by linearising every replica.

Iterative approximate cross-validation (Luo, Ren & Barber 2023, arXiv:2303.02732): the
replica that never sees row i stays near the recorded run, so its gradient at
theta + d_i is, with the derivatives l' and l'' at the recorded theta,

    c_i (gradient(theta) + H d_i - w_i x_i (l'_i + l''_i x_i'd_i) + C_i),
    H = sum_j w_j l''_j x_j x_j',

followed by the update that the recorded run took. For the squared error this is exact
with C_i = 0, which is the paper's choice for every loss. The correction is the error of
linearising,

    C_i = sum_{j != i} w_j (l'_j(z_j + x_j'd_i) - l'_j(z_j) - l''_j x_j'd_i) x_j,

as many derivatives as there are rows, for every replica: one iteration of the exact
refits, all together. So it is evaluated at updates 1 to 11, 13, 14, 15, 17, ... of a
phase. It is of second order in the deviation (or of the third derivative), hence in
between

    C_i(d) = (d'd_i / d_i'd_i)^2 C_i(d_i),

with d_i the deviation where it was evaluated: right to first order for deviations that
only grow or shrink, and exact where they have come to rest.

A pass is an update on each of its batches, and a row takes part in that on its own
batch alone. The correction is evaluated on every batch of passes 1, 2, 4, 8, ..., and
after each of these passes on all rows, as the mean of the batches', for passes in
between.

With a prox, replicas live on few columns (:mod:`skacv.risk.left_out.row_replicas`).
Outside these the gradient is bounded by

    |gradient_j| + ||x_j|| (sqrt(max l'' max_i d_i'H d_i) + max_i length_i)
        + max |x_j| max_i |w_i (l'_i + l''_i x_i'd_i)|,

with weighted norms and length_i bounding the correction.
"""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ...optim.blocks import blocks
from ...optim.einsum import einsum
from ...optim.fits import WeightedFits
from ...optim.problem import hessian
from ...optim.trajectory import iterate
from ..cost import corrected_updates
from .row_replicas import (
    ReplayedStep,
    RowReplicas,
    rows_at_a_time,
    rows_of_array,
    with_zeros,
)

# Deviations grow little between evaluations. Where one was next to nothing, a
# larger multiple of it would be an extrapolation, and feed on itself.
LARGEST_SCALE = 2.0


def linearised_predictors(
    problem, trajectory, left_out, largest_block, map, correction=True
):
    """Held-out linear predictors of every iterate, approximately.

    Shapes: returned predictors (n_iterates, n_left_out, n_outputs); deviations of the
    last coefficients (n_left_out, n_columns, n_outputs); error_estimate (n_left_out,).
    """
    # One output, or outputs that the loss couples. ``left_out`` has scales of ones for
    # passes in batches. ``map(function, blocks)`` goes through independent blocks of
    # rows. The error estimate is roughly the largest error of the row's predictor that
    # evaluations of the correction have shown.
    n_outputs = problem.target.shape[1]
    if n_outputs > 1 and not problem.loss.is_coupled:
        # They are separate problems, with deviations of their own.
        raise ValueError(
            f"Rows are left out of one target at a time: got {n_outputs} targets with "
            f"{problem.loss}."
        )
    sizes = column_sizes(problem)
    replay = partial(_replay_block, problem, trajectory, sizes, correction)
    size = min(rows_at_a_time(trajectory), largest_block)
    predictors, deviations, error_estimate = zip(*map(replay, left_out.blocks(size)))
    return (
        np.concatenate(predictors, axis=1),
        np.concatenate(deviations),
        np.concatenate(error_estimate),
    )


def column_sizes(problem):
    """Weighted norms of the columns, and the sizes of their largest entries."""
    scaled = problem.design.scaled_rows(np.sqrt(problem.row_weights))
    return scaled.column_sizes()[0], problem.design.column_sizes()[1]


def _replay_block(problem, trajectory, sizes, correction, left_out):
    """Predictors, deviations and estimates of their errors, for a block of rows."""
    curvature_of = partial(LinearisedCurvature, problem, sizes)
    replicas = RowReplicas(problem.design, left_out, trajectory, curvature_of)
    for _ in iterate(replayed_steps(problem, trajectory, correction), replicas):
        pass
    deviations = replicas.deviations(trajectory.coef[-1])
    return replicas.predicted, deviations, replicas.curvature.error_estimate


def replayed_steps(problem, trajectory, correction):
    """Every update of the run, batch by batch, as ReplayedStep."""
    n_updates = trajectory.n_updates if correction else 0
    due, due_passes = corrected_updates(n_updates), corrected_updates(n_updates, True)
    number, path = 0, trajectory.predictor
    for step in trajectory.updates():
        number = 1 if step.restarts else number + 1
        t, before, update, penalty = step
        if not update.n_batches:
            predictor = update.point(path[t], path[before])
            evaluates = (None, predictor) if number in due else None
            replayed = ReplayedStep.on_all_rows(trajectory.coef, step)
            yield replayed._replace(predictor=predictor, evaluates=evaluates)
            continue
        # Passes that are due evaluate on every batch; the next on all rows at its
        # start.
        at_start = (None, path[t]) if number - 1 in due_passes else None
        fits = WeightedFits(problem)
        parts = update.parts(fits, penalty, fits.start(trajectory.coef[t]))
        for k, part in enumerate(parts):
            rows, coef, predictor = (
                part.rows,
                part.coef[:, :, 0],
                part.predictor[:, :, 0],
            )
            yield ReplayedStep(
                penalty=penalty,
                update=update.update,
                coef=coef,
                earlier=coef,
                following=part.following[:, :, 0],
                starts=True,
                ends=t + 1 if k == update.n_batches - 1 else None,
                predictor=predictor,
                rows=rows,
                evaluates=(rows, predictor) if number in due_passes else at_start,
            )
            at_start = None


class LinearisedCurvature:
    """The curvature of the loss at the recorded point, with the correction."""

    tightens = False

    def __init__(self, problem, sizes, replicas):
        self.problem, self.left_out = problem, replicas.left_out
        self.norms, self.largest = sizes  # those of ``column_sizes``
        self.correction = None  # the last that was evaluated
        # The largest errors of predictors that evaluations have shown, (n_replicas,).
        self.error_estimate = np.zeros(len(self.left_out.rows))

    def look(self, replicas, step):
        problem = _batch(self.problem, step.rows)
        self.slope = problem.loss.derivative(problem.target, step.predictor)
        if step.evaluates is not None:
            self._evaluate(replicas, step)
        self._linearise(replicas, step)
        return problem.design.t_dot(problem.row_weights * self.slope)

    def extend(self, replicas, step):
        last = self.correction
        if last is not None:
            problem = self._on_working(replicas, last.rows)
            n_joined = len(replicas.working) - len(last.point)
            self.correction = Correction.at(
                problem,
                last.rows,
                last.predictor,
                last.row_index,
                with_zeros(last.point, n_joined),
            )
        self._linearise(replicas, step)

    def keep(self, replicas, indices):
        """Nothing is kept: the correction is evaluated next."""

    def _on_working(self, replicas, rows):
        """The problem of some rows on the working columns."""
        return _batch(replace(self.problem, design=replicas.working.as_design()), rows)

    def _linearise(self, replicas, step):
        """Find H d_i + C_i, and the slope of the row that every replica leaves out."""
        problem, point = self._on_working(replicas, step.rows), replicas.point(step)
        curvature = curvature_matrix(problem, step.predictor)
        index = self._row_index(step.rows)
        own_shift = einsum("jr,jkr->rk", replicas.rows, point)[:, :, None]
        slope = (
            self.slope[index] + curvature_times(curvature[index], own_shift)[:, :, 0]
        )
        slope *= np.where(index[:, None] < 0, 0, problem.row_weights[index])
        self.row_slope = slope.T
        self.shift = curved = hessian_times(problem, curvature, point)
        if self.correction is not None:
            self.shift = self.correction.value * self.correction.scale(point) + curved
        self._point = step.rows, curvature, point, curved

    def _row_index(self, rows):
        """The index of each row left out among some rows; -1 where it is not there."""
        if rows is None:
            return self.left_out.rows
        index = np.full(self.left_out.n_rows, -1)
        index[rows] = np.arange(len(rows))
        return index[self.left_out.rows]

    def _evaluate(self, replicas, step):
        """Evaluate the correction, and the error of the one used so far."""
        (rows, predictor), last = step.evaluates, self.correction
        point = replicas.point(step)
        indices = replicas.drop(step)
        expected = None
        if last is not None and rows is None:
            expected = (last.value * last.scale(point))[indices]
        problem, point = self._on_working(replicas, rows), rows_of_array(point, indices)
        index = self._row_index(rows)
        self.correction = Correction.at(problem, rows, predictor, index, point)
        if expected is None:
            return
        curvature = curvature_matrix(problem, predictor)
        error = np.linalg.norm(self.correction.value - expected, axis=(0, 1))
        size = np.linalg.norm(hessian_times(problem, curvature, point), axis=(0, 1))
        relative_error = error / np.maximum(size, np.finfo(error.dtype).tiny)
        own_shift = einsum("jr,jkr->rk", replicas.rows, point)
        error_estimate = relative_error * np.abs(own_shift).max(axis=1)
        self.error_estimate = np.maximum(self.error_estimate, error_estimate)

    @property
    def bounds(self):
        """Norms of the columns times the length of the shifts of all slopes."""
        rows, curvature, point, curved = self._point
        steepest = np.linalg.norm(curvature, axis=(1, 2)).max()
        stretch = steepest * einsum("jkr,jkr->r", point, curved)
        length = self._norm_ratio(rows) * np.sqrt(stretch.max(initial=0))
        if self.correction is not None:
            missed = self.correction.length * self.correction.scale(point)
            length += self._norm_ratio(self.correction.rows) * missed.max(initial=0)
        return self.norms * length + self.largest * np.abs(self.row_slope).max(
            initial=0
        )

    def _norm_ratio(self, rows):
        """Largest ratio of a column's norm over a batch to that over all rows."""
        return 1.0 if rows is None else np.sqrt(self.left_out.n_rows / len(rows))


@dataclass(frozen=True)
class Correction:
    """The correction, evaluated at the deviations ``point``."""

    rows: np.ndarray | None  # its batch; None: all rows
    predictor: np.ndarray  # recorded, of these rows, (n_batch, n_outputs)
    # The index among them of each row left out, or -1, (n_replicas,).
    row_index: np.ndarray
    point: np.ndarray  # (n_columns, n_outputs, n_replicas)
    value: np.ndarray  # (n_columns, n_outputs, n_replicas)
    # The root of sum_j w_j e_j^2, (n_replicas,), with e_j the part of row j: no entry
    # of ``value`` exceeds that times the norm of the column, sqrt(sum_j w_j x_j^2).
    length: np.ndarray
    # The squared norms of ``point``, (n_replicas,); infinity stands for zero.
    squared_norms: np.ndarray

    @classmethod
    def at(cls, problem, rows, predictor, row_index, point):
        """The correction of a problem of these rows, on the columns of ``point``."""
        target, weights = problem.target[:, :, None], problem.row_weights[:, :, None]
        slope = problem.loss.derivative(problem.target, predictor)[:, :, None]
        curvature = curvature_matrix(problem, predictor)
        squares = np.zeros(point.shape[2])

        def slopes_at(block, shift):
            linear = curvature_times(curvature[block], shift)
            linear += slope[block]
            shift += predictor[block, :, None]
            missed = problem.loss.derivative(target[block], shift)
            missed -= linear
            replicas = (row_index >= block.start) & (row_index < block.stop)
            replicas = np.flatnonzero(replicas)
            missed[row_index[replicas] - block.start, :, replicas] = 0
            weighted = np.multiply(missed, weights[block], out=linear)
            squares[:] += einsum("jkr,jkr->r", missed, weighted)
            return weighted

        value = gradient_of_slopes(problem.design, point, slopes_at)
        norms = einsum("jkr,jkr->r", point, point)
        norms[norms == 0] = np.inf
        length = np.sqrt(squares)
        return cls(rows, predictor, row_index, point, value, length, norms)

    def scale(self, point):
        """The factor of ``value`` at other deviations, (n_replicas,)."""
        ratio = einsum("jkr,jkr->r", self.point, point) / self.squared_norms
        return np.minimum(ratio**2, LARGEST_SCALE)


def gradient_of_slopes(design, point, slopes_at):
    """The gradient, for every replica, of slopes that depend on the predictors.

    Shapes: point, returned (n_columns, n_outputs, n_replicas).
    """
    # ``slopes_at(rows, shift)`` are the slopes of a block of rows, which may overwrite
    # the predictors of the deviations there, ``shift``, (n_block, n_outputs,
    # n_replicas).
    n_columns, *shape = point.shape
    flat = point.reshape(n_columns, math.prod(shape))
    gradient = np.zeros_like(flat)
    for rows in blocks(design.shape[0], flat.itemsize * flat.shape[1]):
        block = design.rows(rows)
        shift = block.dot(flat).reshape(-1, *shape)
        gradient += block.t_dot(slopes_at(rows, shift).reshape(len(shift), -1))
    return gradient.reshape(point.shape)


def curvature_matrix(problem, predictor):
    """Second derivatives of the losses, in the precision of the design."""
    curvature = problem.loss.curvature_matrix(problem.target, predictor)
    return curvature.astype(problem.design.dtype, copy=False)


def curvature_times(curvature, shift):
    """A matrix for each row, (n, K, K), times shifts of the predictors, (n, K, R)."""
    if curvature.shape[1] == 1:
        # One number for each row: an elementwise product is many times faster.
        return curvature * shift
    return curvature @ shift


def hessian_times(problem, curvature, point):
    """H d for every replica, by H or by two passes over X, as is faster."""
    curvature = curvature * problem.row_weights[:, :, None]
    n_rows, n_outputs, _ = curvature.shape
    n_columns, _, n_replicas = point.shape
    width = n_columns * n_outputs
    if width * (n_rows + n_replicas) > 2 * n_rows * n_replicas:
        return gradient_of_slopes(
            problem.design,
            point,
            lambda rows, shift: curvature_times(curvature[rows], shift),
        )
    # From the left, as replicas lie in memory; the Hessian is symmetric.
    matrix = hessian(problem.design, curvature).transpose(1, 0, 3, 2)
    product = point.T.reshape(n_replicas, width) @ matrix.reshape(width, width)
    return product.reshape(point.T.shape).T


def _batch(problem, rows):
    """The problem of a batch, or of all rows."""
    return problem if rows is None else problem.batch(rows)
