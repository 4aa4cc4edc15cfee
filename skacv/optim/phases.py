"""Plans of a run: phases that are planned, done, and remaining."""

from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from .penalties import Penalty
from .schedules import Schedule


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
