"""Run a plan on a problem, and record every iterate.

:class:`Iterates` applies updates to fits. :func:`run` applies the updates of a plan to
one fit and records its iterates. Refits without some rows apply the same updates later
(:mod:`skacv.risk.left_out.replicas`).
"""

from dataclasses import replace
from itertools import islice

import numpy as np

from .array_path import Predictors, with_room
from .blocks import CACHE_BYTES, LARGE_BYTES
from .contracts import check_plan
from .fits import WeightedFits
from .screen import Screen
from .trajectory import Trajectory, iterate, remaining_phases, updates_of
from .updates import State


class Iterates:
    """Fits and their last two iterates, which are equal where fits are at rest."""

    def __init__(self, fits, current, earlier):
        self.fits, self.state = fits, State(current, earlier)
        self._screen = screen_of(fits)

    @classmethod
    def at_rest(cls, fits, coef):
        """Fits at rest, all at the same coefficients (n_columns, n_outputs)."""
        start = fits.iterate(fits.start(coef))
        return cls(fits, start, start)

    def take(self, step):
        """Apply an update to all fits; a step that restarts has no momentum."""
        state, update, penalty = self.state, step.update, step.penalty
        if step.restarts:
            state = State(state.current, state.current)
        # A screen needs updates of all rows, and a prox that leaves zeros at zero.
        if self._screen is None or penalty.is_linear or update.n_batches:
            self.state = update.advance(self.fits, penalty, state)
        else:
            self.state = self._screen.advance(update, penalty, state)


