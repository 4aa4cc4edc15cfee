"""The methods that leave single rows out of a run, and which runs each can read.

Four methods are listed in ``METHODS`` in the order of their running times; the first
that applies to a run, and is worthwhile, is used. All are exact but
:class:`Linearised`.

A method is chosen by a :class:`~skacv.risk.left_out.workload.Workload`, which may be
planned only: how many rows are worth leaving out is decided before the run.
"""

from functools import partial

import numpy as np

from . import linearised, screened, spectral
from .replicas import record_of_replicas, replicas_at_a_time
from .workload import MANY_ROWS

# Rows are left out again, exactly, where linearising is known to have misplaced
# their predictors by more, in the loss's own unit.
LARGEST_ERROR = 0.01


class Spectral:
    """Linear updates with the squared error, all rows by one eigendecomposition."""

    @staticmethod
    def takes(run):
        """Whether the method applies to a run and is worthwhile."""
        return run.is_quadratic and run.has_one_basis() and run.is_decomposed()

    @staticmethod
    def n_rows_worth(run, n_active):
        return min(run.shape[0], MANY_ROWS)

    @staticmethod
    def predictors(request):
        """Held-out predictors, (n_iterates, n_left_out, n_outputs)."""
        residuals = spectral.leave_one_out(
            request.problem, request.trajectory, request.left_out, *request.blocks
        )
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
    def n_rows_worth(cls, run, n_active):
        return run.n_rows_worth(n_active, cls._n_exact(run))

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
        is_on_columns = run.has_columns and run.is_elementwise()
        return run.is_quadratic and is_on_columns and not run.n_batches

    @staticmethod
    def _n_exact(run):
        return 0

    @staticmethod
    def _read(request):
        residuals, (deviations, place) = screened.leave_one_out(
            request.problem, request.trajectory, request.left_out, *request.blocks
        )

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
        is_on_columns = run.has_columns and run.is_elementwise()
        return not run.is_quadratic and is_on_columns and run.is_worth_linearising()

    @staticmethod
    def _n_exact(run):
        return run.n_corrected()

    @staticmethod
    def _read(request):
        """By linearising, and exactly where that is not accurate."""
        predictors, deviations, error_estimate = linearised.leave_one_out(
            request.problem,
            request.trajectory,
            request.left_out,
            *request.blocks,
            request.correction,
        )
        coef = request.trajectory.coef[-1] + deviations
        largest = LARGEST_ERROR * request.problem.loss.scale
        inaccurate = np.flatnonzero(error_estimate > largest)
        if inaccurate.size:
            exact, blocks = _by_replicas(request.part(inaccurate))
            predictors[:, inaccurate], coef[inaccurate] = exact, np.concatenate(blocks)
        return predictors, lambda: coef[:, :, 0]


class Replicated(_ByReplicas):
    """Any update and any loss: a replica of the run for every row."""

    @staticmethod
    def takes(run):
        """Whether the method applies to a run and is worthwhile: always."""
        return True

    @staticmethod
    def _n_exact(run):
        return run.n_updates

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
