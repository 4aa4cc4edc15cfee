"""Leave-one-out along a run with a curved loss, by linearising every replica.

Iterative approximate cross-validation (Luo, Ren & Barber 2023): the replica
that never sees row i stays near the recorded run, so its gradient at
theta + d_i is, with the derivatives l' and l'' at the recorded theta,

    c_i (gradient(theta) + H d_i - w_i x_i (l'_i + l''_i x_i'd_i) + C_i),
    H = sum_j w_j l''_j x_j x_j',

followed by the update that the recorded run took. For the squared error this is exact
with C_i = 0, which is what the paper has for every loss. The correction C_i
(:mod:`skacv.risk.left_out.correction`) takes in what linearising misses. It is
evaluated at updates 1 to 11, 13, 14, 15, 17, ... of a phase, and where the run
converges, the remaining error is rounding.

A pass in batches is an update on each. There the row takes part in its own
batch alone; the correction is evaluated on every batch of passes 1, 2, 4, 8, ...,
and after each of them on all rows, as the mean of the batches', for those in between.

With a prox, replicas live on few columns (:mod:`skacv.risk.left_out.row_replicas`).
Outside these the gradient is bounded by

    |gradient_j| + ||x_j|| (sqrt(max l'' max_i d_i'H d_i) + max_i length_i)
        + max |x_j| max_i |w_i (l'_i + l''_i x_i'd_i)|,

with weighted norms and length_i bounding the correction.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from ...optim.einsum import einsum
from ...optim.fits import WeightedFits
from ...optim.problem import hessian
from ...optim.trajectory import iterate
from .correction import (
    Correction,
    curvature_matrix,
    curvature_times,
    evaluated,
    gradient_of_slopes,
)
from .row_replicas import ReplayedStep, RowReplicas, joined, kept, rows_at_a_time


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
    n_outputs = problem.target.shape[1]
    if n_outputs > 1 and not problem.loss.is_coupled:
        # They are problems of their own, with deviations of their own.
        raise ValueError(
            f"Rows are left out of one target at a time: got {n_outputs} targets with "
            f"{problem.loss}."
        )
    sizes = column_sizes(problem)
    replay = partial(_replayed, problem, trajectory, sizes, correction)
    size = min(rows_at_a_time(trajectory), largest_block)
    predictors, deviations, error_estimate = zip(*map(replay, left_out.blocks(size)))
    predictors = np.concatenate(predictors, axis=1)
    return predictors, np.concatenate(deviations), np.concatenate(error_estimate)


def column_sizes(problem):
    """Weighted norms of the columns, and their largest entries."""
    scaled = problem.design.scaled_rows(np.sqrt(problem.row_weights))
    return scaled.column_sizes()[0], problem.design.column_sizes()[1]


def _replayed(problem, trajectory, sizes, correction, left_out):
    """Predictors, deviations and estimates of their errors, of a block of rows."""
    replicas = Replicas(problem, trajectory, left_out, sizes)
    predictors = trajectory.predictor.of_rows(left_out.rows)
    for step in iterate(replayed_steps(problem, trajectory, correction), replicas):
        if step.ends is not None:
            deviations = replicas.deviations(step.following)
            predictors[step.ends] += replicas.of_own_rows(deviations)
    deviations = replicas.on_all_columns(trajectory.coef[-1])
    return predictors, deviations, replicas.error_estimate


class Replicas(RowReplicas):
    """Replicas whose curvature is that of the loss at the recorded point.

    Parameters
    ----------
    sizes : tuple of ndarray of shape (n_columns,)
        Weighted norms of the columns, and their largest entries.

    Attributes
    ----------
    correction : Correction or None
        As it was evaluated last.
    error_estimate : ndarray of shape (n_replicas,)
        Largest errors of the predictors that evaluations have shown.
    """

    def __init__(self, problem, trajectory, left_out, sizes):
        super().__init__(problem.design, left_out, trajectory)
        self.problem, (self.norms, self.largest) = problem, sizes
        self.correction = None
        self.error_estimate = np.zeros(len(left_out.rows))

    def of_own_rows(self, point):
        """Predictors of the rows left out by deviations, (n_replicas, n_outputs)."""
        return einsum("jr,jkr->rk", self.rows, point)

    def _look(self, step):
        problem = _part(self.problem, step.rows)
        self.slope = problem.loss.derivative(problem.target, step.predictor)
        if step.evaluates is not None:
            self._evaluate(*step.evaluates, step)
        self._linearise(step)
        return problem.design.t_dot(problem.row_weights * self.slope)

    def _look_again(self, step):
        former = self.correction
        if former is not None:
            missing = self._zeros(len(self.working) - len(former.point))
            problem = self._on_working(former.rows)
            point = joined(former.point, missing)
            self.correction = former.widened(problem, point)
        self._linearise(step)

    def _on_working(self, rows):
        """The problem of some rows on the working columns."""
        return _part(replace(self.problem, design=self.working.as_design()), rows)

    def _linearise(self, step):
        """Find what is linear at the recorded point, and the correction there."""
        problem, point = self._on_working(step.rows), self._point(step)
        curvature = curvature_matrix(problem, step.predictor)
        place = self._place(step.rows)
        shift = self.of_own_rows(point)[:, :, None]
        own = self.slope[place] + curvature_times(curvature[place], shift)[:, :, 0]
        own *= np.where(place[:, None] < 0, 0, problem.row_weights[place])
        self.own = own.T
        self.shift = curved = _curved(problem, curvature, point)
        self._linear = step.rows, curvature, point, curved
        if self.correction is not None:
            self.shift = self.correction.value * self.correction.scale(point)
            self.shift += curved

    def _place(self, rows):
        """Where each row left out is among some rows; -1 where it is not."""
        if rows is None:
            return self.left_out.rows
        place = np.full(self.left_out.n_rows, -1)
        place[rows] = np.arange(len(rows))
        return place[self.left_out.rows]

    def _evaluate(self, rows, predictor, step):
        """Evaluate the correction, and how far off the one used so far was."""
        last, point = self.correction, self._point(step)
        places = self._drop(step.coef, step.earlier)
        problem, point_kept = self._on_working(rows), kept(point, places)
        place = self._place(rows)
        self.correction = Correction.at(problem, rows, predictor, place, point_kept)
        if last is None or rows is not None:
            return
        expected = (last.value * last.scale(point))[places]
        curved = _curved(problem, curvature_matrix(problem, predictor), point_kept)
        off = np.linalg.norm(self.correction.value - expected, axis=(0, 1))
        size = np.linalg.norm(curved, axis=(0, 1))
        share = off / np.maximum(size, np.finfo(off.dtype).tiny)
        error_estimate = share * np.abs(self.of_own_rows(point_kept)).max(axis=1)
        self.error_estimate = np.maximum(self.error_estimate, error_estimate)

    def _bounds(self):
        largest = self.largest * np.abs(self.own).max(initial=0)
        return self.norms * self._length() + largest

    def _length(self):
        """How long the shifts of the slopes of all rows are together, at most."""
        rows, curvature, point, curved = self._linear
        steepest = np.linalg.norm(curvature, axis=(1, 2)).max()
        stretch = steepest * einsum("jkr,jkr->r", point, curved)
        length = self._growth(rows) * np.sqrt(stretch.max(initial=0))
        if self.correction is not None:
            missed = self.correction.length * self.correction.scale(point)
            length += self._growth(self.correction.rows) * missed.max(initial=0)
        return length

    def _growth(self, rows):
        """Largest ratio of a column's norm over a batch to that over all rows."""
        n_rows = self.left_out.n_rows
        return 1.0 if rows is None else np.sqrt(n_rows / len(rows))


