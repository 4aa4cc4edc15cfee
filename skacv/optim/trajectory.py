"""The plan of a run, its record, and the loop over updates."""

from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from .array_path import Predictors, StoredPredictors
from .penalties import Penalty, Zero
from .schedules import GradientDescent, Schedule
from .updates import Update


@dataclass(frozen=True)
class Phase:
    """``n_updates`` updates with one penalty and one schedule.

    In a record ``n_updates`` is the number of updates done, and ``converged`` says
    whether the tolerance ended the phase.
    """

    penalty: Penalty
    schedule: Schedule
    n_updates: int
    converged: bool = False

    def same_rule(self, phase):
        """Whether another phase has this penalty and this schedule."""
        return (self.penalty, self.schedule) == (phase.penalty, phase.schedule)

    @property
    def first_update(self):
        return next(iter(self.schedule.updates()))

    def smoothness(self, problem):
        """The largest curvature, of loss and penalty, that limits the step."""
        return smoothness_under(self.schedule, problem) + self.penalty.curvature

    def largest_stable_step(self, smoothness):
        return self.schedule.largest_stable_step(smoothness) if smoothness else np.inf


def smoothness_under(schedule, problem):
    """The smoothness of a problem, unless a schedule defines another one."""
    smoothness = getattr(schedule, "smoothness", None)
    return problem.smoothness if smoothness is None else smoothness(problem)


def phases_up_to(phases, n_updates):
    """The phases of the first ``n_updates`` updates, the last one shortened."""
    shortened = []
    for phase in phases:
        phase = replace(phase, n_updates=min(phase.n_updates, n_updates))
        n_updates -= phase.n_updates
        if phase.n_updates:
            shortened.append(phase)
    return shortened


def remaining_phases(planned, done):
    """The phases of a plan that are not complete, and the updates done of the first.

    All phases remain if the plan does not continue the last phases ``done``.
    """
    # The largest number of first phases of the plan that equal the last ones done.
    for n_begun in range(min(len(planned), len(done)), 0, -1):
        *earlier, last = done[len(done) - n_begun :]
        phase = planned[n_begun - 1]
        is_same = last.same_rule(phase)
        for old, new in zip(earlier, planned):
            is_over = old.converged or old.n_updates == new.n_updates
            is_same = is_same and is_over and old.same_rule(new)
        if is_same:
            break
    else:
        return list(planned), 0
    if last.n_updates > phase.n_updates:
        raise ValueError(
            f"The trajectory has {last.n_updates} updates here already, more than "
            f"the {phase.n_updates} asked for: continuing it needs a larger max_iter, "
            "and a new one warm_start=False."
        )
    return list(planned[n_begun - 1 :]), last.n_updates


def n_planned_updates(planned, done):
    """Number of updates of a plan that remain after the phases ``done``."""
    phases, n_skipped = remaining_phases(planned, done)
    return sum(phase.n_updates for phase in phases) - n_skipped


class Step(NamedTuple):
    """An update from iterates t and ``before``, which is t - 1, or t at a restart."""

    t: int
    before: int
    update: Update
    penalty: Penalty

    @property
    def restarts(self):
        return self.before == self.t


def updates_of(phase, first, n_skipped=0):
    """The updates of a phase after the first ``n_skipped``, each a :class:`Step`."""
    n_updates, first_t = phase.n_updates, first + n_skipped
    for t, update in enumerate(
        islice(phase.schedule.updates(), n_skipped, n_updates), first_t
    ):
        yield Step(t, max(t - 1, first), update, phase.penalty)


def iterate(updates, follower):
    """The only loop over updates: ``follower`` takes each, in a run or after it."""
    for step in updates:
        follower.take(step)
        yield step


@dataclass
class Trajectory:
    """The record of a run: T updates, T + 1 iterates.

    Shapes: coef (T + 1, n_columns, n_outputs); predictor (T + 1, n_rows, n_outputs)."""

    coef: np.ndarray
    predictor: Predictors | StoredPredictors
    phases: list[Phase]

    @property
    def n_updates(self):
        return len(self.coef) - 1

    @classmethod
    def recorded(cls, problem, coef, phases, values=None):
        """A trajectory from its coefficients, and its predictors if recorded.

        Shapes: coef (T + 1, n_columns, n_outputs); values (T + 1, n_rows, n_outputs).
        """
        predictor: Predictors | StoredPredictors = Predictors(problem.design, coef)
        if problem.design.is_dual and values is None:
            values = predictor.of_rows(slice(None))
        if values is not None:
            predictor = StoredPredictors(values)
        return cls(coef, predictor, phases)

    @classmethod
    def planned(cls, phases):
        """A trajectory without iterates, of which a run has recorded none yet."""
        none = np.empty((0, 0, 0))
        return cls(none, StoredPredictors(none), phases)

    def updates(self):
        """Every update in order, each a :class:`Step`."""
        first = 0
        for phase in self.phases:
            yield from updates_of(phase, first)
            first += phase.n_updates

    def followed_by(self, follower):
        for _ in iterate(self.updates(), follower):
            pass
        return follower

    def first_updates(self):
        """Pairs of the first update of every phase, an example of all, and penalty."""
        updates = []
        for phase in self.phases:
            updates.append((phase.first_update, phase.penalty))
        return updates

    def is_linear(self):
        for phase in self.phases:
            if not (phase.penalty.is_linear and phase.first_update.is_affine):
                return False
        return True

    def expand_to_groups(self, mask):
        """The columns in a mask, and columns whose prox depends on them in a phase."""
        for phase in self.phases:
            mask = phase.penalty.expand_to_groups(mask)
        return mask

    def as_gradient_descent(self):
        """The run in the preconditioned eigenbasis, where it is gradient descent."""
        phases = []
        for phase in self.phases:
            schedule = GradientDescent(phase.schedule.step_size)
            phases.append(replace(phase, penalty=Zero(), schedule=schedule))
        return replace(self, phases=phases)

    def first(self, n_updates):
        """The record of the first updates, as if the run had ended there."""
        if n_updates == self.n_updates:
            return self
        # A copy: a view would keep the whole array in memory.
        return Trajectory(
            self.coef[: n_updates + 1].copy(),
            self.predictor.first(n_updates + 1),
            phases_up_to(self.phases, n_updates),
        )

    def select_output(self, k):
        predictor = self.predictor.select_output(k)
        return replace(self, coef=self.coef[:, :, [k]], predictor=predictor)

    def preconditioner(self):
        """The preconditioner of all updates, or None."""
        shared = self.phases[0].first_update.preconditioner if self.phases else None
        for phase in self.phases[1:]:
            if phase.first_update.preconditioner != shared:
                raise ValueError("Not all updates have the same preconditioner.")
        return shared

    def rows_seen(self):
        """Rows from which preconditioners were computed, which cannot be left out."""
        rows = [np.empty(0, int)]
        for phase in self.phases:
            preconditioner = phase.first_update.preconditioner
            if preconditioner is not None:
                rows.append(preconditioner.rows)
        return np.unique(np.concatenate(rows))

    def batches(self):
        """The batches of every update: a list of tuples, empty where all rows enter."""
        return [
            step.update.batches if step.update.n_batches else ()
            for step in self.updates()
        ]

    def n_batches(self):
        """The largest number of batches in an update; 0 if updates use all rows."""
        n_batches = 0
        for phase in self.phases:
            n_batches = max(n_batches, phase.first_update.n_batches)
        return n_batches
