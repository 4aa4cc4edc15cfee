"""Leave-one-out along a recorded run: the entry point, and its four methods.

Entry t of the path is the mean over rows of the loss, on the row, of iterate t of the
same run without the row. Nothing is refitted. ``METHODS`` are in the order of their
running times; the first that applies to a run, and is worthwhile, is used. All are
exact but :class:`Linearised`.

A method is chosen by a :class:`~skacv.risk.left_out.workload.Workload`, which may be
planned only: how many rows are worth leaving out is decided before the run.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ...optim.problem import Problem
from ...optim.trajectory import Trajectory
from ..leave_out_rule import LeaveOutRule, LeftOutRows, check_unseen
from . import linearised, screened, spectral
from .replicas import check_stable, record_of_replicas, replicas_at_a_time
from .workload import MANY_ROWS, Workload, is_decomposed

# Rows are left out again, exactly, where linearising is known to have misplaced
# their predictors by more, in the loss's own unit.
LARGEST_ERROR = 0.01
# Predictors that have moved by so many times the largest target are looked into.
FAR = 10


@dataclass(frozen=True)
class LeaveOneOutTask:
    """Rows to be left out of a recorded run, one at a time.

    Attributes
    ----------
    problem : Problem
        With weights shared by its outputs.
    rows : ndarray of int, shape (n_left_out,)
    refit : LeaveOutRule
        As it is for a run like this one.
    correction : bool
        Whether what is linearised is corrected at some iterates.
    n_blocks : int
        Blocks of rows wanted at least, as many as are worked on at a time.
    map : callable
        ``map(function, blocks)``; blocks are independent of each other.
    """

    problem: Problem
    trajectory: Trajectory
    rows: np.ndarray
    refit: LeaveOutRule
    correction: bool = True
    n_blocks: int = 1
    map: Callable = map

    @property
    def left_out(self):
        """The rows and their scales."""
        return LeftOutRows.of(self.problem, self.rows, self.refit)

    @property
    def blocks(self):
        """Rows of a block at most, and what goes through the blocks."""
        return -(-len(self.rows) // self.n_blocks), self.map

    @property
    def arguments(self):
        """What ``leave_one_out`` of a method's module takes."""
        return self.problem, self.trajectory, self.left_out, *self.blocks

    @property
    def run(self):
        """The run, as far as the choice of a method goes."""
        return Workload.recorded(self.problem, self.trajectory, self.correction)

    def outputs(self):
        """A request for every output that has a loss by itself."""
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


class Spectral:
    """Linear updates with the squared error, all rows by one eigendecomposition."""

    @staticmethod
    def takes(run):
        """Whether the method applies to a run and is worthwhile."""
        is_small = is_decomposed(run.shape, run.has_columns)
        return run.is_quadratic and run.has_one_basis() and is_small

    @staticmethod
    def n_rows_worth(run, n_active):
        return min(run.shape[0], MANY_ROWS)

    @staticmethod
    def predictors(request):
        """Held-out predictors, (n_iterates, n_left_out, n_outputs)."""
        residuals = spectral.leave_one_out(*request.arguments)
        return _plus_target(residuals, request)

    @staticmethod
    def coefficients(request, held_out):
        """The last iterate of one output without each row, and intercepts' shifts.

        Parameters
        ----------
        request : Request
            Request for a run from zero on a design whose inner products are those of
            rows.
        held_out : ndarray of shape (n_iterates, n_left_out)
            Held-out residuals, which drive what the coefficients deviate by.
        """
        left_out = request.left_out
        deviations = spectral.deviations(
            request.problem, request.trajectory, left_out, held_out
        )
        coef = request.trajectory.coef[-1].T + deviations.T
        return coef, left_out.intercept_shifts(held_out[-1])


class _ByReplicas:
    """A method whose replicas have coefficients.

    ``_read(request)`` are held-out predictors, (n_iterates, n_left_out, n_outputs), and
    a function without arguments: the coefficients of the last iterate, of one output,
    (n_left_out, n_columns).
    """

    @classmethod
    def predictors(cls, request):
        """Held-out predictors, (n_iterates, n_left_out, n_outputs)."""
        found = [cls._read(part)[0] for part in request.outputs()]
        return np.concatenate(found, axis=2)

    @classmethod
    def coefficients(cls, request):
        """The last iterate of one output without each row, and intercepts' shifts."""
        predictors, coefficients = cls._read(request)
        residuals = predictors[-1, :, 0] - request.problem.target[request.rows, 0]
        return coefficients(), request.left_out.intercept_shifts(residuals)


class Screened(_ByReplicas):
    """Updates with a prox and the squared error: deviations on few columns."""

    @staticmethod
    def takes(run):
        """Whether the method applies to a run and is worthwhile."""
        return run.is_quadratic and run.is_elementwise() and not run.n_batches

    @staticmethod
    def n_rows_worth(run, n_active):
        return run.n_rows_worth(n_active, 0)

    @staticmethod
    def _read(request):
        residuals, (deviations, place) = screened.leave_one_out(*request.arguments)

        def coefficients():
            coef, first = np.repeat(request.trajectory.coef[-1].T, len(place), 0), 0
            for index, deviation in deviations:
                coef[first : first + len(deviation), index] += deviation
                first += len(deviation)
            return coef[place]

        return _plus_target(residuals[:, :, None], request), coefficients


