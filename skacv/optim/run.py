"""The run over a problem.

:func:`run` is the only loop over iterations that touches coefficients. It
records; everything else is read from the record.
"""

from dataclasses import replace

import numpy as np

from .phases import n_planned_updates, remaining_phases
from .trajectory import Trajectory


def run(problem, planned, start, *, done=(), tol=0.0, progress=None):
    """Run the planned phases from ``start`` and record every iterate.

    Parameters
    ----------
    problem : Problem
    planned : sequence of Phase
    start : ndarray of shape (t + 1, n_columns, n_replicas)
        The coefficients recorded so far: one row for a new trajectory.
    done : sequence of Phase
        The phases that led through ``start``.
    tol : float
        A phase ends when the largest change of a coefficient in an update is
        at most ``tol`` times the largest coefficient.
    progress : callable, optional
        Called as ``progress(t, coef, objective)`` after every update; a true
        answer ends the run.

    Returns
    -------
    Trajectory

    Raises
    ------
    ValueError
        If the iterates diverge. The message names the largest stable step, where the
        step is larger.
    """
    phases, n_skipped = remaining_phases(planned, done)
    n_recorded = len(start) - 1
    n_total = n_recorded + n_planned_updates(planned, done)
    first_penalty = done[0].penalty if done else planned[0].penalty
    trajectory = _allocate(problem, start, n_total, done, first_penalty)
    recorded = list(done[: len(done) - 1]) if n_skipped else list(done)
    t, stop = n_recorded, False
    with np.errstate(over="ignore", invalid="ignore"):
        for phase in phases:
            first = t - n_skipped
            for step in phase.steps_from(n_skipped):
                if stop or _has_settled(trajectory, first, t, tol):
                    break
                _update(problem, phase.penalty, step, trajectory, t, max(t - 1, first))
                t += 1
                objective = trajectory.objective[t]
                if not np.isfinite(objective):
                    raise _divergence(problem, phase)
                if progress is not None:
                    stop = progress(t, trajectory.coef[t], objective)
            n_skipped = 0
            if t == first:
                break
            if _has_risen(problem, phase, trajectory, first, t):
                raise _divergence(problem, phase)
            converged = _has_settled(trajectory, first, t, tol)
            recorded.append(replace(phase, n_updates=t - first, converged=converged))
    trajectory.phases = recorded
    return _trimmed(trajectory, t)


def _allocate(problem, start, n_total, done, first_penalty):
    """Arrays for the whole run, their first rows filled from ``start``."""
    n_rows, n_replicas = problem.target.shape
    n_start, n_columns, _ = start.shape
    dtype = problem.design.dtype
    trajectory = Trajectory(
        coef=np.empty((n_total + 1, n_columns, n_replicas), dtype),
        predictor=np.empty((n_total + 1, n_rows, n_replicas), dtype),
        objective=np.empty(n_total + 1),
        phases=list(done),
    )
    trajectory.coef[:n_start] = start
    trajectory.predictor[:n_start] = problem.predictors(start)
    penalties = [first_penalty] + [penalty for *_, penalty in trajectory.updates()]
    for t, penalty in enumerate(penalties):
        trajectory.objective[t] = problem.value(
            trajectory.predictor[t]
        ) + penalty.value(trajectory.coef[t])
    return trajectory


def advanced(penalty, step, current, earlier, gradient, penalty_scale=1.0):
    """One update: the iterate after ``current``, which followed ``earlier``.

    Parameters
    ----------
    penalty : Penalty
    step : Step
    current, earlier : ndarray of shape (n_columns, n_replicas)
    gradient : ndarray of shape (n_columns, n_replicas)
        Of the loss, at the step's gradient point.
    penalty_scale : float or ndarray of shape (n_replicas,)
        Multiplies the penalty, for every replica.
    """
    if penalty.curvature:
        point = step.gradient_point(current, earlier)
        gradient = gradient + penalty_scale * penalty.smooth_gradient(point)
    direction = step.preconditioned(gradient)
    moved = step.moved(current, earlier) - step.step_size * direction
    return penalty.prox(moved, step.step_size * penalty_scale)


def through_batches(problem, penalty, step, coef):
    """The iterate after an update on every batch of the step, one by one."""
    for _, _, _, following in batch_updates(problem, penalty, step, coef):
        coef = following
    return coef


def batch_updates(problem, penalty, step, coef):
    """An update on every batch of the step, from ``coef`` on.

    Yields
    ------
    rows : ndarray of int
        Of the batch.
    coef : ndarray of shape (n_columns, n_replicas)
        From which the update starts.
    predictor : ndarray of shape (n_batch, n_replicas)
        Linear predictors of the batch's rows there.
    following : ndarray of shape (n_columns, n_replicas)
        To which it leads.
    """
    for rows in step.batches:
        batch = problem.batch(rows)
        predictor = batch.design.dot(coef)
        gradient = batch.gradient(predictor)
        following = advanced(penalty, step, coef, coef, gradient)
        yield rows, coef, predictor, following
        coef = following


def _update(problem, penalty, step, trajectory, t, before):
    """Row t + 1 of the trajectory from rows t and ``before``."""
    coef, predictor = trajectory.coef, trajectory.predictor
    if step.batches:
        coef[t + 1] = through_batches(problem, penalty, step, coef[t])
    elif step.is_newton:
        direction = problem.newton_direction(penalty, coef[t], predictor[t])
        coef[t + 1] = coef[t] - step.step_size * direction
    else:
        point = step.gradient_point(predictor[t], predictor[before])
        gradient = problem.gradient(point)
        coef[t + 1] = advanced(penalty, step, coef[t], coef[before], gradient)
    predictor[t + 1] = problem.design.dot(coef[t + 1])
    trajectory.objective[t + 1] = problem.value(predictor[t + 1]) + penalty.value(
        coef[t + 1]
    )


def _has_settled(trajectory, first, t, tol):
    """Whether the last update of a phase begun at ``first`` moved nothing more."""
    if t == first:
        return False
    last, previous = trajectory.coef[t], trajectory.coef[t - 1]
    return np.abs(last - previous).max() <= tol * np.abs(last).max()


def _has_risen(problem, phase, trajectory, first, last):
    """Whether a phase with too large a step ended above where it began."""
    penalty, coef = phase.penalty, trajectory.coef[first]
    begun = problem.value(trajectory.predictor[first]) + penalty.value(coef)
    if trajectory.objective[last] <= begun:
        return False
    smoothness = problem.smoothness + penalty.curvature
    step = phase.schedule.step_size
    return step > phase.schedule.largest_stable_step(smoothness)


def _divergence(problem, phase):
    stable = phase.schedule.largest_stable_step(
        problem.smoothness + phase.penalty.curvature
    )
    step_size = phase.schedule.step_size
    advice = "use a smaller one, or another solver."
    # Batches, and losses without a bound of their curvature, may bear less.
    if step_size > stable:
        advice = (
            f"the largest stable step for these data is {stable:.6g}. Use a smaller "
            'one, or step_size="auto".'
        )
    return ValueError(f"The iterates diverge with step_size={step_size:.6g}: {advice}")


def _trimmed(trajectory, t):
    """The first t + 1 rows; copied where the rest would stay allocated."""
    if t == trajectory.n_updates:
        return trajectory
    return replace(
        trajectory,
        coef=trajectory.coef[: t + 1].copy(),
        predictor=trajectory.predictor[: t + 1].copy(),
        objective=trajectory.objective[: t + 1].copy(),
    )
