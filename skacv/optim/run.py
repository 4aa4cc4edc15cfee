"""Run a plan on a problem, and record every iterate.

:class:`Iterates` takes updates with coefficients. :func:`run` lets one fit follow a
plan and records it; refits that leave rows out follow the record in the same way
(:mod:`skacv.risk.left_out.replicas`).
"""

from dataclasses import replace
from itertools import islice

import numpy as np

from .contracts import check_plan
from .fits import WeightedFits
from .growing import with_room
from .phases import n_planned_updates, remaining_phases
from .screen import Screen
from .trajectory import Trajectory, iterate, updates_of
from .updates import State

# Memory that a record reserves for updates that are planned, in bytes.
MOST_RESERVED = 1 << 28


class Iterates:
    """The iterates of all fits, one update after the other.

    Parameters
    ----------
    current, earlier : Iterate
        The two last iterates; the same one at rest.
    """

    def __init__(self, fits, current, earlier):
        self.fits, self._screen = fits, Screen(fits)
        self.state = State(current, earlier)

    @classmethod
    def at_rest(cls, fits, coef):
        """From coefficients (n_columns, n_outputs), the same for all fits."""
        first = fits.iterate(fits.start(coef))
        return cls(fits, first, first)

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


def keeps_predictors(problem, phases):
    """Whether a run keeps the linear predictors of its iterates.

    Its updates compute them in any case, unless they go through batches. Coefficients
    take as much room where columns are no fewer than rows; otherwise predictors are
    computed when they are read. Those of a kernel are always kept.
    """
    design = problem.design
    n_rows, n_columns = design.shape
    if design.is_dual or n_rows > n_columns:
        return design.is_dual
    is_here = design.is_matrix and not design.is_on_device
    return is_here and not any(phase.first_update.n_batches for phase in phases)


class NoSideRuns:
    """A run on its own, without labels or folds.

    Another class that carries something (random labels, folds) has the same methods.
    """

    def fits(self, problem):
        """The fits that run side by side, that of the problem first."""
        return WeightedFits(problem)

    def start(self, fits, coef):
        """The first iterate of all fits, from coefficients (n_columns, n_outputs)."""
        return fits.iterate(fits.start(coef))

    def own(self, array):
        """The outputs of the problem, (n, n_outputs), among those of all fits."""
        return array[:, :, 0]

    def take(self, states):
        """Take note of the states that updates have led to, one after the other."""


