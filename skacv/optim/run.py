"""Run a plan on a problem, and record every iterate.

:class:`Iterates` takes updates with coefficients. :func:`run` lets one fit follow a
plan and records it; refits that leave rows out follow the record in the same way
(:mod:`skacv.risk.left_out.replicas`).
"""

from dataclasses import replace

import numpy as np

from .contracts import check_plan
from .fits import Fits
from .growing import with_room
from .phases import n_planned_updates, remaining_phases
from .screen import Screen
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
        self.fits, self._screen = fits, Screen(fits)
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
        state = self.state_before(taken)
        self.state = self._screen.advance(taken.update, taken.penalty, state)

    def state_before(self, taken):
        """The state from which an update is taken: at rest where it restarts."""
        if taken.restarts:
            return State(self.state.current, self.state.current)
        return self.state


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
    live = LiveRun(problem, planned, start, done=done, tol=tol)
    live.go_on(planned, progress)
    return live.trajectory


class Alone:
    """What a run carries in addition to its own outputs: nothing.

    Another class that carries something (random labels, folds) has the same methods.
    """

    def fits(self, problem):
        """The fits that run side by side, that of the problem first."""
        return Fits(problem)

    def start(self, fits, first):
        """The first iterate of all fits, from that of the problem's outputs."""
        return first

    def own(self, array):
        """The outputs of the problem, (n, n_outputs), of those of all fits."""
        return array[:, :, 0]

    def take(self, t, state):
        """Take note of the state that update ``t`` has led to."""


class LiveRun:
    """A run that is recorded, and can go on.

    Parameters
    ----------
    problem : Problem
    planned : sequence of Phase
        The whole plan, which may be run in parts.
    start, done, tol
        As :func:`run` takes them.
    carried : object
        What runs beside, see :class:`Alone`. With anything beside, a run starts at
        its start: there is no record of the others to go on from.
    """

    def __init__(self, problem, planned, start, *, done=(), tol=0.0, carried=None):
        check_plan(problem, [*done, *planned])
        self.problem, self.tol = problem, tol
        self.carried = Alone() if carried is None else carried
        self.t, self.phase, self.is_stopped = len(start) - 1, None, False
        first_penalty = done[0].penalty if done else planned[0].penalty
        self._record = _begun(problem, start, done, first_penalty)
        self._follower = self._begun_follower()

    def _begun_follower(self):
        """All fits, at the last of the recorded iterates."""
        fits, record = self.carried.fits(self.problem), self._record
        if not all(u.goes_on_from_iterates for u, _ in record.first_updates()):
            again = Iterates.at_rest(fits, record.coef[0])
            return record.followed_by(again)
        last, earlier = (
            Iterate(record.coef[s, :, :, None], record.predictor[s, :, :, None])
            for s in (self.t, max(self.t - 1, 0))
        )
        if self.t == 0:
            last = earlier = self.carried.start(fits, last)
        return Iterates(fits, last, earlier)

    @property
    def phases(self):
        """What has been done so far, in order."""
        return self._record.phases

    @property
    def trajectory(self):
        """What has been recorded so far."""
        return self._record.first(self.t)

    def go_on(self, planned, progress=None):
        """Take the updates of a plan that have not been taken yet.

        Parameters
        ----------
        planned : sequence of Phase
        progress : callable, optional
            As :func:`run` takes it.
        """
        n_more = n_planned_updates(planned, self._record.phases)
        self._make_room(n_more)
        with np.errstate(over="ignore", invalid="ignore"):
            for taken in iterate(self._updates(planned), self._follower):
                self._note(taken)
                if progress is not None and progress(*self._last()):
                    self.is_stopped = True

    def _make_room(self, n_more):
        """Room for so many more iterates."""
        n_used, record = self.t + 1, self._record
        for name in ("coef", "predictor", "objective"):
            longer = with_room(getattr(record, name), n_used, n_used + n_more)
            setattr(record, name, longer)

    def _updates(self, planned):
        """The updates that a plan still asks for, as far as they move anything."""
        done = self._record.phases
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
                raise divergence(self.problem, phase)
            converged = self._has_settled(first)
            n_updates = self.t - first
            recorded.append(replace(phase, n_updates=n_updates, converged=converged))
        self._record.phases = recorded

    def _note(self, taken):
        """Record the iterate that an update has led to."""
        self.t, record, state = taken.t + 1, self._record, self._follower.state
        record.coef[self.t] = self.carried.own(state.current.coef)
        record.predictor[self.t] = self.carried.own(state.current.predictor)
        record.objective[self.t] = self._value(self.t, taken.penalty)
        if not np.isfinite(record.objective[self.t]):
            raise divergence(self.problem, self.phase)
        self.carried.take(self.t, state)

    def _last(self):
        """Number, coefficients and objective of the last iterate."""
        return self.t, self._record.coef[self.t], self._record.objective[self.t]

    def _value(self, t, penalty):
        record = self._record
        return self.problem.objective(penalty, record.coef[t], record.predictor[t])

    def _has_settled(self, first):
        """Whether the last update of a phase begun at ``first`` moved nothing more."""
        if self.t == first:
            return False
        last, previous = self._record.coef[self.t], self._record.coef[self.t - 1]
        return self.problem.design.is_settled(last - previous, last, self.tol)

    def _has_risen(self, phase, first):
        """Whether a phase with too large a step ended above where it began."""
        if self._record.objective[self.t] <= self._value(first, phase.penalty):
            return False
        stable = phase.largest_stable_step(phase.smoothness(self.problem))
        return phase.schedule.step_size > stable


def _begun(problem, start, done, first_penalty):
    """The record of the iterates that there are already."""
    record = Trajectory.recorded(problem, start, list(done))
    penalties = [first_penalty, *(taken.penalty for taken in record.updates())]
    iterates = zip(penalties, record.coef, record.predictor)
    record.objective = np.array([problem.objective(*each) for each in iterates])
    return record


def divergence(problem, phase):
    """What is raised where iterates diverge: it names the largest stable step."""
    stable = phase.largest_stable_step(phase.smoothness(problem))
    step_size = phase.schedule.step_size
    advice = "use a smaller one, or another solver."
    # Batches, and losses without a bound of their curvature, may bear less.
    if step_size > stable:
        advice = (
            f"the largest stable step for these data is {stable:.6g}. Use a smaller "
            'one, or step_size="auto".'
        )
    return ValueError(f"The iterates diverge with step_size={step_size:.6g}: {advice}")
