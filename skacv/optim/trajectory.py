"""The record of a run: every iterate, and the phases that led there."""

from dataclasses import dataclass, replace

import numpy as np

from .penalties import Zero
from .schedules import GradientDescent


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
