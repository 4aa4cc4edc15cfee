"""Replicas of the recorded run that leave rows out: exact, any update, any loss.

Every replica takes the updates of the recorded run, on rows weighted its own
way; all share each pass over X. Leaving out folds and leaving out single rows
are the same thing here.
"""

from functools import partial

import numpy as np

from ...optim.blocks import slices
from ...optim.fits import WeightedFits
from ...optim.run import Iterates
from ...optim.trajectory import iterate
from ..leave_out_rule import check_unseen, counts_in
from .fold_record import FoldRecord, RecordedFolds

# Memory for replicas, and arrays that each of them holds.
BLOCK_BYTES = 1 << 28
ARRAYS_PER_REPLICA = 6
# Folds as users ask for them: more of a run that is so large would fill the memory.
MOST_OF_LARGE_RUNS = 20


def replayed(problem, trajectory, weights):
    """The iterates of a run, as fits with other weights would have them.

    Parameters
    ----------
    trajectory : Trajectory
        The run of that problem whose start and updates are taken.

    Yields
    ------
    Iterate
        From the start to the last, with predictors where they are carried along.
    """
    iterates = Iterates.at_rest(WeightedFits(problem, weights), trajectory.coef[0])
    yield iterates.state.current
    for _ in iterate(trajectory.updates(), iterates):
        yield iterates.state.current


def record_of_replicas(problem, trajectory, refit, counts, held_out):
    """Replicas that leave rows out, along a run.

    Parameters
    ----------
    refit : LeaveOutRule
        As it is for a run like this one (:meth:`LeaveOutRule.of_run`).
    counts : ndarray of int or bool, shape (n_rows, n_replicas)
        How often every replica has a row: zero where it leaves the row out.
    held_out : sequence of ndarray of int
        Held-out rows of every replica.

    Returns
    -------
    coef : ndarray of shape (n_columns, n_outputs, n_replicas)
        Coefficients of the last iterate.
    record : FoldRecord

    Raises
    ------
    ValueError
        If a replica diverges. The message names the largest stable step.
    """
    weights = refit.without(problem, counts)
    fits, begun = WeightedFits(problem, weights), None
    recorded = RecordedFolds(problem, fits, held_out)
    for last in replayed(problem, trajectory, weights):
        begun = last if begun is None else begun
        recorded.add(last)
    suspects = risen(fits, begun, last)
    check_stable(problem, trajectory, weights, suspects)
    return last.coef, recorded.first(len(trajectory.coef))


def leave_folds_out(problem, trajectory, folds, refit, n_blocks=1, map=map):
    """The record of sets of rows that are left out, every fold a replica: exact.

    Parameters
    ----------
    problem, trajectory, refit
        As in :func:`~skacv.risk.left_out.methods.leave_one_out`.
    folds : list of (ndarray of int, ndarray of int)
        Training rows and held-out rows of every replica.
    n_blocks, map
        As of :class:`~skacv.risk.left_out.methods.LeaveOneOutTask`; blocks are folds.

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


def _folds_left_out(problem, trajectory, refit, folds):
    """The record of one block of folds."""
    counts = counts_in(folds, len(problem.target))
    held_out = [held_out for _, held_out in folds]
    _, record = record_of_replicas(problem, trajectory, refit, counts, held_out)
    return record


def risen(fits, begun, ended):
    """The fits whose training error has risen between two iterates, or overflows."""
    begun, ended = (fits.value(fits.predictor_at(each)) for each in (begun, ended))
    return np.flatnonzero(~(ended <= begun))


def check_stable(problem, trajectory, weights, suspects):
    """Raise if a step of the run is too large for a replica.

    On fewer rows X'X / n may have a larger top eigenvalue. ``suspects`` are the
    replicas whose training error has risen.
    """
    for r in suspects:
        for phase, stable in largest_stable_steps(
            problem, trajectory.phases, weights, r
        ):
            if phase.schedule.step_size > stable:
                raise ValueError(
                    "The iterates diverge where rows are left out, with step_size="
                    f"{phase.schedule.step_size:.6g}, though they do not on all rows: "
                    f"the largest stable step is {stable:.6g} there. Set "
                    "step_size to that or less, or leave fewer rows out."
                )


def are_surely_stable(problem, phases, weights):
    """Whether it is known beforehand that no replica can diverge.

    Without some rows, L is at most L over the share of the weight that stays. Nothing
    is known where replicas scale columns for themselves.
    """
    own, bounds = problem.row_weights[:, 0], [np.inf] * len(phases)
    if weights.columns is None:
        larger = max([1.0, *(float((each / own).max()) for each in weights.rows.T)])
        bounds = [larger * phase.smoothness(problem) for phase in phases]
    return all(
        phase.schedule.step_size <= phase.largest_stable_step(bound)
        for phase, bound in zip(phases, bounds)
    )


def largest_stable_steps(problem, phases, weights, r):
    """The largest step of every phase at which replica r does not diverge.

    Yields
    ------
    phase : Phase
    step : float
    """
    fits = WeightedFits(problem, weights)
    own, scale = fits.alone(r), np.broadcast_to(weights.penalty_scale, fits.n_fits)[r]
    for phase in phases:
        curvature = (scale - 1) * phase.penalty.curvature
        yield phase, phase.largest_stable_step(phase.smoothness(own) + curvature)


def replicas_at_a_time(problem):
    """Number of replicas whose arrays fit in ``BLOCK_BYTES``."""
    each = ARRAYS_PER_REPLICA * sum(problem.design.shape) * problem.target.shape[1]
    return max(1, BLOCK_BYTES // (each * problem.design.dtype.itemsize))


def replicas_beside(problem, n_updates):
    """Number of replicas that may run beside a run of ``n_updates`` updates.

    As many as fit in ``BLOCK_BYTES``, or a few that take no more memory than the record
    of the run.
    """
    few = min(n_updates // ARRAYS_PER_REPLICA, MOST_OF_LARGE_RUNS)
    return max(replicas_at_a_time(problem), few)
