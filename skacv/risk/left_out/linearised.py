"""Leave-one-out along a run with a curved loss, by linearising every replica.

Iterative approximate cross-validation (Luo, Ren & Barber 2023): the replica
that never sees row i stays near the recorded run, so its gradient at
theta + d_i is, with the derivatives l' and l'' at the recorded theta,

    c_i (gradient(theta) + H d_i - w_i x_i (l'_i + l''_i x_i'd_i) + C_i),
    H = sum_j w_j l''_j x_j x_j',

followed by the update that the recorded run took. For the squared error this is
exact with C_i = 0, which is what the paper has for every loss. The correction
C_i (:mod:`skacv.risk.left_out.correction`) takes in what linearising misses. It is
evaluated at updates 1 to 11, 13, 14, 15, 17, ... of a phase, and where the run
settles, what is left of the error is rounding.

A pass in batches is an update on each. There the row takes part in its own
batch alone; the correction is evaluated on every batch of passes 1, 2, 4, 8, ...,
and after each of them on all rows, as the mean of the batches', for those in between.

With a prox, replicas live on few columns. A column outside the working columns
is zero in every replica and stays so while a bound of its gradient,

    |gradient_j| + ||x_j|| (sqrt(max l'' max_i d_i'H d_i) + max_i length_i)
        + max |x_j| max_i |w_i (l'_i + l''_i x_i'd_i)|,

stays inside the threshold of the prox, with weighted norms and length_i
bounding the correction. So the result is that on all columns.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from ...optim.einsum import einsum
from ...optim.families import OnColumns
from ...optim.problem import Problem, hessian
from ...optim.trajectory import iterate
from .correction import (
    Correction,
    curvature_matrix,
    curvature_times,
    gradient_of_slopes,
)
from .moments import moments

# Memory for the replicas of a block of rows, and their arrays in an update.
BLOCK_BYTES = 1 << 28
ARRAYS_PER_REPLICA = 12
# What rounding may take from a bound, in units of the machine precision.
ROUNDING = 64


def leave_one_out(problem, trajectory, left_out, largest_block, map, correction=True):
    """Held-out linear predictors of every iterate, approximately.

    Parameters
    ----------
    problem : Problem
        It has one output, or outputs that the loss couples, and one column of
        weights.
    trajectory : Trajectory
        The recorded run of that problem.
    left_out : LeftOutRows
        Its rows, and the scales of loss and penalty: ones for passes in batches,
        which keep the weights of all rows.
    largest_block : int
        Rows that are worked on together at most.
    map : callable
        ``map(function, blocks)``; blocks of rows are independent.
    correction : bool
        Whether to correct for what linearising misses; without, the published
        estimate.

    Returns
    -------
    predictors : ndarray of shape (n_iterates, n_left_out, n_outputs)
        Predictor of every row that is left out, by the replica that never saw it.
    deviations : ndarray of shape (n_left_out, n_columns, n_outputs)
        The last iterate's coefficients without the row, less the recorded ones.
    error_estimate : ndarray of shape (n_left_out,)
        Largest error of the row's predictor that evaluations of the correction have
        shown, roughly; zeros without correction.

    Raises
    ------
    ValueError
        If there are several targets, or weights, that share nothing but X.

    References
    ----------
    Luo, Ren & Barber (2023), "Iterative approximate cross-validation",
    arXiv:2303.02732.
    """
    _check_outputs(problem)
    scaled = problem.design.scaled_rows(np.sqrt(problem.row_weights))
    column_sizes = scaled.column_sizes()[0], problem.design.column_sizes()[1]
    replay = partial(_replayed, problem, trajectory, column_sizes, correction)
    size = min(_rows_at_a_time(trajectory), largest_block)
    predictors, deviations, error_estimate = zip(*map(replay, left_out.blocks(size)))
    predictors = np.concatenate(predictors, axis=1)
    return predictors, np.concatenate(deviations), np.concatenate(error_estimate)


def _check_outputs(problem):
    """Several targets are problems of their own, with deviations of their own."""
    n_outputs = problem.target.shape[1]
    if n_outputs > 1 and not problem.loss.is_coupled:
        raise ValueError(
            f"Rows are left out of one target at a time: got {n_outputs} targets with "
            f"{problem.loss}."
        )


def _rows_at_a_time(trajectory):
    """So many replicas that their arrays keep to ``BLOCK_BYTES``."""
    _, n_columns, n_outputs = trajectory.coef.shape
    used = trajectory.coef.any(axis=2).sum(axis=1).max()
    # Replicas together use more columns than the recorded run.
    screened = not any(penalty.is_linear for _, penalty in trajectory.first_updates())
    widest = min(2 * int(used) + 1, n_columns) if screened else n_columns
    each = ARRAYS_PER_REPLICA * trajectory.coef.itemsize * widest * n_outputs
    return max(1, BLOCK_BYTES // each)


def _replayed(problem, trajectory, column_sizes, correction, left_out):
    """Predictors, deviations and estimates of their errors, of a block of rows."""
    start, rows = trajectory.coef[0], left_out.rows
    replicas = Replicas(problem, left_out, start, column_sizes, trajectory.whole)
    predictors = trajectory.predictor.of_rows(rows)
    for moment in iterate(moments(problem, trajectory, correction), replicas):
        if moment.ends is not None:
            predictors[moment.ends] += replicas.predicted(moment.following)
    return predictors, replicas.deviations(trajectory.coef[-1]), replicas.error_estimate


class Linearized(NamedTuple):
    """The gradients of all replicas at a recorded point, as far as they are linear.

    Attributes
    ----------
    point : ndarray of shape (n_working, n_outputs, n_replicas)
        Deviations.
    curved : ndarray of shape (n_working, n_outputs, n_replicas)
        H d.
    own : ndarray of shape (n_outputs, n_replicas)
        What the row left out adds to the gradient, before it multiplies the row.
    steepest : float
        A bound of the curvature of every row.
    """

    point: np.ndarray
    curved: np.ndarray
    own: np.ndarray
    steepest: float


class Replicas:
    """The replicas of a block of rows, one update after the other.

    Coefficients have shape (n_working, n_outputs, n_replicas). Working columns
    are in order and have the last among them, which may be an intercept.

    Parameters
    ----------
    problem : Problem
    left_out : LeftOutRows
    start : ndarray of shape (n_columns, n_outputs)
        Where the recorded run starts, and every replica.
    column_sizes : tuple of ndarray of shape (n_columns,)
        Weighted norms of the columns, and their largest entries.
    whole : callable
        It adds to a mask of columns those whose prox depends on theirs.
    """

    def __init__(self, problem, left_out, start, column_sizes, whole):
        self.problem, self.left_out = problem, left_out
        self.norms, self.largest = column_sizes
        dtype = problem.design.dtype
        self.loss_scale = left_out.loss_scale.astype(dtype)
        self.penalty_scale = left_out.penalty_scale.astype(dtype)
        used = start.any(axis=1)
        used[-1] = True
        self.whole = whole
        self._work_on(np.flatnonzero(whole(used)))
        started = start[self.index, :, None]
        self.current = np.repeat(started, len(left_out.rows), axis=2)
        self.earlier = self.current
        self.correction = None
        # Largest errors of the predictors that evaluations have shown.
        self.error_estimate = np.zeros(len(left_out.rows))

    def take(self, moment):
        """Take one update of the recorded run."""
        if moment.starts:
            self.earlier = self.current
        problem = _part(self.problem, moment.rows)
        slope = problem.loss.derivative(problem.target, moment.predictor)
        gradient = problem.design.t_dot(problem.row_weights * slope)
        if moment.evaluates is not None:
            self._evaluate(moment)
        linearized = self._linearized(moment, slope)
        if len(self.index) < len(gradient):
            joins = self._joining(moment, gradient, linearized)
            if joins.any():
                self._join(joins)
                linearized = self._linearized(moment, slope)
        self._advance(moment, gradient[self.index], linearized)

    def predicted(self, coef):
        """Predictors of the rows left out, less those by ``coef``."""
        deviations = self.current - coef[self.index, :, None]
        return einsum("jr,jkr->rk", self.rows, deviations)

    def deviations(self, coef):
        """Coefficients less ``coef``, (n_replicas, n_columns, n_outputs)."""
        n_columns, n_outputs = coef.shape
        found = np.zeros((self.current.shape[2], n_columns, n_outputs), coef.dtype)
        found[:, self.index] = np.moveaxis(self.current, 2, 0) - coef[self.index]
        return found

    def _work_on(self, index):
        """Let ``index`` be the working columns of the data."""
        self.index, self._penalty_on = index, OnColumns(index)
        dtype = self.problem.design.dtype
        rows = self.problem.design.rows(self.left_out.rows)
        self.rows = np.ascontiguousarray(rows.dense_columns(index, dtype).T)
        design = self.problem.design.columns(index, dtype)
        self.working = Problem(
            design, self.problem.target, self.problem.row_weights, self.problem.loss
        )

    def _linearized(self, moment, slope):
        """The replicas' gradients but for the correction, from l' of the rows."""
        problem = _part(self.working, moment.rows)
        point = self._point(moment)
        curvature = curvature_matrix(problem, moment.predictor)
        curved = _curved(problem, curvature, point)
        place = self._place(moment.rows)
        shift = einsum("jr,jkr->rk", self.rows, point)[:, :, None]
        own = slope[place] + curvature_times(curvature[place], shift)[:, :, 0]
        own *= np.where(place[:, None] < 0, 0, problem.row_weights[place])
        steepest = np.linalg.norm(curvature, axis=(1, 2)).max()
        return Linearized(point, curved, own.T, steepest)

    def _point(self, moment):
        """Deviations at the gradient point."""
        recorded = moment.step.point(moment.coef, moment.earlier)
        point = moment.step.point(self.current, self.earlier)
        return point - recorded[self.index, :, None]

    def _place(self, rows):
        """Where each row left out is among some rows; -1 where it is not."""
        if rows is None:
            return self.left_out.rows
        place = np.full(self.left_out.n_rows, -1)
        place[rows] = np.arange(len(rows))
        return place[self.left_out.rows]

    def _evaluate(self, moment):
        """Evaluate the correction, and how far off the one used so far was."""
        rows, predictor = moment.evaluates
        index, expected = self.index, 0.0
        if self.correction is not None:
            scale = self.correction.scale(self._point(moment))
            expected = self.correction.value * scale
        self._drop(moment)
        problem = _part(self.working, rows)
        place, point = self._place(rows), self._point(moment)
        following = Correction.at(problem, rows, predictor, place, point)
        if self.correction is not None and rows is None:
            kept = np.searchsorted(index, self.index)
            curvature = curvature_matrix(problem, predictor)
            curved = _curved(problem, curvature, point)
            off = _lengths(following.value - expected[kept])
            share = off / np.maximum(_lengths(curved), np.finfo(off.dtype).tiny)
            shift = einsum("jr,jkr->rk", self.rows, point)
            error_estimate = share * np.abs(shift).max(axis=1)
            self.error_estimate = np.maximum(self.error_estimate, error_estimate)
        self.correction = following

    def _advance(self, moment, gradient, linearized):
        """The update itself, for every replica on the working columns."""
        following = linearized.curved
        following += gradient[:, :, None]
        following -= self.rows[:, None, :] * linearized.own
        if self.correction is not None:
            scale = self.correction.scale(linearized.point)
            following += self.correction.value * scale
        following *= self.loss_scale
        self.earlier, self.current = (
            self.current,
            moment.step.apply(
                self.current,
                self.earlier,
                following,
                self._penalty_on(moment.penalty),
                self.penalty_scale,
            ),
        )

    def _joining(self, moment, gradient, linearized):
        """Columns outside that the update may move, in a replica or the run."""
        point, curved, own, steepest = linearized
        stretch = einsum("jkr,jkr->r", point, curved).max(initial=0)
        length = np.sqrt(steepest * max(stretch, 0)) * self._growth(moment.rows)
        if self.correction is not None:
            missed = self.correction.length * self.correction.scale(point)
            length += missed.max(initial=0) * self._growth(self.correction.rows)
        bound = np.abs(gradient).max(axis=1) + self.norms * length
        bound += self.largest * np.abs(own).max(initial=0)
        bound *= 1 + ROUNDING * np.finfo(self.rows.dtype).eps
        step_size = moment.step.step_size
        size = step_size * self.loss_scale.max() * bound
        weakest = min(1.0, self.penalty_scale.min())
        moves = moment.penalty.prox(size, step_size * weakest) != 0
        moves |= moment.following.any(axis=1)
        moves = self.whole(moves)
        moves[self.index] = False
        return moves

    def _growth(self, rows):
        """Largest ratio of a column's norm over a batch to that over all rows."""
        n_rows = self.left_out.n_rows
        return 1.0 if rows is None else np.sqrt(n_rows / len(rows))

    def _join(self, joins):
        """Widen the working columns by those where ``joins`` is true."""
        index = np.union1d(self.index, np.flatnonzero(joins))
        place = np.searchsorted(index, self.index)

        def widen(array):
            wide = np.zeros((len(index), *array.shape[1:]), array.dtype)
            wide[place] = array
            return wide

        self._work_on(index)
        self.current, self.earlier = widen(self.current), widen(self.earlier)
        if self.correction is not None:
            problem = _part(self.working, self.correction.rows)
            self.correction = self.correction.widened(problem, widen)

    def _drop(self, moment):
        """Drop working columns that are zero everywhere in this iterate and before."""
        used = moment.coef.any(axis=1) | moment.earlier.any(axis=1)
        used[self.index] |= self.current.any(axis=(1, 2))
        used[self.index] |= self.earlier.any(axis=(1, 2))
        used[-1] = True
        used = self.whole(used)[self.index]
        if used.all():
            return
        self._work_on(self.index[used])
        self.current, self.earlier = self.current[used], self.earlier[used]


def _lengths(array):
    """Euclidean norm of every replica of (n_columns, n_outputs, n_replicas)."""
    return np.sqrt(einsum("jkr,jkr->r", array, array))


def _part(problem, rows):
    """The problem of a batch, or of all rows."""
    return problem if rows is None else problem.batch(rows)


def _curved(problem, curvature, point):
    """H d for every replica: by H, or by two passes over X where that costs less."""
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
    matrix = hessian(problem.design, curvature).reshape(width, width)
    product = matrix @ point.reshape(width, n_replicas)
    return product.reshape(point.shape)
