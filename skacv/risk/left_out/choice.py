"""What iterates cost on rows that their replica has never seen: where to begin.

Entry t of a leave-one-out path is the mean over rows of what iterate t of the
same run, without that row, costs on it; folds are the same with sets of rows.
Nothing is refitted. Four ways leave out single rows, listed in ``WAYS`` in the order
of what they cost; each says what it requires, and the first that can read a run does.
All are exact but linearising, of a loss that is not quadratic. Folds are replicas.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from . import linearised, screened, spectral
from .costs import MANY_ROWS, Run, is_decomposed, is_kernel_decomposed
from .replicas import check_stable, held_out_predictors

# Rows are left out again, exactly, where linearising is known to have misplaced
# their predictors by more, in the loss's own unit.
DOUBTFUL = 0.01
# Predictors that have moved by so many times the largest target are looked into.
FAR = 10
# Memory for replicas.
BLOCK_BYTES = 1 << 28
ARRAYS_PER_REPLICA = 6

BY_ROW = ("rows", "loss_scale", "residual_scale", "penalty_scale", "whitening")


@dataclass(frozen=True)
class LeftOutRows:
    """Rows left out one at a time; arrays have one entry per row.

    Attributes
    ----------
    n_rows : int
        Number of rows of the whole problem.
    rows : ndarray of int
    loss_scale : ndarray
        c: what the weights of the others are multiplied by, as the refit has it.
    residual_scale : ndarray
        k: the residual of the replica's own prediction, intercept included,
        over the residual of its coefficients on the centred data.
    penalty_scale : ndarray
        What the penalty's strength is multiplied by.
    whitening : ndarray
        sqrt(n w), by which :meth:`Problem.sqrt_weighted` scales rows.
    """

    n_rows: int
    rows: np.ndarray
    loss_scale: np.ndarray
    residual_scale: np.ndarray
    penalty_scale: np.ndarray
    whitening: np.ndarray

    @classmethod
    def of(cls, problem, rows, refit):
        """Describe the rows left out of a problem with shared weights."""
        weights = problem.row_weights[rows, 0].astype(np.float64)
        share = 1 - weights
        return cls(
            n_rows=len(problem.target),
            rows=rows,
            loss_scale=refit.loss_scale(share),
            residual_scale=1 / share if refit.recentres else np.ones(len(rows)),
            penalty_scale=refit.penalty_scale(share),
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


@dataclass(frozen=True)
class Asked:
    """Rows to be left out of a recorded run, one at a time.

    Attributes
    ----------
    problem : Problem
        With weights shared by its outputs.
    trajectory : Trajectory
    rows : ndarray of int, shape (n_left_out,)
    refit : Refit
        As it is for a run like this one.
    correction : bool
        Whether what is linearised is corrected at some iterates.
    n_blocks : int
        Blocks of rows wanted at least, as many as are worked on at a time.
    map : callable
        ``map(function, blocks)``; blocks are independent of each other.
    """

    problem: object
    trajectory: object
    rows: np.ndarray
    refit: object
    correction: bool = True
    n_blocks: int = 1
    map: object = map

    @property
    def left_out(self):
        return LeftOutRows.of(self.problem, self.rows, self.refit)

    @property
    def blocks(self):
        """Rows of a block at most, and what goes through the blocks."""
        return -(-len(self.rows) // self.n_blocks), self.map

    @property
    def run(self):
        return Run.recorded(self.problem, self.trajectory, self.correction)

    def outputs(self):
        """The same for every output that has a loss by itself."""
        if self.problem.loss.is_coupled:
            return [self]
        return [
            replace(
                self,
                problem=replace(self.problem, target=self.problem.target[:, [k]]),
                trajectory=self.trajectory.of_output(k),
            )
            for k in range(self.problem.target.shape[1])
        ]

    def take(self, places):
        """The same for some of the rows."""
        return replace(self, rows=self.rows[places])


class ByDecomposition:
    """All rows by one decomposition: linear updates with the squared error."""

    @staticmethod
    def refusal(run):
        """Why this cannot read a run, a sentence; None where it can."""
        if not run.is_quadratic:
            return "Rows are left out by one decomposition with the squared error only."
        if not run.has_one_basis():
            return (
                "Rows are left out by one decomposition where all updates are linear "
                "and elementwise in one eigenbasis only."
            )
        return None

    @staticmethod
    def is_worth(run):
        if run.has_columns:
            return is_decomposed(run.shape)
        return is_kernel_decomposed(run.shape[0])

    @staticmethod
    def n_rows_worth(run, n_active):
        return min(run.shape[0], MANY_ROWS)

    @staticmethod
    def predictors(asked):
        """Held-out predictors, (n_iterates, n_left_out, n_outputs)."""
        residuals = spectral.leave_one_out(
            asked.problem, asked.trajectory, asked.left_out, *asked.blocks
        )
        return _predictors(residuals, asked.problem, asked.rows)


class OnWorkingColumns:
    """Rows by what they change, on few columns: a prox, with the squared error."""

    @staticmethod
    def refusal(run):
        """Why this cannot read a run, a sentence; None where it can."""
        if not run.is_quadratic:
            return "Rows are left out on few columns with the squared error only."
        if not run.has_columns:
            return "Rows are left out on few columns where there are columns only."
        if not (run.is_elementwise() and run.takes_all_rows()):
            return (
                "Rows are left out on few columns where updates take all rows, and "
                "every coefficient goes by its own gradient, only."
            )
        return None

    @staticmethod
    def is_worth(run):
        return True

    @staticmethod
    def n_rows_worth(run, n_active):
        return run.n_rows_worth(n_active, n_exact=0)

    @staticmethod
    def predictors(asked):
        """Held-out predictors, (n_iterates, n_left_out, n_outputs)."""
        residuals = [
            screened.leave_one_out(
                part.problem, part.trajectory, asked.left_out, *asked.blocks
            )[0]
            for part in asked.outputs()
        ]
        return _predictors(np.stack(residuals, axis=2), asked.problem, asked.rows)

    @staticmethod
    def coefficients(asked):
        """The last iterate of one output without each row, and intercepts' shifts."""
        left_out = asked.left_out
        residuals, (deviations, place) = screened.leave_one_out(
            asked.problem, asked.trajectory, left_out, *asked.blocks
        )
        shift = np.zeros(len(asked.rows))
        if asked.refit.recentres:
            shift = (1 - 1 / left_out.residual_scale) * residuals[-1]
        recorded = asked.trajectory.coef[-1].T
        return _with_deviations(recorded, deviations, len(shift))[place], shift


