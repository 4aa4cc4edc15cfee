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

    In a recorded trajectory ``n_updates`` is the number of updates done, and
    ``converged`` says whether the phase ended by the tolerance.
    """

    penalty: Penalty
    schedule: Schedule
    n_updates: int
    converged: bool = False

    def same_rule(self, other):
        return (self.penalty, self.schedule) == (other.penalty, other.schedule)

    def is_whole(self, planned):
        """Whether this recorded phase is all of ``planned``."""
        is_over = self.converged or self.n_updates == planned.n_updates
        return is_over and self.same_rule(planned)

    @property
    def first_update(self):
        """The first update; the others of a phase are of the same kind."""
        return next(iter(self.schedule.updates()))

    def updates_from(self, number):
        """The updates from ``number`` up to ``n_updates``."""
        return islice(self.schedule.updates(), number, self.n_updates)

    def smoothness(self, problem):
        """The largest curvature that limits the step, including the penalty's."""
        return smoothness_under(self.schedule, problem) + self.penalty.curvature

    def largest_stable_step(self, smoothness):
        """The largest step that converges under a curvature; infinite for zero."""
        return self.schedule.largest_stable_step(smoothness) if smoothness else np.inf


def smoothness_under(schedule, problem):
    """The smoothness of a problem, or the one that a schedule defines instead."""
    own = getattr(schedule, "smoothness", None)
    return problem.smoothness if own is None else own(problem)


def first_updates(planned, n_updates):
    """The beginning of a plan, at most ``n_updates``; all of it if None."""
    if n_updates is None:
        return list(planned)
    phases = []
    for phase in planned:
        phase = replace(phase, n_updates=min(phase.n_updates, n_updates))
        n_updates -= phase.n_updates
        if phase.n_updates:
            phases.append(phase)
    return phases


def remaining_phases(planned, done):
    """The remaining phases of a plan, after the phases already ``done``.

    If the last recorded phases are a beginning of the plan, these are the rest of the
    plan, and the last recorded phase continues where it stopped. Otherwise they are the
    whole plan, as further phases of the same trajectory.

    Returns
    -------
    phases : list of Phase
    n_skipped : int
        Number of steps of the first of them that are done already.

    Raises
    ------
    ValueError
        If the last recorded phase has more updates than planned.
    """
    n_begun = _n_begun(planned, done)
    if not n_begun:
        return list(planned), 0
    last, phase = done[-1], planned[n_begun - 1]
    if last.n_updates > phase.n_updates:
        raise ValueError(
            f"The trajectory has {last.n_updates} updates here already, more than "
            f"the {phase.n_updates} asked for: continuing it needs a larger max_iter, "
            "and a new one warm_start=False."
        )
    return list(planned[n_begun - 1 :]), last.n_updates


def _n_begun(planned, done):
    """Largest number of phases of a plan that equal the last recorded ones."""
    for n in range(min(len(planned), len(done)), 0, -1):
        *earlier, last = done[len(done) - n :]
        if last.same_rule(planned[n - 1]) and all(
            recorded.is_whole(phase) for recorded, phase in zip(earlier, planned)
        ):
            return n
    return 0


def n_planned_updates(planned, done):
    """Largest number of updates that a run will add."""
    phases, n_skipped = remaining_phases(planned, done)
    return sum(phase.n_updates for phase in phases) - n_skipped


class Step(NamedTuple):
    """An update of a run, and where in the run it was taken.

    Attributes
    ----------
    t : int
        It led from rows ``t`` and ``before`` of the record to row ``t + 1``.
    before : int
        ``t - 1``, but ``t`` itself in the first update of a phase: momentum starts,
        and restarts, from rest.
    """

    t: int
    before: int
    update: Update
    penalty: Penalty

    @property
    def restarts(self):
        return self.before == self.t


def updates_of(phase, first, n_taken=0):
    """Updates of a phase after ``n_taken`` of them, as :class:`Step`.

    ``first`` is the row of the record from which the phase begins.
    """
    for t, update in enumerate(phase.updates_from(n_taken), first + n_taken):
        yield Step(t, max(t - 1, first), update, phase.penalty)