def replayed_steps(problem, trajectory, correction):
    """Every update of the run, batch by batch, and when to evaluate the correction.

    Parameters
    ----------
    correction : bool
        Whether to evaluate it at all.

    Yields
    ------
    ReplayedStep
    """
    n_updates = trajectory.n_updates if correction else 0
    due, due_passes = evaluated(n_updates), evaluated(n_updates, has_batches=True)
    number = 0
    for taken in trajectory.updates():
        number = 1 if taken.restarts else number + 1
        if taken.update.n_batches:
            evaluates = number in due_passes, number - 1 in due_passes
            yield from _batch_steps(problem, trajectory, taken, *evaluates)
        else:
            t, before, update, _ = taken
            predictor = trajectory.predictor
            predictor = update.point(predictor[t], predictor[before])
            evaluates = (None, predictor) if number in due else None
            step = ReplayedStep.on_all_rows(trajectory.coef, taken)
            yield step._replace(predictor=predictor, evaluates=evaluates)


def _batch_steps(problem, trajectory, taken, on_batches, on_all_rows):
    """The steps of a pass, evaluating on every batch, or on all rows at its start."""
    t, _, update, penalty = taken
    first = (None, trajectory.predictor[t]) if on_all_rows else None
    last, fits = update.n_batches - 1, WeightedFits(problem)
    parts = update.parts(fits, penalty, fits.start(trajectory.coef[t]))
    for k, part in enumerate(parts):
        rows, coef, predictor = part.rows, part.coef[:, :, 0], part.predictor[:, :, 0]
        yield ReplayedStep(
            penalty=penalty,
            update=update.update,
            coef=coef,
            earlier=coef,
            following=part.following[:, :, 0],
            starts=True,
            ends=t + 1 if k == last else None,
            predictor=predictor,
            rows=rows,
            evaluates=(rows, predictor) if on_batches else first,
        )
        first = None


def _part(problem, rows):
    """The problem of a batch, or of all rows."""
    return problem if rows is None else problem.batch(rows)


def _curved(problem, curvature, point):
    """H d for every replica: by H, or by two passes over X if that is faster."""
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
