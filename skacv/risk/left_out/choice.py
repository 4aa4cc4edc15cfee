"""What iterates cost on rows that their replica has never seen.

Entry t of a leave-one-out path is the mean over rows of what iterate t of the
same run, without that row, costs on it; folds are the same with sets of rows.
Nothing is refitted. Which rows are left out, of many, and which way is taken,
:mod:`skacv.risk.left_out.costs` decides: all ways are exact but linearising, of
single rows of a loss that is not quadratic.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from . import linearised, screened, spectral
from .costs import Run, Way
from .replicas import Replicas, check_stable, replayed

# Rows are left out again, exactly, where linearising is known to have misplaced
# their predictors by more, in the loss's own unit.
DOUBTFUL = 0.01
# Predictors that have moved by so many times the largest target are looked into.
FAR = 10
# Memory for replicas in lockstep.
BLOCK_BYTES = 1 << 28
ARRAYS_PER_REPLICA = 6

BY_ROW = ("rows", "loss_scale", "residual_scale", "penalty_scale", "whitening")


@dataclass(frozen=True)
class LeftOutRows:
    """Rows left out one at a time; arrays have one entry per row.

    Attributes
    ----------
    n_rows : int
        Of the whole problem.
    rows : ndarray of int
    loss_scale : ndarray
        c = 1 / (1 - w): what the weights of the others are multiplied by.
    residual_scale : ndarray
        k: the residual of the replica's own prediction, intercept included,
        over the residual of its coefficients on the centred data.
    penalty_scale : ndarray
        What the penalty's strength is multiplied by.
    whitening : ndarray
        sqrt(n w), by which :meth:`Problem.whitened` scales rows.
    """

    n_rows: int
    rows: np.ndarray
    loss_scale: np.ndarray
    residual_scale: np.ndarray
    penalty_scale: np.ndarray
    whitening: np.ndarray

    @classmethod
    def of(cls, problem, rows, fit_intercept, penalty_scale):
        """Describe the rows left out of a problem with shared weights."""
        weights = problem.row_weights[rows, 0].astype(np.float64)
        loss_scale = 1 / (1 - weights)
        return cls(
            n_rows=len(problem.target),
            rows=rows,
            loss_scale=loss_scale,
            residual_scale=loss_scale if fit_intercept else np.ones(len(rows)),
            penalty_scale=np.broadcast_to(penalty_scale(1 - weights), len(rows)),
            whitening=np.sqrt(len(problem.target) * weights),
        )

    def in_batches(self):
        """The same of a run in batches, which count as if all their rows were there."""
        ones = np.ones(len(self.rows))
        return replace(self, loss_scale=ones, penalty_scale=ones)

    def blocks(self, size):
        """The same in blocks of equal length, at most ``size`` rows each."""
        n_blocks = -(-len(self.rows) // size)
        for index in np.array_split(np.arange(len(self.rows)), n_blocks):
            yield self.part(index)

    def part(self, index):
        """Those in ``index``, in that order."""
        return replace(self, **{name: getattr(self, name)[index] for name in BY_ROW})

    def shared_scales(self):
        """Loss and penalty scales; one entry each if all rows share them."""
        n_scales = 1 if np.ptp(self.loss_scale) == 0 else len(self.rows)
        return self.loss_scale[:n_scales], self.penalty_scale[:n_scales]


def leave_one_out(
    problem,
    trajectory,
    rows,
    *,
    fit_intercept,
    penalty_scale,
    correction=True,
    n_blocks=1,
    map=map,
):
    """Linear predictors of rows, by the iterates that have never seen them.

    Parameters
    ----------
    problem : Problem
        With weights shared by its outputs.
    trajectory : Trajectory
    rows : ndarray of int, shape (n_left_out,)
    fit_intercept : bool
        Whether the design and the target were centred by their means.
    penalty_scale : callable
        ``penalty_scale(share)`` is what the penalty's strength is multiplied
        by where a share of the rows' weight stays.
    correction : bool
        Whether what is linearised is corrected at some iterates.
    n_blocks : int
        Blocks of rows wanted at least, as many as are worked on at a time.
    map : callable
        ``map(function, blocks)``; blocks are independent of each other.

    Returns
    -------
    ndarray of shape (n_iterates, n_left_out, n_outputs)
        Intercepts included, on the scale of the problem's target.

    Raises
    ------
    ValueError
        If the iterates without a row diverge. The message names the largest stable
        step.
    """
    blocks = -(-len(rows) // n_blocks), map
    settings = fit_intercept, penalty_scale
    found = _without_rows(problem, trajectory, rows, settings, blocks, correction)
    _check_stable(problem, trajectory, rows, settings, found)
    return found


def _without_rows(problem, trajectory, rows, settings, blocks, correction):
    """The predictors, in the way that suits the run."""
    left_out = LeftOutRows.of(problem, rows, *settings)
    way = Run.recorded(problem, trajectory, correction).way()
    if way is Way.SPECTRAL:
        residuals = spectral.leave_one_out(problem, trajectory, left_out, *blocks)
        return _predictors(residuals, problem, rows)
    if way is Way.WORKING_COLUMNS:
        return _on_working_columns(problem, trajectory, left_out, *blocks)
    if way is Way.LOCKSTEP:
        found = _rows_in_lockstep(problem, trajectory, settings, rows, *blocks)
        return np.concatenate([predictors for _, predictors in found], axis=1)
    found = [
        _linearised(*separate, left_out, settings, *blocks, correction)[0]
        for separate in separate_outputs(problem, trajectory)
    ]
    return np.concatenate(found, axis=2)


def _check_stable(problem, trajectory, rows, settings, predictors):
    """Raise where a row's predictors are far away because a step is too large."""
    if trajectory.has_batches():
        return
    moved = np.abs(predictors[-1] - predictors[0]).max(axis=1)
    furthest = moved.argmax()
    # The largest step is found for it alone; predictors that overflow are not less.
    if moved[furthest] <= FAR * np.abs(problem.target).max():
        return
    stays = np.arange(len(problem.target)) != rows[furthest]
    replica = Replicas.without(problem, stays[:, None], *settings)
    check_stable(problem, trajectory, replica, [0])


