"""Leave-one-out and folds along a recorded run: the entry point.

Entry t of a leave-one-out path is the mean over rows of the loss, on the row, of
iterate t of the same run without the row; folds are the same with sets of rows. Nothing
is refitted. :mod:`skacv.risk.left_out.methods` chooses how single rows are left out.
Folds are replicas of the run, exact for any update and any loss.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from ...optim.matrix import slices
from ..refit import stays_in
from .fold_record import FoldRecord
from .methods import COEFFICIENT_METHODS, method_for
from .replicas import check_stable, record_of_replicas, replicas_at_a_time
from .rows import Request, check_unseen

# Predictors that have moved by so many times the largest target are looked into.
FAR = 10


def leave_one_out(problem, trajectory, rows, refit, **settings):
    """Linear predictors of rows, by the iterates that have never seen them.

    Parameters
    ----------
    problem : Problem
        With weights shared by its outputs.
    rows : ndarray of int, shape (n_left_out,)
    refit : Refit
        What a fit without some rows would be.
    **settings
        ``correction``, ``n_blocks`` and ``map`` of :class:`Request`.

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


def leave_folds_out(problem, trajectory, folds, refit, n_blocks=1, map=map):
    """The record of sets of rows that are left out, every fold a replica: exact.

    Parameters
    ----------
    problem, trajectory, refit
        As in :func:`leave_one_out`.
    folds : list of (ndarray of int, ndarray of int)
        Training rows and held-out rows of every replica.
    n_blocks, map
        As of :class:`Request`; blocks are folds.

    Returns
    -------
    FoldRecord

    Raises
    ------
    Unreadable
        If a preconditioner was made from held-out rows.
    ValueError
        If the iterates of a fold diverge. The message names the largest stable step
        then.
    """
    for _, held_out in folds:
        check_unseen(held_out, trajectory)
    size = min(replicas_at_a_time(problem), -(-len(folds) // n_blocks))
    blocks = [folds[some] for some in slices(len(folds), size)]
    refit = refit.of_run(trajectory)
    records = list(map(partial(_folds_left_out, problem, trajectory, refit), blocks))
    held_out = [[rows for _, rows in block] for block in blocks]
    return FoldRecord.joined(records, problem.design, held_out)


def _request(problem, trajectory, rows, refit, settings):
    """The rows of a run that can be read, as a method takes them."""
    check_unseen(rows, trajectory)
    # The scales of all rows serve every row that is left out alone.
    refit = replace(refit.of_run(trajectory), columns=None)
    return Request(problem, trajectory, rows, refit, **settings)


def _folds_left_out(problem, trajectory, refit, folds):
    """The record of one block of folds."""
    stays = stays_in(folds, len(problem.target))
    held_out = [held_out for _, held_out in folds]
    _, record = record_of_replicas(problem, trajectory, refit, stays, held_out)
    return record


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
