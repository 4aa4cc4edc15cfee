"""The methods that leave single rows out of a run, and what each requires.

Four methods are listed in ``METHODS`` in the order of what they cost; the first that
can read a run, and is worth it, does. All are exact but :class:`Linearised`.

A method states what it requires of a :class:`~skacv.risk.left_out.costs.Run`, which may
be planned only: how many rows are worth leaving out is decided before the run.
"""

from functools import partial

import numpy as np

from ..reader import Unreadable
from . import linearised, screened, spectral
from .costs import MANY_ROWS
from .replicas import record_of_replicas, replicas_at_a_time

# Rows are left out again, exactly, where linearising is known to have misplaced
# their predictors by more, in the loss's own unit.
LARGEST_ERROR = 0.01


class Spectral:
    """Linear updates with the squared error, all rows by one eigendecomposition."""

    @staticmethod
    def requires(run):
        """Raise where this does not leave rows out of a run."""
        if not run.is_quadratic:
            raise Unreadable(
                "Rows are left out by one decomposition with the squared error only."
            )
        if not run.has_one_basis():
            raise Unreadable(
                "Rows are left out by one decomposition where all updates are linear "
                "and elementwise in one eigenbasis only."
            )

    @staticmethod
    def is_worth(run):
        return run.is_decomposed()

    @staticmethod
    def n_rows_worth(run, n_active):
        return min(run.shape[0], MANY_ROWS)

    @staticmethod
    def predictors(request):
        """Held-out predictors, (n_iterates, n_left_out, n_outputs)."""
        residuals = spectral.leave_one_out(
            request.problem, request.trajectory, request.left_out, *request.blocks
        )
        return _plus_target(residuals, request.problem, request.rows)

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
        shift = np.zeros(len(request.rows))
        if request.refit.recentres:
            shift = (1 - 1 / left_out.residual_scale) * held_out[-1]
        return request.trajectory.coef[-1].T + deviations.T, shift


class Screened:
    """Updates with a prox and the squared error: deviations on few columns."""

    @staticmethod
    def requires(run):
        """Raise where this does not leave rows out of a run."""
        if not run.is_quadratic:
            raise Unreadable(
                "Rows are left out on few columns with the squared error only."
            )
        if not run.has_columns:
            raise Unreadable("A kernel has no columns to leave rows out on.")
        if not (run.is_elementwise() and run.takes_all_rows()):
            raise Unreadable(
                "Rows are left out on few columns where updates take all rows, and "
                "every coefficient goes by its own gradient, only."
            )

    @staticmethod
    def is_worth(run):
        return True

    @staticmethod
    def n_rows_worth(run, n_active):
        return run.n_rows_worth(n_active, n_exact=0)

    @staticmethod
    def predictors(request):
        """Held-out predictors, (n_iterates, n_left_out, n_outputs)."""
        residuals = [
            screened.leave_one_out(
                part.problem, part.trajectory, request.left_out, *request.blocks
            )[0]
            for part in request.outputs()
        ]
        return _plus_target(np.stack(residuals, axis=2), request.problem, request.rows)

    @staticmethod
    def coefficients(request):
        """The last iterate of one output without each row, and intercepts' shifts."""
        left_out = request.left_out
        residuals, (deviations, place) = screened.leave_one_out(
            request.problem, request.trajectory, left_out, *request.blocks
        )
        shift = np.zeros(len(request.rows))
        if request.refit.recentres:
            shift = (1 - 1 / left_out.residual_scale) * residuals[-1]
        recorded = request.trajectory.coef[-1].T
        return _with_deviations(recorded, deviations, len(shift))[place], shift


class Linearised:
    """Curved losses, linearised at the recorded run; not exact."""

    @staticmethod
    def requires(run):
        """Raise where this does not leave rows out of a run."""
        if run.is_quadratic:
            raise Unreadable("A quadratic loss needs no linearising.")
        if not (run.has_columns and run.is_elementwise()):
            raise Unreadable(
                "Replicas are linearised where every coefficient goes by its own "
                "gradient only."
            )

    @staticmethod
    def is_worth(run):
        return run.is_worth_linearising()

    @staticmethod
    def n_rows_worth(run, n_active):
        return run.n_rows_worth(n_active, run.n_corrected())

    @staticmethod
    def predictors(request):
        """Held-out predictors, (n_iterates, n_left_out, n_outputs)."""
        found = [_linearised(part)[0] for part in request.outputs()]
        return np.concatenate(found, axis=2)

    @staticmethod
    def coefficients(request):
        """The last iterate of one output without each row, and intercepts' shifts."""
        _, coef = _linearised(request)
        return coef[:, :, 0], np.zeros(len(request.rows))