def screen_of(fits, least_rows=64):
    """A Screen if products with X cost more than a choice of columns, else None."""
    design = fits.problem.design
    if not design.is_matrix:
        return None
    n_least = max(CACHE_BYTES // 8, least_rows * design.shape[1])
    return Screen(fits) if design.n_stored >= n_least else None


def run(problem, planned, start, *, done=(), tol=0.0, progress=None):
    """Run the planned phases and record every iterate: a Trajectory.

    ``start``, (t + 1, n_columns, n_outputs), has the coefficients recorded so far, and
    ``done`` the phases of their updates. A phase ends when the largest change of a
    coefficient in an update is at most ``tol`` times the largest coefficient.
    ``progress(t, coef, objective)`` is called after every update and may end the run. A
    ValueError names the largest stable step if the iterates diverge.
    """
    live = LiveRun(problem, planned, start, done=done, tol=tol)
    live.go_on(planned, progress)
    return live.trajectory


class SideRuns:
    """Fits (random labels, folds) that share the products of a run.

    A subclass has ``fits(problem, keeps_predictors)``, the fit of the problem and then
    the others; ``start(fits, coef)``, their first iterate; and ``take(states)``, which
    records the states after some updates.
    """

    # Index of the problem's outputs in arrays (n, n_outputs, n_fits) of all fits.
    problem_index = np.s_[:, :, 0]


class LiveRun:
    """A run and its record so far, which can go on.

    ``t`` is the number of updates so far, ``phases`` has the phases done, and
    ``is_stopped`` says whether ``progress`` has ended the run. ``is_whole`` is false
    once an error has ended its updates halfway. ``side_runs`` need a run from its
    start.
    """

    # Updates between two tests of convergence where X is small, since a test then takes
    # a notable part of the time of an update.
    n_updates_per_test = 32

    def __init__(self, problem, planned, start, *, done=(), tol=0.0, side_runs=None):
        phases = [*done, *planned]
        check_plan(problem, phases)
        self.problem, self.tol, self.side_runs = problem, tol, side_runs
        self.t, self.phases, self.is_stopped = len(start) - 1, list(done), False
        self.is_whole = True
        self.n_planned = len(start)  # iterates, at most
        for phase in planned:
            self.n_planned += phase.n_updates
        self._record = {"coef": start}
        # Updates of all rows compute predictors anyway. The record keeps them unless
        # they take more memory than the coefficients.
        design = problem.design
        is_wide = design.is_matrix and design.shape[0] <= design.shape[1]
        # All phases have batches, or none has.
        in_batches = bool(phases) and phases[0].first_update.n_batches > 0
        keeps_predictors = is_wide and not (design.is_on_device or in_batches)
        if keeps_predictors or design.is_dual:
            self._record["predictor"] = Predictors(design, start).of_rows(slice(None))
        can_resume = self.t > 0
        for phase in self.phases:
            can_resume = can_resume and phase.first_update.goes_on_from_iterates
        if side_runs is None:
            fits = WeightedFits(problem, keeps_predictors=keeps_predictors)
        else:
            fits = side_runs.fits(problem, keeps_predictors)
        if can_resume:
            earlier, last = (fits.iterate(coef[:, :, None]) for coef in start[-2:])
            self._iterates = Iterates(fits, last, earlier)
        else:
            if side_runs is None:
                start_iterate = fits.iterate(fits.start(start[0]))
            else:
                start_iterate = side_runs.start(fits, start[0])
            self._iterates = Iterates(fits, start_iterate, start_iterate)
            if self.t:
                Trajectory.planned(self.phases).followed_by(self._iterates)

    @property
    def trajectory(self):
        """The record so far."""
        n_iterates = self.t + 1
        coef, predictor = self._record["coef"], self._record.get("predictor")
        if n_iterates < len(coef):
            # A view of a large array, which uses no memory where it is not written.
            coef = coef[:n_iterates]
            coef = coef if coef.nbytes > LARGE_BYTES else coef.copy()
        if predictor is not None:
            predictor = predictor[:n_iterates]
        return Trajectory.recorded(self.problem, coef, self.phases, predictor)

    def go_on(self, planned, progress=None):
        """Apply the updates of a plan that have not been applied yet."""
        phases, n_skipped = remaining_phases(planned, self.phases)
        done = self.phases[: len(self.phases) - (n_skipped > 0)]
        is_small = 8 * np.prod(self.problem.design.shape) < CACHE_BYTES
        n_per_test = self.n_updates_per_test if is_small and progress is None else 1
        self.is_whole = False
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
                    for _ in iterate(islice(updates, n_per_test), self._iterates):
                        states.append(self._iterates.state)
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
                # If the objective has risen, the step may be too large.
                objective_before = self._objective(first, phase.penalty)
                objective_after = self._objective(self.t, phase.penalty)
                if not objective_after <= objective_before:
                    stable = phase.largest_stable_step(phase.smoothness(self.problem))
                    is_finite = np.isfinite(objective_after)
                    if not is_finite or phase.schedule.step_size > stable:
                        raise divergence(self.problem, phase)
        self.phases, self.is_whole = done, True

    def _add(self, states, phase):
        """Record states up to the first converged one. Return whether one converged."""
        side_runs, iterates = self.side_runs, [self._record["coef"][self.t]]
        problem_index = (SideRuns if side_runs is None else side_runs).problem_index
        for state in states:
            iterates.append(state.current.coef[problem_index])
        coef = np.stack(iterates)
        if not np.isfinite(coef).all():
            raise divergence(self.problem, phase)
        n_recorded = self._n_until_converged(coef)
        has_converged, n_recorded = n_recorded > 0, n_recorded or len(states)
        states = states[:n_recorded]
        self._iterates.state = states[-1]
        self._reserve(n_recorded)
        rows = slice(self.t + 1, self.t + 1 + n_recorded)
        self._record["coef"][rows] = coef[1 : n_recorded + 1]
        if "predictor" in self._record:
            predictors = [state.current.predictor[problem_index] for state in states]
            self._record["predictor"][rows] = predictors
        self.t += n_recorded
        if side_runs is not None:
            side_runs.take(states)
        return has_converged

    def _reserve(self, n_updates):
        """Make room in the record for ``n_updates`` more updates."""
        n_used = self.t + 1
        sizes = n_used, n_used + n_updates, self.n_planned
        for name, array in self._record.items():
            self._record[name] = with_room(array, *sizes)

    def _n_until_converged(self, coef):
        """Number of updates up to the first that has converged, 0 if none has."""
        design = self.problem.design
        converged = design.are_converged(np.diff(coef, axis=0), coef[1:], self.tol)
        return int(converged.argmax()) + 1 if converged.any() else 0

    def _objective(self, t, penalty):
        """The objective with ``penalty`` at recorded iterate t."""
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
    # With batches, or a loss of unbounded curvature, even this step may be too large.
    if step_size > stable:
        advice = (
            f"the largest stable step for these data is {stable:.6g}. Use a smaller "
            'one, or step_size="auto".'
        )
    return ValueError(f"The iterates diverge with step_size={step_size:.6g}: {advice}")
