"""What iterates cost on rows that their replica has never seen.

Entry t of a leave-one-out path is the mean over rows of what iterate t of the
same run, without that row, costs on it; folds are the same with sets of rows.
Nothing is refitted and, for the squared error, nothing is approximated.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from . import lockstep, row_lockstep, spectral

# Linear updates are decomposed up to this size of the smaller side of X.
SPECTRAL_SIZE = 2000
# Left to us, at most so many rows are left out of linear updates, so many
# multiplications are spent on others, and at least so many rows are left out.
MANY_ROWS = 10_000
MULTIPLICATIONS = 1e10
FEW_ROWS = 100
# Memory for the replicas of a block of folds.
BLOCK_BYTES = 1 << 28
ARRAYS_PER_FOLD = 6

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
    problem, trajectory, rows, *, fit_intercept, penalty_scale, n_blocks=1, map=map
):
    """Held-out residuals of the squared error, rows left out one at a time.

    Parameters
    ----------
    problem : Problem
        With weights shared by its targets.
    trajectory : Trajectory
    rows : ndarray of int, shape (n_left_out,)
    fit_intercept : bool
        Whether the design and the target were centred by their means.
    penalty_scale : callable
        ``penalty_scale(share)`` is what the penalty's strength is multiplied
        by where a share of the rows' weight stays.
    n_blocks : int
        Blocks of rows wanted at least, as many as are worked on at a time.
    map : callable
        ``map(function, blocks)``; blocks are independent of each other.

    Returns
    -------
    ndarray of shape (n_iterates, n_left_out, n_targets)
        Prediction less target.
    """
    left_out = LeftOutRows.of(problem, rows, fit_intercept, penalty_scale)
    largest_block = -(-len(rows) // n_blocks)
    if _is_spectral(min(problem.design.shape), trajectory.has_linear_updates()):
        return spectral.leave_one_out(problem, trajectory, left_out, largest_block, map)
    residuals = [
        row_lockstep.leave_one_out(*single, left_out, largest_block, map)[0]
        for single in single_targets(problem, trajectory)
    ]
    return np.stack(residuals, axis=2)


def coefficients_without(
    problem, trajectory, rows, *, fit_intercept, penalty_scale, n_blocks=1, map=map
):
    """The last iterate of one target, as it is without each of some rows.

    Parameters
    ----------
    problem, trajectory, rows, fit_intercept, penalty_scale, n_blocks, map
        As in :func:`leave_one_out`, of one target.

    Returns
    -------
    coef : ndarray of shape (n_left_out, n_columns)
    shift : ndarray of shape (n_left_out,)
        By how much a replica's intercept, on the centred data, is not zero.
    """
    left_out = LeftOutRows.of(problem, rows, fit_intercept, penalty_scale)
    largest_block = -(-len(rows) // n_blocks)
    residuals, (deviations, place) = row_lockstep.leave_one_out(
        problem, trajectory, left_out, largest_block, map
    )
    coef = np.repeat(trajectory.coef[-1].T, len(rows), axis=0)
    first = 0
    for index, deviation in deviations:
        coef[first : first + len(deviation), index] += deviation
        first += len(deviation)
    coef = coef[place]
    share = 1 - 1 / left_out.loss_scale
    return coef, share * residuals[-1] if fit_intercept else np.zeros(len(rows))


def leave_folds_out(
    problem, trajectory, folds, *, fit_intercept, penalty_scale, n_blocks=1, map=map
):
    """Held-out residuals of sets of rows, every fold a replica of the run.

    Parameters
    ----------
    problem, trajectory, fit_intercept, penalty_scale, n_blocks, map
        As in :func:`leave_one_out`; blocks are folds.
    folds : list of (ndarray of int, ndarray of int)
        Rows that a replica is fitted on, and those that it is judged by.

    Returns
    -------
    list of ndarray of shape (n_iterates, n_judged, n_targets)
        Prediction less target, fold by fold.

    Raises
    ------
    ValueError
        If the iterates of a fold diverge. The message names the largest stable
        step.
    """
    n_rows, n_columns = problem.design.shape
    each = ARRAYS_PER_FOLD * (n_rows + n_columns) * problem.design.dtype.itemsize
    size = max(1, min(BLOCK_BYTES // each, -(-len(folds) // n_blocks)))
    blocks = [folds[first : first + size] for first in range(0, len(folds), size)]
    replay = partial(_folds_left_out, problem, trajectory, fit_intercept, penalty_scale)
    return [residuals for block in map(replay, blocks) for residuals in block]


def _folds_left_out(problem, trajectory, fit_intercept, penalty_scale, folds):
    """One block of folds, (n_iterates, n_judged, n_targets) each."""
    stays = np.zeros((len(problem.target), len(folds)), dtype=bool)
    for fold, (fitted, _) in enumerate(folds):
        stays[fitted, fold] = True
    replicas = lockstep.Replicas.without(problem, stays, fit_intercept, penalty_scale)
    n_iterates, _, n_targets = trajectory.predictor.shape
    dtype = trajectory.predictor.dtype
    found = [np.empty((n_iterates, len(held), n_targets), dtype) for _, held in folds]
    for k, single in enumerate(single_targets(problem, trajectory)):
        for t, residuals in enumerate(lockstep.replayed(*single, replicas)):
            if t == 0:
                begun = replicas.training_error(residuals)
            for fold, (_, judged) in enumerate(folds):
                found[fold][t, :, k] = residuals[judged, fold]
        risen = ~(replicas.training_error(residuals) <= begun)
        lockstep.check_stable(problem, trajectory, replicas, np.flatnonzero(risen))
    return found


def single_targets(problem, trajectory):
    """Problem and trajectory of every target by itself."""
    for k in range(problem.target.shape[1]):
        yield (
            replace(problem, target=problem.target[:, [k]]),
            replace(
                trajectory,
                coef=trajectory.coef[:, :, [k]],
                predictor=trajectory.predictor[:, :, [k]],
            ),
        )


def _is_spectral(smaller_side, has_linear_updates):
    return has_linear_updates and smaller_side <= SPECTRAL_SIZE


def n_rows_worth(shape, n_updates, n_active, has_linear_updates):
    """How many rows it takes little to leave out, of so many that use ``n_active``.

    Parameters
    ----------
    shape : tuple of int
        Of the design.
    n_updates : int
    n_active : int
        Columns that the run uses at most.
    has_linear_updates : bool

    Returns
    -------
    int
        All rows where that is cheap; at least ``FEW_ROWS``, if there are.
    """
    n_rows, n_columns = shape
    if _is_spectral(min(shape), has_linear_updates):
        return min(n_rows, MANY_ROWS)
    # Replicas together use more columns than the recorded run.
    width = min(2 * n_active, n_columns)
    each = max(n_updates * width * min(width, 2 * n_rows), 1)
    return int(min(n_rows, max(FEW_ROWS, MULTIPLICATIONS // each)))


def mean_with_error(costs, weights):
    """Weighted mean of every iterate's costs, and its standard error.

    Parameters
    ----------
    costs : ndarray of shape (n_iterates, n_costs)
    weights : ndarray of shape (n_costs,)

    Returns
    -------
    mean, standard_error : ndarray of shape (n_iterates,)
    """
    weights = weights / weights.sum()
    mean = costs @ weights
    n_costs = len(weights)
    # Sum of (w (cost - mean))^2 without another array of that size.
    squares = np.einsum("ti,ti,i->t", costs, costs, weights**2)
    variance = squares - 2 * mean * (costs @ weights**2) + mean**2 * (weights @ weights)
    variance = np.clip(variance, 0, None)
    return mean, np.sqrt(variance * n_costs / max(n_costs - 1, 1))