class Linearised(_ByReplicas):
    """Curved losses, linearised at the recorded run; not exact."""

    @staticmethod
    def takes(run):
        """Whether the method applies to a run and is worthwhile."""
        is_curved = not run.is_quadratic
        return is_curved and run.is_elementwise() and run.is_worth_linearising()

    @staticmethod
    def n_rows_worth(run, n_active):
        return run.n_rows_worth(n_active, run.n_corrected())

    @staticmethod
    def _read(request):
        """By linearising, and exactly where that is not accurate."""
        predictors, deviations, error_estimate = linearised.leave_one_out(
            *request.arguments, request.correction
        )
        coef = request.trajectory.coef[-1] + deviations
        largest = LARGEST_ERROR * request.problem.loss.scale
        inaccurate = np.flatnonzero(error_estimate > largest)
        if inaccurate.size:
            exact, blocks = _by_replicas(
                replace(request, rows=request.rows[inaccurate])
            )
            predictors[:, inaccurate], coef[inaccurate] = exact, np.concatenate(blocks)
        return predictors, lambda: coef[:, :, 0]


class Replicated(_ByReplicas):
    """Any update and any loss: a replica of the run for every row."""

    @staticmethod
    def takes(run):
        """Whether the method applies to a run and is worthwhile: always."""
        return True

    @staticmethod
    def n_rows_worth(run, n_active):
        return run.n_rows_worth(n_active, run.n_updates)

    @classmethod
    def predictors(cls, request):
        """Held-out predictors, of all outputs from one run without each row."""
        return cls._read(request)[0]

    @staticmethod
    def _read(request):
        predictors, blocks = _by_replicas(request)
        return predictors, lambda: np.concatenate(blocks)[:, :, 0]


METHODS = (Spectral, Screened, Linearised, Replicated)
# Those that give coefficients as well.
COEFFICIENT_METHODS = (Screened, Linearised, Replicated)


def method_for(run, methods=METHODS):
    """The first of the methods that applies to a run and is worthwhile."""
    return next(method for method in methods if method.takes(run))


def n_rows_worth(run, n_active):
    """Number of rows that can be left out in about the time of folds.

    Parameters
    ----------
    n_active : int
        Columns that the run uses at most.
    """
    return method_for(run).n_rows_worth(run, n_active)


def is_cheap(run):
    """Whether leaving out every row takes about as long as a few folds."""
    return method_for(run) is Spectral and run.is_decomposed_cheaply()


def leave_one_out(problem, trajectory, rows, refit, **settings):
    """Linear predictors of rows, by the iterates that have never seen them.

    Parameters
    ----------
    problem : Problem
        With weights shared by its outputs.
    rows : ndarray of int, shape (n_left_out,)
    refit : LeaveOutRule
        What a fit without some rows would be.
    **settings
        ``correction``, ``n_blocks`` and ``map`` of :class:`LeaveOneOutTask`.

    Returns
    -------
    ndarray of shape (n_iterates, n_left_out, n_outputs)
        Intercepts included, on the scale of the problem's target.

    Raises
    ------
    Unreadable
        If a preconditioner was made from some of the rows.
    ValueError
        If the iterates without a row diverge. The message names the largest stable
        step then.
    """
    request = _request(problem, trajectory, rows, refit, settings)
    found = method_for(request.run).predictors(request)
    _check_stable(request, found)
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
        The intercept of the replica on the centred data.
    """
    request = _request(problem, trajectory, rows, refit, settings)
    return method_for(request.run, COEFFICIENT_METHODS).coefficients(request)


def _request(problem, trajectory, rows, refit, settings):
    """The rows of a run that can be read, as a method takes them."""
    check_unseen(rows, trajectory)
    # The scales of all rows serve every row that is left out alone.
    refit = replace(refit.of_run(trajectory), columns=None)
    return LeaveOneOutTask(problem, trajectory, rows, refit, **settings)


def _check_stable(request, predictors):
    """Raise if predictors of a row diverge because a step is too large."""
    if request.trajectory.n_batches():
        return
    problem = request.problem
    moved = np.abs(predictors[-1] - predictors[0]).max(axis=1)
    furthest = moved.argmax()
    # To find the largest stable step takes an eigenvalue: for this row alone. Where
    # predictors overflow the comparison is false, too.
    if moved[furthest] <= FAR * np.abs(problem.target).max():
        return
    stays = np.arange(len(problem.target)) != request.rows[furthest]
    weights = request.refit.without(problem, stays[:, None])
    check_stable(problem, request.trajectory, weights, [0])


def _by_replicas(request):
    """Leave rows out by replicas, a block of rows at a time.

    Returns
    -------
    predictors : ndarray of shape (n_iterates, n_left_out, n_outputs)
    coef : sequence of ndarray of shape (n_rows, n_columns, n_outputs)
        Coefficients of the last iterate, block by block.
    """
    largest_block, map = request.blocks
    size = min(replicas_at_a_time(request.problem), largest_block)
    blocks = np.array_split(request.rows, -(-len(request.rows) // size))
    replay = partial(_rows_left_out, request.problem, request.trajectory, request.refit)
    predictors, coef = zip(*map(replay, blocks))
    return np.concatenate(predictors, axis=1), coef


def _rows_left_out(problem, trajectory, refit, rows):
    stays = np.ones((len(problem.target), len(rows)), dtype=bool)
    stays[rows, np.arange(len(rows))] = False
    held_out = rows[:, None]
    coef, record = record_of_replicas(problem, trajectory, refit, stays, held_out)
    return record.predictors(problem.design, held_out), np.moveaxis(coef, 2, 0)


def _plus_target(residuals, request):
    """Predictors from residuals, in place: they may be the largest array of a fit."""
    residuals += request.problem.target[request.rows]
    return residuals