def _linearised(
    problem, trajectory, left_out, settings, largest_block, map, correction
):
    """By linearisation; rows that it does badly for, exactly.

    Returns
    -------
    predictors : ndarray of shape (n_iterates, n_left_out, n_outputs)
    coef : ndarray of shape (n_left_out, n_columns, n_outputs)
        Of the last iterate.
    """
    scaled = left_out.in_batches() if trajectory.has_batches() else left_out
    blocks = largest_block, map
    predictors, deviations, doubt = linearised.leave_one_out(
        problem, trajectory, scaled, *blocks, correction
    )
    coef = trajectory.coef[-1] + deviations
    doubtful = np.flatnonzero(doubt > DOUBTFUL * problem.loss.scale)
    if doubtful.size:
        again = left_out.rows[doubtful]
        found = _rows_in_lockstep(problem, trajectory, settings, again, *blocks)
        predictors[:, doubtful] = np.concatenate([z for _, z in found], axis=1)
        coef[doubtful] = np.concatenate([np.moveaxis(b, 2, 0) for b, _ in found])
    return predictors, coef


def _on_working_columns(problem, trajectory, left_out, largest_block, map):
    """Of squared errors, exactly."""
    residuals = [
        screened.leave_one_out(*separate, left_out, largest_block, map)[0]
        for separate in separate_outputs(problem, trajectory)
    ]
    return _predictors(np.stack(residuals, axis=2), problem, left_out.rows)


def _predictors(residuals, problem, rows):
    """From residuals, in their place: they may be the largest array of a fit."""
    residuals += problem.target[rows]
    return residuals