def iterate(updates, follower):
    """The only loop over updates: of runs, refits, and all that follows a run.

    Parameters
    ----------
    follower : object
        Its ``take(taken)`` moves it on by an update.

    Yields
    ------
    Step
        After it was taken.
    """
    for taken in updates:
        follower.take(taken)
        yield taken


@dataclass
class Trajectory:
    """The record of a run; T updates leave T + 1 rows.

    Attributes
    ----------
    coef : ndarray of shape (T + 1, n_columns, n_outputs)
    predictor : Predictors of shape (T + 1, n_rows, n_outputs)
        Linear predictors, for the centred design: computed when they are accessed,
        unless the run has kept them.
    phases : list of Phase
        What was done, in order.
    """

    coef: np.ndarray
    predictor: Predictors | StoredPredictors
    phases: list[Phase]

    @property
    def n_updates(self):
        return len(self.coef) - 1

    @classmethod
    def recorded(cls, problem, coef, phases, values=None):
        """A trajectory from its coefficients.

        Parameters
        ----------
        coef : ndarray of shape (T + 1, n_columns, n_outputs)
        phases : list of Phase
        values : ndarray of shape (T + 1, n_rows, n_outputs), default=None
            Linear predictors that the run has handed on.
        """
        predictor = Predictors(problem.design, coef)
        if problem.design.is_dual and values is None:
            values = predictor.of_rows(slice(None))
        if values is not None:
            predictor = StoredPredictors(values)
        return cls(coef, predictor, phases)

    @classmethod
    def planned(cls, phases):
        """The planned run, before it is run."""
        return cls(None, None, phases)

    def updates(self):
        """Every update, in order, as :class:`Step`."""
        first = 0
        for phase in self.phases:
            yield from updates_of(phase, first)
            first += phase.n_updates

    def followed_by(self, follower):
        """The follower, after it has taken every update."""
        for _ in iterate(self.updates(), follower):
            pass
        return follower

    def first_updates(self):
        """The first update and the penalty of every phase: the others are alike."""
        return [(phase.first_update, phase.penalty) for phase in self.phases]

    def is_linear(self):
        """Whether, with the squared error, every iterate is linear in the target."""
        return all(u.is_affine and p.is_linear for u, p in self.first_updates())

    def expand_to_groups(self, mask):
        """The columns in a mask, and those whose prox depends on theirs."""
        for phase in self.phases:
            mask = phase.penalty.expand_to_groups(mask)
        return mask

    def as_gradient_descent(self):
        """The same run as plain gradient descent, in the preconditioned eigenbasis.

        The eigenvalues there contain the preconditioner and the ridge penalty."""
        phases = [
            replace(
                phase,
                penalty=Zero(),
                schedule=GradientDescent(phase.schedule.step_size),
            )
            for phase in self.phases
        ]
        return replace(self, phases=phases)

    def first(self, n_updates):
        """The beginning of it, as if it had ended there."""
        if n_updates == self.n_updates:
            return self
        # Copied where a fit keeps them, and the rest would stay allocated.
        return Trajectory(
            self.coef[: n_updates + 1].copy(),
            self.predictor.first(n_updates + 1),
            first_updates(self.phases, n_updates),
        )

    def of_output(self, k):
        """The record of one output."""
        predictor = self.predictor.of_output(k)
        return replace(self, coef=self.coef[:, :, [k]], predictor=predictor)

    def preconditioner(self):
        """The preconditioner that all updates share, or None.

        Raises
        ------
        ValueError
            If they do not all have the same.
        """
        found = [update.preconditioner for update, _ in self.first_updates()]
        if any(other != found[0] for other in found):
            raise ValueError("Not all updates have the same preconditioner.")
        return found[0] if found else None

    def rows_seen(self):
        """Rows that a preconditioner was made from, and that cannot be left out."""
        made = [update.preconditioner for update, _ in self.first_updates()]
        rows = [P.rows for P in made if P is not None]
        return np.unique(np.concatenate([np.empty(0, int), *rows]))

    def batches(self):
        """The batches that every update goes through, a tuple each; none is of all."""
        return [
            taken.update.batches if taken.update.n_batches else ()
            for taken in self.updates()
        ]

    def n_batches(self):
        """Batches of rows that an update goes through at most, 0 if it takes all."""
        return max((update.n_batches for update, _ in self.first_updates()), default=0)
