"""Run a plan on a problem, and record every iterate.

:class:`Iterates` applies updates to fits. :func:`run` applies those of a plan to one
fit and records its iterates; refits without some rows apply the recorded updates
(:mod:`skacv.risk.left_out.replicas`).
"""

from dataclasses import replace
from itertools import islice

import numpy as np

from .array_path import Predictors, with_room
from .blocks import CACHE_BYTES, MEMORY_BYTES
from .contracts import check_plan
from .fits import WeightedFits
from .screen import Screen
from .trajectory import Trajectory, iterate, remaining_phases, updates_of
from .updates import State


class Iterates:
    """Fits that updates move: the last two iterates, the same one twice at rest."""

    def __init__(self, fits, current, earlier):
        self.fits, self.state = fits, State(current, earlier)
        self._screen = screen_of(fits)

    @classmethod
    def at_rest(cls, fits, coef):
        """Fits that all begin at coefficients (n_columns, n_outputs)."""
        start = fits.iterate(fits.start(coef))
        return cls(fits, start, start)

    def take(self, step):
        """Apply an update to all fits, which are at rest where a step restarts."""
        state, update, penalty = self.state, step.update, step.penalty
        if step.restarts:
            state = State(state.current, state.current)
        # A screen serves updates of all rows by a prox that holds coefficients at zero.
        if self._screen is None or penalty.is_linear or update.n_batches:
            self.state = update.advance(self.fits, penalty, state)
        else:
            self.state = self._screen.advance(update, penalty, state)