class LiveRun:
    """A run that is recorded, and can go on.

    Where an update takes little, so do few of them: whether they move anything is seen
    some at a time, and those after the first that does not are taken back.

    Parameters
    ----------
    planned : sequence of Phase
        The whole plan, which may be run in parts.
    start, done, tol
        As :func:`run` takes them.
    carried : object
        What runs beside, see :class:`NoSideRuns`. With anything beside, a run starts at
        its start: there is no record of the others to go on from.

    Attributes
    ----------
    t : int
        How many updates have been taken.
    phases : list of Phase
        What has been done so far, in order.
    is_stopped : bool
        Whether whoever follows its progress has ended it.
    """

    def __init__(self, problem, planned, start, *, done=(), tol=0.0, side_runs=None):
        check_plan(problem, [*done, *planned])
        self.problem, self.tol = problem, tol
        self.side_runs = NoSideRuns() if side_runs is None else side_runs
        self.t, self.phases, self.is_stopped = len(start) - 1, list(done), False
        self._record = {"coef": start}
        begun = Trajectory.recorded(problem, start, self.phases)
        if keeps_predictors(problem, [*done, *planned]):
            self._record["predictor"] = begun.predictor.of_rows(slice(None))
        self._follower = self._begun_follower(begun)

    def _begun_follower(self, begun):
        """All fits, at the last of the recorded iterates."""
        fits = self.side_runs.fits(self.problem)
        fits.keeps_predictors = "predictor" in self._record
        goes_on = all(u.goes_on_from_iterates for u, _ in begun.first_updates())
        if self.t == 0 or not goes_on:
            first = self.side_runs.start(fits, begun.coef[0])
            return begun.followed_by(Iterates(fits, first, first))
        earlier, last = (fits.iterate(coef[:, :, None]) for coef in begun.coef[-2:])
        return Iterates(fits, last, earlier)

    @property
    def trajectory(self):
        """The record so far."""
        rows = slice(self.t + 1)
        found = {name: array[rows] for name, array in self._record.items()}
        if self.t + 1 < len(self._record["coef"]):
            # A fit keeps them, and the rest would stay allocated.
            found["coef"] = found["coef"].copy()
        return Trajectory.recorded(
            self.problem, found["coef"], self.phases, found.get("predictor")
        )

    def go_on(self, planned, progress=None):
        """Take the updates of a plan that have not been taken yet.

        Parameters
        ----------
        planned : sequence of Phase
        progress : callable, optional
            As :func:`run` takes it.
        """
        phases, n_skipped = remaining_phases(planned, self.phases)
        self._make_room(n_planned_updates(planned, self.phases))
        done = self.phases[: len(self.phases) - (n_skipped > 0)]
        with np.errstate(over="ignore", invalid="ignore"):
            for phase in phases:
                first = self.t - n_skipped
                converged = self._take(phase, first, progress)
                n_skipped, n_updates = 0, self.t - first
                if not n_updates:
                    break
                done.append(replace(phase, n_updates=n_updates, converged=converged))
                self._check_end(phase, first)
        self.phases = done

    def _make_room(self, n_planned):
        """Room in the record for as many updates, or for those of ``MOST_RESERVED``.

        A plan may be far longer than the run, which ends where it has converged.
        """
        n_used = self.t + 1
        for name, array in self._record.items():
            n_reserved = min(n_planned, MOST_RESERVED // max(array[0].nbytes, 1))
            self._record[name] = with_room(array, n_used, n_used + n_reserved)

    def _take(self, phase, first, progress):
        """Take the updates of a phase that began at ``first``; whether it converged."""
        planned = updates_of(phase, first, self.t - first)
        size = 1 if progress is not None else self._follower.fits.n_at_once
        last = self._record["coef"][max(self.t - 1, 0) : self.t + 1]
        converged = self.t > first and self._n_until_converged(last[1:], last[0])
        while not (converged or self.is_stopped):
            some = islice(planned, size)
            states = [self._follower.state for _ in iterate(some, self._follower)]
            if not states:
                break
            converged = self._note(states, phase)
            if progress is not None:
                objective = self._objective(self.t, phase.penalty)
                last = self._record["coef"][self.t]
                self.is_stopped = bool(progress(self.t, last, objective))
        return bool(converged)

    def _note(self, states, phase):
        """Record the iterates after some updates; whether the last one converged.

        Updates after the first converged one are discarded.
        """
        coef = np.stack([self.side_runs.own(state.current.coef) for state in states])
        if not np.isfinite(coef).all():
            raise divergence(self.problem, phase)
        n_kept = self._n_until_converged(coef, self._record["coef"][self.t])
        has_converged, n_kept = n_kept > 0, n_kept or len(states)
        states = states[:n_kept]
        self._follower.state = states[-1]
        rows = slice(self.t + 1, self.t + 1 + n_kept)
        for name, array in self._record.items():
            self._record[name] = with_room(array, rows.start, rows.stop)
        self._record["coef"][rows] = coef[:n_kept]
        if "predictor" in self._record:
            predictors = [self.side_runs.own(each.current.predictor) for each in states]
            self._record["predictor"][rows] = predictors
        self.t += n_kept
        self.side_runs.take(states)
        return has_converged

    def _n_until_converged(self, coef, before):
        """Number of updates up to the first one within the tolerance, or 0.

        ``coef`` are the iterates after these updates, and ``before`` the one before.
        """
        changes = np.diff(coef, axis=0, prepend=before[None])
        converged = self.problem.design.are_converged(changes, coef, self.tol)
        return int(converged.argmax()) + 1 if converged.any() else 0

    def _objective(self, t, penalty):
        """The objective at an iterate, with a penalty."""
        coef = self._record["coef"][t]
        if "predictor" in self._record:
            predictor = self._record["predictor"][t]
        else:
            predictor = self.problem.design.dot(coef)
        return self.problem.objective(penalty, coef, predictor)

    def _check_end(self, phase, first):
        """Raise where a phase ends above where it began, by too large a step."""
        begun, ended = (self._objective(t, phase.penalty) for t in (first, self.t))
        if ended <= begun:
            return
        stable = phase.largest_stable_step(phase.smoothness(self.problem))
        if not np.isfinite(ended) or phase.schedule.step_size > stable:
            raise divergence(self.problem, phase)


def divergence(problem, phase):
    """The error for diverging iterates, with the largest stable step."""
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