def coefficients_without(
    problem,
    trajectory,
    rows,
    *,
    fit_intercept,
    penalty_scale,
    correction=True,
    n_blocks=1,
    map=map,
):
    """The last iterate of one output, as it is without each of some rows.

    Parameters
    ----------
    problem, trajectory, rows, fit_intercept, penalty_scale, correction
        As in :func:`leave_one_out`, of one output.
    n_blocks, map
        As in :func:`leave_one_out`.

    Returns
    -------
    coef : ndarray of shape (n_left_out, n_columns)
    shift : ndarray of shape (n_left_out,)
        By how much a replica's intercept, on the centred data, is not zero.
    """
    left_out = LeftOutRows.of(problem, rows, fit_intercept, penalty_scale)
    blocks = -(-len(rows) // n_blocks), map
    shift = np.zeros(len(rows))
    recorded = trajectory.coef[-1].T
    if problem.loss.is_quadratic and trajectory.is_plain():
        residuals, (deviations, place) = screened.leave_one_out(
            problem, trajectory, left_out, *blocks
        )
        if fit_intercept:
            shift = (1 - 1 / left_out.loss_scale) * residuals[-1]
        return _with_deviations(recorded, deviations, len(rows))[place], shift
    settings = fit_intercept, penalty_scale
    if Run.recorded(problem, trajectory, correction).way() is not Way.LINEARISED:
        found = _rows_in_lockstep(problem, trajectory, settings, rows, *blocks)
        coef = np.concatenate([coef[:, 0].T for coef, _ in found])
        if fit_intercept:
            last = np.concatenate([z[-1, :, 0] for _, z in found])
            shift = last - problem.design.own_predictors(coef, rows)
        return coef, shift
    _, coef = _linearised(problem, trajectory, left_out, settings, *blocks, correction)
    return coef[:, :, 0], shift


def _with_deviations(coef, deviations, n_left_out):
    """Coefficients (1, n_columns) with what blocks of rows change in columns."""
    coef, first = np.repeat(coef, n_left_out, axis=0), 0
    for index, deviation in deviations:
        coef[first : first + len(deviation), index] += deviation
        first += len(deviation)
    return coef


def leave_folds_out(
    problem, trajectory, folds, *, fit_intercept, penalty_scale, n_blocks=1, map=map
):
    """Linear predictors of sets of rows, every fold a replica of the run: exact.

    Parameters
    ----------
    problem, trajectory, fit_intercept, penalty_scale, n_blocks, map
        As in :func:`leave_one_out`; blocks are folds.
    folds : list of (ndarray of int, ndarray of int)
        Rows that a replica is fitted on, and those that it is judged by.

    Returns
    -------
    list of ndarray of shape (n_iterates, n_judged, n_outputs)
        Fold by fold.

    Raises
    ------
    ValueError
        If the iterates of a fold diverge. The message names the largest stable
        step.
    """
    size = min(_replicas_at_a_time(problem), -(-len(folds) // n_blocks))
    blocks = [folds[first : first + size] for first in range(0, len(folds), size)]
    replay = partial(_folds_left_out, problem, trajectory, fit_intercept, penalty_scale)
    found = [predictors for _, predictors in map(replay, blocks)]
    ends = np.cumsum([len(judged) for _, judged in folds])
    return np.split(np.concatenate(found, axis=1), ends[:-1], axis=1)


def _replicas_at_a_time(problem):
    each = ARRAYS_PER_REPLICA * sum(problem.design.shape) * problem.target.shape[1]
    return max(1, BLOCK_BYTES // (each * problem.design.dtype.itemsize))


def _folds_left_out(problem, trajectory, fit_intercept, penalty_scale, folds):
    """One block of folds; their predictors one after the other."""
    stays = np.zeros((len(problem.target), len(folds)), dtype=bool)
    for fold, (fitted, _) in enumerate(folds):
        stays[fitted, fold] = True
    judged = [judged for _, judged in folds]
    return _left_out(problem, trajectory, fit_intercept, penalty_scale, stays, judged)


def _rows_in_lockstep(problem, trajectory, settings, rows, largest_block, map):
    """Blocks of rows left out, each a replica of its own: exact for any loss."""
    size = min(_replicas_at_a_time(problem), largest_block)
    blocks = np.array_split(rows, -(-len(rows) // size))
    return list(map(partial(_rows_left_out, problem, trajectory, *settings), blocks))


def _rows_left_out(problem, trajectory, fit_intercept, penalty_scale, rows):
    stays = np.ones((len(problem.target), len(rows)), dtype=bool)
    stays[rows, np.arange(len(rows))] = False
    judged = rows[:, None]
    return _left_out(problem, trajectory, fit_intercept, penalty_scale, stays, judged)


def _left_out(problem, trajectory, fit_intercept, penalty_scale, stays, judged):
    """Replicas on the rows that stay, and their predictors of the rows judged by.

    Returns
    -------
    coef : ndarray of shape (n_columns, n_outputs, n_replicas)
        Of the last iterate.
    predictors : ndarray of shape (n_iterates, n_judged, n_outputs)
        Replica after replica.
    """
    if trajectory.has_batches():
        replicas = Replicas.in_batches(problem, stays)
    else:
        replicas = Replicas.without(problem, stays, fit_intercept, penalty_scale)
    rows = np.concatenate(judged)
    replica = np.repeat(np.arange(len(judged)), [len(some) for some in judged])
    n_iterates, _, n_outputs = trajectory.predictor.shape
    found = np.empty((n_iterates, len(rows), n_outputs), trajectory.predictor.dtype)
    for t, iterate in enumerate(replayed(problem, trajectory, replicas)):
        coef, predictors = iterate
        if t == 0:
            begun = replicas.training_error(problem, predictors)
        found[t] = predictors[rows, :, replica]
    risen = ~(replicas.training_error(problem, predictors) <= begun)
    check_stable(problem, trajectory, replicas, np.flatnonzero(risen))
    return coef, found


def separate_outputs(problem, trajectory):
    """Problem and trajectory of every output that has a loss by itself."""
    if problem.loss.is_coupled:
        yield problem, trajectory
        return
    for k in range(problem.target.shape[1]):
        yield (
            replace(problem, target=problem.target[:, [k]]),
            replace(
                trajectory,
                coef=trajectory.coef[:, :, [k]],
                predictor=trajectory.predictor[:, :, [k]],
            ),
        )


def mean_with_error(costs, weights):
    """Weighted mean of every iterate's costs, and its standard error.

    Parameters
    ----------
    costs : ndarray of shape (n_iterates, n_costs)
    weights : ndarray of shape (n_costs,)
        Where they are zero it is as if the cost were not there.

    Returns
    -------
    mean, standard_error : ndarray of shape (n_iterates,)
    """
    weights = weights / weights.sum()
    mean = costs @ weights
    n_costs = np.count_nonzero(weights)
    # Sum of (w (cost - mean))^2 without another array of that size.
    squares = np.einsum("ti,ti,i->t", costs, costs, weights**2)
    variance = squares - 2 * mean * (costs @ weights**2) + mean**2 * (weights @ weights)
    variance = np.clip(variance, 0, None)
    return mean, np.sqrt(variance * n_costs / max(n_costs - 1, 1))