class Linearised:
    """Rows by what they change, with derivatives at the recorded run."""

    @staticmethod
    def refusal(run):
        """Why this cannot read a run, a sentence; None where it can."""
        if run.is_quadratic:
            return "A quadratic loss needs no linearising."
        if not (run.has_columns and run.is_elementwise()):
            return (
                "Replicas are linearised where every coefficient goes by its own "
                "gradient only."
            )
        return None

    @staticmethod
    def is_worth(run):
        return run.is_worth_linearising()

    @staticmethod
    def n_rows_worth(run, n_active):
        return run.n_rows_worth(n_active, run.n_corrected())

    @staticmethod
    def predictors(asked):
        """Held-out predictors, (n_iterates, n_left_out, n_outputs)."""
        found = [_linearised(part)[0] for part in asked.outputs()]
        return np.concatenate(found, axis=2)

    @staticmethod
    def coefficients(asked):
        """The last iterate of one output without each row, and intercepts' shifts."""
        _, coef = _linearised(asked)
        return coef[:, :, 0], np.zeros(len(asked.rows))


class ByReplicas:
    """Rows by runs of their own, side by side: exact for any update and any loss."""

    @staticmethod
    def refusal(run):
        """None: this reads every run."""
        return None

    @staticmethod
    def is_worth(run):
        return True

    @staticmethod
    def n_rows_worth(run, n_active):
        return run.n_rows_worth(n_active, run.n_updates)

    @staticmethod
    def predictors(asked):
        """Held-out predictors, (n_iterates, n_left_out, n_outputs)."""
        return np.concatenate([z for _, z in _rows_by_replicas(asked)], axis=1)

    @staticmethod
    def coefficients(asked):
        """The last iterate of one output without each row, and intercepts' shifts."""
        found = _rows_by_replicas(asked)
        coef = np.concatenate([coef[:, 0].T for coef, _ in found])
        shift = np.zeros(len(asked.rows))
        if asked.refit.recentres:
            last = np.concatenate([z[-1, :, 0] for _, z in found])
            shift = last - asked.problem.design.own_predictors(coef, asked.rows)
        return coef, shift


WAYS = (ByDecomposition, OnWorkingColumns, Linearised, ByReplicas)
# Those that give coefficients besides.
COEFFICIENT_WAYS = (OnWorkingColumns, Linearised, ByReplicas)


def way_of(run, ways=WAYS):
    """The first of the ways that can read a run, and is worth it."""
    return next(way for way in ways if way.refusal(run) is None and way.is_worth(run))


def n_rows_worth(run, n_active):
    """How many rows it takes little to leave out of a run; all where that is cheap.

    Parameters
    ----------
    run : Run
    n_active : int
        Columns that the run uses at most.
    """
    return way_of(run).n_rows_worth(run, n_active)


