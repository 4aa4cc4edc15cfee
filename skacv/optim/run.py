"""Run a plan on a problem, and record every iterate.

:class:`Iterates` takes updates with coefficients. :func:`run` lets one fit follow a
plan and records it; refits that leave rows out follow the record in the same way
(:mod:`skacv.risk.left_out.replicas`).
"""

from dataclasses import replace

import numpy as np

from .contracts import check_plan
from .fits import Fits
from .phases import n_planned_updates, remaining_phases
from .trajectory import Taken, Trajectory, iterate
from .updates import Iterate, State


class Iterates:
    """The iterates of all fits, one update after the other.

    Parameters
    ----------
    fits : Fits
    current, earlier : Iterate
        The two last iterates; the same one at rest.
    """

    def __init__(self, fits, current, earlier):
        self.fits = fits
        self.state = State(current, earlier)

    @classmethod
    def at_rest(cls, fits, coef):
        """From coefficients (n_columns, n_outputs), the same for all fits."""
        coef = fits.start(coef)
        first = Iterate(coef, fits.predictor(coef))
        return cls(fits, first, first)

    @property
    def coef(self):
        return self.state.current.coef

    @property
    def predictor(self):
        return self.state.current.predictor

    def take(self, taken):
        """Move all fits on by an update."""
        if taken.restarts:
            self.state = taken.update.begin(self.state.current)
        self.state = taken.update.advance(self.fits, taken.penalty, self.state)


def run(problem, planned, start, *, done=(), tol=0.0, progress=None):
    """Run the planned phases from ``start`` and record every iterate.

    Parameters
    ----------
    problem : Problem
    planned : sequence of Phase
    start : ndarray of shape (t + 1, n_columns, n_outputs)
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
        If an update and its penalty do not go together, or if the iterates diverge.
        The message names the largest stable step, where the step is larger.
    """
    check_plan(problem, [*done, *planned])
    recorder = Recorder(problem, planned, start, done, tol)
    follower = recorder.follower()
    with np.errstate(over="ignore", invalid="ignore"):
        for taken in iterate(recorder.updates(planned, done), follower):
            recorder.record(taken, follower)
            if progress is not None and progress(*recorder.last()):
                recorder.is_stopped = True
    return recorder.finished()


class Recorder:
    """Records the iterates of a run, and says which update is taken next."""

    def __init__(self, problem, planned, start, done, tol):
        self.problem, self.tol = problem, tol
        self.t, self.is_stopped, self.phase = len(start) - 1, False, None
        n_total = self.t + n_planned_updates(planned, done)
        first_penalty = done[0].penalty if done else planned[0].penalty
        self.trajectory = _allocate(problem, start, n_total, done, first_penalty)

    def follower(self):
        """The one fit, at the last of the recorded iterates."""
        t, record = self.t, self.trajectory
        last = [
            Iterate(record.coef[s, :, :, None], record.predictor[s, :, :, None])
            for s in (t, max(t - 1, 0))
        ]
        return Iterates(Fits(self.problem), *last)

    def updates(self, planned, done):
        """The updates that a plan still asks for, as far as they move anything."""
        phases, n_skipped = remaining_phases(planned, done)
        recorded = list(done[: len(done) - 1]) if n_skipped else list(done)
        for self.phase in phases:
            phase, first = self.phase, self.t - n_skipped
            for update in phase.updates_from(n_skipped):
                if self.is_stopped or self._has_settled(first):
                    break
                yield Taken(self.t, max(self.t - 1, first), update, phase.penalty)
            n_skipped = 0
            if self.t == first:
                break
            if self._has_risen(phase, first):
                raise _divergence(self.problem, phase)
            converged = self._has_settled(first)
            n_updates = self.t - first
            recorded.append(replace(phase, n_updates=n_updates, converged=converged))
        self.trajectory.phases = recorded

    def record(self, taken, follower):
        """Row t + 1, from a follower that has taken the update."""
        self.t, record = taken.t + 1, self.trajectory
        record.coef[self.t] = follower.coef[:, :, 0]
        record.predictor[self.t] = follower.predictor[:, :, 0]
        record.objective[self.t] = self._value(self.t, taken.penalty)
        if not np.isfinite(record.objective[self.t]):
            raise _divergence(self.problem, self.phase)

    def last(self):
        """Number, coefficients and objective of the last iterate."""
        record = self.trajectory
        return self.t, record.coef[self.t], record.objective[self.t]

    def finished(self):
        """The trajectory; copied where the rest would stay allocated."""
        record, n_rows = self.trajectory, self.t + 1
        if self.t == record.n_updates:
            return record
        return replace(
            record,
            coef=record.coef[:n_rows].copy(),
            predictor=record.predictor[:n_rows].copy(),
            objective=record.objective[:n_rows].copy(),
        )

    def _value(self, t, penalty):
        record = self.trajectory
        return self.problem.value(record.predictor[t]) + penalty.value(record.coef[t])

    def _has_settled(self, first):
        """Whether the last update of a phase begun at ``first`` moved nothing more."""
        if self.t == first:
            return False
        last, previous = self.trajectory.coef[self.t], self.trajectory.coef[self.t - 1]
        return np.abs(last - previous).max() <= self.tol * np.abs(last).max()

    def _has_risen(self, phase, first):
        """Whether a phase with too large a step ended above where it began."""
        if self.trajectory.objective[self.t] <= self._value(first, phase.penalty):
            return False
        return phase.schedule.step_size > _largest_stable_step(self.problem, phase)


def _allocate(problem, start, n_total, done, first_penalty):
    """Arrays for the whole run, their first rows filled from ``start``."""
    n_rows, n_outputs = problem.target.shape
    n_start, n_columns, _ = start.shape
    dtype = problem.design.dtype
    trajectory = Trajectory(
        coef=np.empty((n_total + 1, n_columns, n_outputs), dtype),
        predictor=np.empty((n_total + 1, n_rows, n_outputs), dtype),
        objective=np.empty(n_total + 1),
        phases=list(done),
    )
    trajectory.coef[:n_start] = start
    trajectory.predictor[:n_start] = problem.predictors(start)
    penalties = [first_penalty, *(taken.penalty for taken in trajectory.updates())]
    for t, penalty in enumerate(penalties):
        trajectory.objective[t] = problem.value(
            trajectory.predictor[t]
        ) + penalty.value(trajectory.coef[t])
    return trajectory


def _largest_stable_step(problem, phase):
    smoothness = problem.smoothness + phase.penalty.curvature
    return phase.schedule.largest_stable_step(smoothness)


def _divergence(problem, phase):
    stable = _largest_stable_step(problem, phase)
    step_size = phase.schedule.step_size
    advice = "use a smaller one, or another solver."
    # Batches, and losses without a bound of their curvature, may bear less.
    if step_size > stable:
        advice = (
            f"the largest stable step for these data is {stable:.6g}. Use a smaller "
            'one, or step_size="auto".'
        )
    return ValueError(f"The iterates diverge with step_size={step_size:.6g}: {advice}")