def screen_of(fits, least_rows=64):
    """A Screen if products with X cost more than choosing columns, else None."""
    design = fits.problem.design
    if not design.is_matrix:
        return None
    n_least = max(CACHE_BYTES // 8, least_rows * design.shape[1])
    return Screen(fits) if design.n_stored >= n_least else None


def run(problem, planned, start, *, done=(), tol=0.0, progress=None):
    """Run the planned phases from ``start`` and record every iterate: a Trajectory.

    ``start`` are the coefficients recorded so far, (t + 1, n_columns, n_outputs), and
    ``done`` the phases that led through them. A phase ends when the largest change of a
    coefficient in an update is at most ``tol`` times the largest coefficient.
    ``progress(t, coef, objective)`` is called after every update and may end the run. A
    ValueError names the largest stable step if the iterates diverge.
    """
    live = LiveRun(problem, planned, start, done=done, tol=tol)
    live.go_on(planned, progress)
    return live.trajectory


class SideRuns:
    """Fits (random labels, folds) that share the products of a run.

    A subclass has ``fits(problem, keeps_predictors)``, all fits with that of the
    problem first; ``start(fits, coef)``, their first iterate; and ``take(states)``,
    which records the states after some updates.
    """

    # Where the outputs of the problem are in arrays (n, n_outputs, n_fits) of all fits.
    of_problem = np.s_[:, :, 0]


class LiveRun:
    """A run and its record so far, which can go on.

    ``t`` is the number of updates so far, ``phases`` those done, and ``is_stopped``
    whether ``progress`` has ended the run. ``side_runs`` need a run from its start.
    """

    # Updates between two tests of convergence, if X is small.
    n_at_once = 32

    def __init__(self, problem, planned, start, *, done=(), tol=0.0, side_runs=None):
        phases = [*done, *planned]
        check_plan(problem, phases)
        self.problem, self.tol, self.side_runs = problem, tol, side_runs
        self.t, self.phases, self.is_stopped = len(start) - 1, list(done), False
        self._record = {"coef": start}
        # Updates of all rows compute predictors anyway: they are kept where they are no
        # more numbers than coefficients.
        design = problem.design
        is_wide = design.is_matrix and design.shape[0] <= design.shape[1]
        # All phases take batches, or none.
        in_batches = bool(phases) and phases[0].first_update.n_batches > 0
        keeps = is_wide and not (design.is_on_device or in_batches)
        if keeps or design.is_dual:
            self._record["predictor"] = Predictors(design, start).of_rows(slice(None))
        goes_on = self.t > 0
        for phase in self.phases:
            goes_on = goes_on and phase.first_update.goes_on_from_iterates
        if side_runs is None:
            fits = WeightedFits(problem, keeps_predictors=keeps)
        else:
            fits = side_runs.fits(problem, keeps)
        if goes_on:
            earlier, last = (fits.iterate(coef[:, :, None]) for coef in start[-2:])
            self._follower = Iterates(fits, last, earlier)
        else:
            if side_runs is None:
                begun = fits.iterate(fits.start(start[0]))
            else:
                begun = side_runs.start(fits, start[0])
            self._follower = Iterates(fits, begun, begun)
            if self.t:
                Trajectory.planned(self.phases).followed_by(self._follower)

    @property
    def trajectory(self):
        """The record so far."""
        n_iterates = self.t + 1
        coef, predictor = self._record["coef"], self._record.get("predictor")
        if n_iterates < len(coef):
            # A view that a fit keeps would keep the whole array allocated.
            coef = coef[:n_iterates].copy()
        if predictor is not None:
            predictor = predictor[:n_iterates]
        return Trajectory.recorded(self.problem, coef, self.phases, predictor)

    def go_on(self, planned, progress=None):
        """Apply the updates of a plan that have not been applied yet."""
        phases, n_skipped = remaining_phases(planned, self.phases)
        done = self.phases[: len(self.phases) - (n_skipped > 0)]
        # Room for all that is planned, within bounds: the run may end far earlier.
        n_most, n_planned = MEMORY_BYTES // max(self._record["coef"][0].nbytes, 1), 0
        for phase in phases:
            n_planned += phase.n_updates
        self._make_room(min(n_planned - n_skipped, n_most))
        is_small = 8 * np.prod(self.problem.design.shape) < CACHE_BYTES
        n_at_once = self.n_at_once if is_small and progress is None else 1
        with np.errstate(over="ignore", invalid="ignore"):
            for phase in phases:
                first = self.t - n_skipped
                updates = updates_of(phase, first, n_skipped)
                converged = n_skipped > 0 and self._n_until_converged(
                    self._record["coef"][self.t - 1 : self.t + 1]
                )
                n_skipped = 0
                while not (converged or self.is_stopped):
                    states = []
                    for _ in iterate(islice(updates, n_at_once), self._follower):
                        states.append(self._follower.state)
                    if not states:
                        break
                    converged = self._add(states, phase)
                    if progress is not None:
                        objective = self._objective(self.t, phase.penalty)
                        coef = self._record["coef"][self.t]
                        self.is_stopped = bool(progress(self.t, coef, objective))
                if self.t == first:
                    break
                n_updates, converged = self.t - first, bool(converged)
                done.append(replace(phase, n_updates=n_updates, converged=converged))
                # A phase that ends above where it began may have too large a step.
                begun = self._objective(first, phase.penalty)
                ended = self._objective(self.t, phase.penalty)
                if not ended <= begun:
                    stable = phase.largest_stable_step(phase.smoothness(self.problem))
                    is_finite = np.isfinite(ended)
                    if not is_finite or phase.schedule.step_size > stable:
                        raise divergence(self.problem, phase)
        self.phases = done

    def _add(self, states, phase):
        """Record states up to the first converged one; return whether there is one."""
        side_runs, coef = self.side_runs, [self._record["coef"][self.t]]
        of_problem = (SideRuns if side_runs is None else side_runs).of_problem
        for state in states:
            coef.append(state.current.coef[of_problem])
        coef = np.stack(coef)
        if not np.isfinite(coef).all():
            raise divergence(self.problem, phase)
        n_kept = self._n_until_converged(coef)
        has_converged, n_kept = n_kept > 0, n_kept or len(states)
        states = states[:n_kept]
        self._follower.state = states[-1]
        self._make_room(n_kept)
        rows = slice(self.t + 1, self.t + 1 + n_kept)
        self._record["coef"][rows] = coef[1 : n_kept + 1]
        if "predictor" in self._record:
            predictors = [state.current.predictor[of_problem] for state in states]
            self._record["predictor"][rows] = predictors
        self.t += n_kept
        if side_runs is not None:
            side_runs.take(states)
        return has_converged

    def _make_room(self, n_updates):
        """Reserve room in the record for ``n_updates`` more."""
        n_used = self.t + 1
        for name, array in self._record.items():
            self._record[name] = with_room(array, n_used, n_used + n_updates)

    def _n_until_converged(self, coef):
        """Number of updates up to the first within the tolerance, or 0."""
        design = self.problem.design
        converged = design.are_converged(np.diff(coef, axis=0), coef[1:], self.tol)
        return int(converged.argmax()) + 1 if converged.any() else 0

    def _objective(self, t, penalty):
        """The objective at an iterate, with a penalty."""
        coef = self._record["coef"][t]
        if "predictor" in self._record:
            predictor = self._record["predictor"][t]
        else:
            predictor = self.problem.design.dot(coef)
        return self.problem.objective(penalty, coef, predictor)


def divergence(problem, phase):
    """The error for diverging iterates, which names the largest stable step."""
    stable = phase.largest_stable_step(phase.smoothness(problem))
    step_size = phase.schedule.step_size
    advice = "use a smaller one, or another solver."
    # Batches, and losses of unbounded curvature, may need a smaller one.
    if step_size > stable:
        advice = (
            f"the largest stable step for these data is {stable:.6g}. Use a smaller "
            'one, or step_size="auto".'
        )
    return ValueError(f"The iterates diverge with step_size={step_size:.6g}: {advice}")