class Replicated:
    """Any update and any loss: a replica of the run for every row."""

    @staticmethod
    def requires(run):
        """Nothing: rows are left out of every run."""

    @staticmethod
    def is_worth(run):
        return True

    @staticmethod
    def n_rows_worth(run, n_active):
        return run.n_rows_worth(n_active, run.n_updates)

    @staticmethod
    def predictors(request):
        """Held-out predictors, (n_iterates, n_left_out, n_outputs)."""
        return np.concatenate([z for _, z in _rows_by_replicas(request)], axis=1)

    @staticmethod
    def coefficients(request):
        """The last iterate of one output without each row, and intercepts' shifts."""
        found = _rows_by_replicas(request)
        coef = np.concatenate([coef[:, 0].T for coef, _ in found])
        shift = np.zeros(len(request.rows))
        if request.refit.recentres:
            last = np.concatenate([z[-1, :, 0] for _, z in found])
            shift = last - request.problem.design.own_predictors(coef, request.rows)
        return coef, shift


METHODS = (Spectral, Screened, Linearised, Replicated)
# Those that give coefficients as well.
COEFFICIENT_METHODS = (Screened, Linearised, Replicated)


def can_read(method, run):
    """Whether a run meets what a method requires."""
    try:
        method.requires(run)
    except Unreadable:
        return False
    return True


def method_for(run, methods=METHODS):
    """The first of the methods that can read a run, and is worth it.

    Parameters
    ----------
    run : Run
    methods : sequence of classes
    """
    return next(m for m in methods if can_read(m, run) and m.is_worth(run))


def n_rows_worth(run, n_active):
    """How many rows it takes about as much as folds to leave out of a run.

    Parameters
    ----------
    run : Run
    n_active : int
        Columns that the run uses at most.
    """
    return method_for(run).n_rows_worth(run, n_active)


def is_cheap(run):
    """Whether leaving out every row costs about what a few folds do.

    Parameters
    ----------
    run : Run
    """
    return method_for(run) is Spectral and run.is_decomposed_cheaply()


def _rows_by_replicas(request):
    """Coefficients and predictors of blocks of rows, by replicas."""
    largest_block, map = request.blocks
    size = min(replicas_at_a_time(request.problem), largest_block)
    blocks = np.array_split(request.rows, -(-len(request.rows) // size))
    replay = partial(_rows_left_out, request.problem, request.trajectory, request.refit)
    return list(map(replay, blocks))


def _rows_left_out(problem, trajectory, refit, rows):
    stays = np.ones((len(problem.target), len(rows)), dtype=bool)
    stays[rows, np.arange(len(rows))] = False
    judged = rows[:, None]
    coef, record = record_of_replicas(problem, trajectory, refit, stays, judged)
    return coef, record.predictors(problem.design, judged)


def _linearised(request):
    """Leave rows out by linearising, and exactly where that is not accurate.

    Returns
    -------
    predictors : ndarray of shape (n_iterates, n_left_out, n_outputs)
    coef : ndarray of shape (n_left_out, n_columns, n_outputs)
        Coefficients of the last iterate.
    """
    predictors, deviations, error_estimate = linearised.leave_one_out(
        request.problem,
        request.trajectory,
        request.left_out,
        *request.blocks,
        request.correction,
    )
    coef = request.trajectory.coef[-1] + deviations
    inaccurate = np.flatnonzero(
        error_estimate > LARGEST_ERROR * request.problem.loss.scale
    )
    if inaccurate.size:
        found = _rows_by_replicas(request.part(inaccurate))
        predictors[:, inaccurate] = np.concatenate([z for _, z in found], axis=1)
        last = [np.moveaxis(coef, 2, 0) for coef, _ in found]
        coef[inaccurate] = np.concatenate(last)
    return predictors, coef


def _plus_target(residuals, problem, rows):
    """Predictors from residuals, in their place: they may be a fit's largest array."""
    residuals += problem.target[rows]
    return residuals


def _with_deviations(coef, deviations, n_left_out):
    """Coefficients (1, n_columns) with what blocks of rows change in columns."""
    coef, first = np.repeat(coef, n_left_out, axis=0), 0
    for index, deviation in deviations:
        coef[first : first + len(deviation), index] += deviation
        first += len(deviation)
    return coef