def leave_one_out(problem, trajectory, rows, refit, **settings):
    """Linear predictors of rows, by the iterates that have never seen them.

    Parameters
    ----------
    problem, trajectory, rows
        As :class:`Asked` takes them.
    refit : Refit
    **settings
        ``correction``, ``n_blocks`` and ``map`` of :class:`Asked`.

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
    asked = Asked(problem, trajectory, rows, refit.of_run(trajectory), **settings)
    found = way_of(asked.run).predictors(asked)
    _check_stable(asked, found)
    return found


def coefficients_without(problem, trajectory, rows, refit, **settings):
    """The last iterate of one output, as it is without each of some rows.

    Parameters
    ----------
    problem, trajectory, rows, refit, **settings
        As in :func:`leave_one_out`, of one output.

    Returns
    -------
    coef : ndarray of shape (n_left_out, n_columns)
    shift : ndarray of shape (n_left_out,)
        By how much a replica's intercept, on the centred data, is not zero.
    """
    asked = Asked(problem, trajectory, rows, refit.of_run(trajectory), **settings)
    return way_of(asked.run, COEFFICIENT_WAYS).coefficients(asked)


def coefficients_by(asked, held_out):
    """The last iterate of one output without each row, where residuals are known.

    Parameters
    ----------
    asked : Asked
        With a refit for any run, of a kernel design.
    held_out : ndarray of shape (n_iterates, n_left_out)
        Held-out residuals of the rows.

    Returns
    -------
    coef, shift
        As of :func:`coefficients_without`.
    """
    asked = replace(asked, refit=asked.refit.of_run(asked.trajectory))
    if way_of(asked.run) is not ByDecomposition or asked.run.has_ridge_under_P():
        return ByReplicas.coefficients(asked)
    left_out = asked.left_out
    deviations = spectral.deviations(
        asked.problem, asked.trajectory, left_out, held_out
    )
    shift = np.zeros(len(asked.rows))
    if asked.refit.recentres:
        shift = (1 - 1 / left_out.residual_scale) * held_out[-1]
    return asked.trajectory.coef[-1].T + deviations.T, shift


def leave_folds_out(problem, trajectory, folds, refit, *, n_blocks=1, map=map):
    """Linear predictors of sets of rows, every fold a replica of the run: exact.

    Parameters
    ----------
    problem, trajectory, refit, n_blocks, map
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
    replay = partial(_folds_left_out, problem, trajectory, refit.of_run(trajectory))
    found = [predictors for _, predictors in map(replay, blocks)]
    ends = np.cumsum([len(judged) for _, judged in folds])
    return np.split(np.concatenate(found, axis=1), ends[:-1], axis=1)


def _folds_left_out(problem, trajectory, refit, folds):
    """One block of folds; their predictors one after the other."""
    stays = np.zeros((len(problem.target), len(folds)), dtype=bool)
    for fold, (fitted, _) in enumerate(folds):
        stays[fitted, fold] = True
    judged = [judged for _, judged in folds]
    return held_out_predictors(problem, trajectory, refit, stays, judged)


def _rows_by_replicas(asked):
    """Coefficients and predictors of blocks of rows, by replicas."""
    largest_block, map = asked.blocks
    size = min(_replicas_at_a_time(asked.problem), largest_block)
    blocks = np.array_split(asked.rows, -(-len(asked.rows) // size))
    replay = partial(_rows_left_out, asked.problem, asked.trajectory, asked.refit)
    return list(map(replay, blocks))


def _rows_left_out(problem, trajectory, refit, rows):
    stays = np.ones((len(problem.target), len(rows)), dtype=bool)
    stays[rows, np.arange(len(rows))] = False
    return held_out_predictors(problem, trajectory, refit, stays, rows[:, None])


def _replicas_at_a_time(problem):
    each = ARRAYS_PER_REPLICA * sum(problem.design.shape) * problem.target.shape[1]
    return max(1, BLOCK_BYTES // (each * problem.design.dtype.itemsize))


def _linearised(asked):
    """By linearisation; rows that it does badly for, exactly.

    Returns
    -------
    predictors : ndarray of shape (n_iterates, n_left_out, n_outputs)
    coef : ndarray of shape (n_left_out, n_columns, n_outputs)
        Coefficients of the last iterate.
    """
    predictors, deviations, doubt = linearised.leave_one_out(
        asked.problem,
        asked.trajectory,
        asked.left_out,
        *asked.blocks,
        asked.correction,
    )
    coef = asked.trajectory.coef[-1] + deviations
    doubtful = np.flatnonzero(doubt > DOUBTFUL * asked.problem.loss.scale)
    if doubtful.size:
        found = _rows_by_replicas(asked.take(doubtful))
        predictors[:, doubtful] = np.concatenate([z for _, z in found], axis=1)
        last = [np.moveaxis(coef, 2, 0) for coef, _ in found]
        coef[doubtful] = np.concatenate(last)
    return predictors, coef


def _check_stable(asked, predictors):
    """Raise where a row's predictors are far away because a step is too large."""
    if asked.trajectory.n_batches():
        return
    problem = asked.problem
    moved = np.abs(predictors[-1] - predictors[0]).max(axis=1)
    furthest = moved.argmax()
    # The largest step is found for it alone; predictors that overflow are not less.
    if moved[furthest] <= FAR * np.abs(problem.target).max():
        return
    stays = np.arange(len(problem.target)) != asked.rows[furthest]
    weights = asked.refit.without(problem, stays[:, None])
    check_stable(problem, asked.trajectory, weights, [0])


def _predictors(residuals, problem, rows):
    """From residuals, in their place: they may be the largest array of a fit."""
    residuals += problem.target[rows]
    return residuals


def _with_deviations(coef, deviations, n_left_out):
    """Coefficients (1, n_columns) with what blocks of rows change in columns."""
    coef, first = np.repeat(coef, n_left_out, axis=0), 0
    for index, deviation in deviations:
        coef[first : first + len(deviation), index] += deviation
        first += len(deviation)
    return coef


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
