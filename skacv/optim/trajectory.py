"""The run over a problem, and the trajectory that it leaves.

:func:`run` is the only loop over iterations that touches coefficients. It
records; everything else is read from the record.
"""

from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from .penalties import Penalty, Zero
from .schedules import GradientDescent


@dataclass(frozen=True)
class Phase:
    """``n_updates`` updates with one penalty and one schedule.

    In a recorded trajectory ``n_updates`` is what was done, and ``converged``
    says that the phase ended because an update moved nothing.
    """

    penalty: Penalty
    schedule: object
    n_updates: int
    converged: bool = False

    def same_rule(self, other):
        return (self.penalty, self.schedule) == (other.penalty, other.schedule)

    def is_whole(self, planned):
        """Whether this is all that ``planned`` asks for, as recorded."""
        is_over = self.converged or self.n_updates == planned.n_updates
        return is_over and self.same_rule(planned)

    @property
    def first_step(self):
        """All steps of a phase are of its kind."""
        return next(iter(self.schedule.steps()))

    def steps_from(self, number):
        """The steps from ``number`` up to ``n_updates``."""
        return islice(self.schedule.steps(), number, self.n_updates)


@dataclass
class Trajectory:
    """What a run has recorded; T updates leave T + 1 rows.

    Attributes
    ----------
    coef : ndarray of shape (T + 1, n_columns, n_replicas)
    predictor : ndarray of shape (T + 1, n_rows, n_replicas)
        Linear predictors, for the centred design.
    objective : ndarray of shape (T + 1,)
        f + g, summed over the replicas. Row 0 takes the first penalty.
    phases : list of Phase
        What was done, in order.
    """

    coef: np.ndarray
    predictor: np.ndarray
    objective: np.ndarray
    phases: list

    @property
    def n_updates(self):
        return len(self.coef) - 1

    @classmethod
    def recorded(cls, problem, coef, phases):
        """A trajectory from its coefficients, without objectives."""
        return cls(coef, problem.predictors(coef), np.empty(0), phases)

    def updates(self):
        """Every update, in order, as ``(t, before, step, penalty)``.

        It led from rows ``t`` and ``before`` to row ``t + 1``. ``before`` is
        ``t - 1``, but ``t`` itself in the first update of a phase: momentum
        starts, and restarts, from rest.
        """
        t = 0
        for phase in self.phases:
            first = t
            for step in phase.steps_from(0):
                yield t, max(t - 1, first), step, phase.penalty
                t += 1

    def has_linear_updates(self):
        """Whether every update is affine in the iterates, for the squared error."""
        return all(phase.penalty.is_linear for phase in self.phases)

    def as_gradient_descent(self):
        """The same in coordinates in which a preconditioner and a ridge are none."""
        phases = [
            replace(
                phase,
                penalty=Zero(),
                schedule=GradientDescent(phase.schedule.step_size),
            )
            for phase in self.phases
        ]
        return replace(self, phases=phases)

    def of_rows(self, rows):
        """What it records of some of the rows."""
        return replace(self, predictor=self.predictor[:, rows])

    def has_one_basis(self):
        """Whether linear updates are elementwise in one and the same eigenbasis.

        That of the second moments where there is no preconditioner; else of the
        preconditioned objective, which must stay the same.
        """
        if not self.has_linear_updates() or self.has_batches():
            return False
        rules = [
            (step.preconditioner, phase.penalty)
            for step, phase in zip(self._first_steps(), self.phases)
        ]
        is_plain = all(preconditioner is None for preconditioner, _ in rules)
        return is_plain or all(rule == rules[0] for rule in rules)

    def is_plain(self):
        """Whether all rows are taken at a time, by their gradient as it is."""
        return not self.has_batches() and not len(self.rows_seen())

    def preconditioner(self):
        """The one of all updates, None without any.

        Raises
        ------
        ValueError
            If they do not all have the same: see :meth:`has_one_basis`.
        """
        found = [step.preconditioner for step in self._first_steps()]
        if any(other != found[0] for other in found):
            raise ValueError("Not all updates have the same preconditioner.")
        return found[0] if found else None

    def rows_seen(self):
        """Rows that a preconditioner was made from, and that cannot be left out."""
        made_from = [
            step.preconditioner.rows
            for step in self._first_steps()
            if step.preconditioner is not None
        ]
        return np.unique(np.concatenate([np.empty(0, int), *made_from]))

    def lengths(self):
        """Updates of every phase."""
        return [phase.n_updates for phase in self.phases]

    def has_newton_steps(self):
        """Whether any gradient is divided by the Hessian."""
        return any(step.is_newton for step in self._first_steps())

    def n_batches(self):
        """Batches of rows that an update goes through at most, 0 if it takes all."""
        return max((len(step.batches) for step in self._first_steps()), default=0)

    def has_batches(self):
        """Whether updates are passes through batches of rows: all are, or none."""
        return self.n_batches() > 0

    def _first_steps(self):
        """Of every phase."""
        return [phase.first_step for phase in self.phases]


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
    """What a plan still asks for after the phases already ``done``.

    If the last of the recorded phases are a beginning of the plan, the rest of the
    plan: the last recorded phase goes on where it stopped. Otherwise the whole plan,
    as further phases of the same trajectory.

    Returns
    -------
    phases : list of Phase
    n_skipped : int
        How many steps of the first of them are done already.

    Raises
    ------
    ValueError
        If the last recorded phase has more updates than the plan has for it.
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
    """How many phases of a plan the last recorded ones are, at most; 0 if none."""
    for n in range(min(len(planned), len(done)), 0, -1):
        *earlier, last = done[len(done) - n :]
        if last.same_rule(planned[n - 1]) and all(
            recorded.is_whole(phase) for recorded, phase in zip(earlier, planned)
        ):
            return n
    return 0


def n_planned_updates(planned, done):
    """How many updates a run will add at most."""
    phases, n_skipped = remaining_phases(planned, done)
    return sum(phase.n_updates for phase in phases) - n_skipped


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
