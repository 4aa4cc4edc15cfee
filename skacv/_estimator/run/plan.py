"""The specification of a run, and its plan: penalties, schedule and step size."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from ...optim.families import except_last
from ...optim.penalties import SquaredL2
from ...optim.schedules import GradientDescent, Nesterov, Newton
from ...optim.trajectory import Phase, Trajectory, smoothness_under
from ...risk.leave_out_rule import LeaveOutRule, counts_in
from ...risk.left_out.replicas import are_surely_stable, largest_stable_steps
from ...risk.left_out.workload import Workload
from .strengths import Strengths

# Solvers that are schedules of a step size and all rows alone.
SCHEDULES = {
    "auto": Nesterov,
    "fista": Nesterov,
    "nesterov": Nesterov,
    "ista": GradientDescent,
    "gd": GradientDescent,
    "newton": Newton,
}
# The share of the strengths of a "path" without an improvement after which it may end:
# on the data sets of the study of it (benchmarks) that loses nothing.
PATIENT_SHARE = 1 / 6
# Newton's method converges at a strength after about this number of updates.
NEWTON_UPDATES = 10


def updates_to_wait(n_strengths, n_updates):
    """Number of updates without improvement that a run along many strengths may take.

    The first strengths may change next to nothing.

    Parameters
    ----------
    n_updates : int
        Number of updates at each of them.
    """
    return ceil(PATIENT_SHARE * n_strengths) * n_updates


def ridge_penalty(strength, n_features):
    """The ridge penalty, the same for any number of coefficients."""
    return SquaredL2(strength)


@dataclass(frozen=True)
class Solver:
    """How a run takes its updates.

    Subclasses have schedules that depend on the data.

    Attributes
    ----------
    schedule : Schedule
        With a step of one.
    """

    schedule: Any

    @classmethod
    def named(cls, name):
        return cls(SCHEDULES[name](1.0))

    def on(self, problem, seed):
        """The schedule for a problem; what is random in it is drawn by the seed."""
        return self.schedule

    def update(self, n_rows):
        """An update of the kind that a run on so many rows will take."""
        return next(iter(self.schedule.updates()))

    def smoothness(self, problem, schedule):
        """The largest eigenvalue of the Hessian that limits the step size."""
        return smoothness_under(schedule, problem)

    def step_size(self, curvature, problem, schedule):
        """The automatic step, or the largest that is stable without any single row.

        That raises L to at most L over the share of the weight that stays.

        Parameters
        ----------
        curvature : float
            The largest curvature of the penalties.
        problem : Problem
        schedule : Schedule
        """
        smoothness = self.smoothness(problem, schedule) + curvature
        if smoothness == 0:
            return 1.0
        step_size = self.automatic_step(smoothness, schedule, problem)
        share = max(1 - problem.largest_weight, np.finfo(float).eps)
        return min(step_size, float(schedule.largest_stable_step(smoothness / share)))

    def automatic_step(self, smoothness, schedule, problem):
        """1 / L, or what the schedule takes for it, if that is stable without rows."""
        if hasattr(schedule, "automatic_step"):
            return schedule.automatic_step(smoothness)
        return 1 / smoothness

    def check(self, phases):
        """Raise if recorded and planned phases cannot share a record."""
        if len({bool(phase.first_update.n_batches) for phase in phases}) > 1:
            raise ValueError(
                "warm_start=True cannot continue a run in batches with updates on all "
                "rows, or the other way round: leaving a row out means something else "
                "in batches. Keep solver and batch_size, or set warm_start=False."
            )


def sees_moments_alone(update):
    """Whether, with the squared error, it needs means and second moments alone."""
    return update.is_affine and not update.n_batches and update.preconditioner is None


def outputs_of_targets(y):
    """Properties of the outputs for targets y, before a run."""
    shape = np.asarray(y).shape
    return {"n_outputs": shape[1] if len(shape) > 1 else 1}


@dataclass(frozen=True)
class ModelSpec:
    """The specification of a run, from the parameters of an estimator.

    Attributes
    ----------
    penalty : callable
        ``penalty(strength, n_features)``, the penalty of a strength on so many
        coefficients, none of them an intercept, in the mean form.
    max_iter : int
        Updates at every strength.
    step_size : float or "auto"
    tol : float
        A phase ends where updates move less than that.
    is_quadratic : bool
        Whether the loss is the squared error, for which an intercept centres the data;
        else it is the last coefficient.
    is_dual : bool
        Whether coefficients belong to rows. Other rows then cannot continue a record,
        and a fit without some of the rows takes the steps of the run as they are.
    corrects_loo : bool
        Whether linearised leave-one-out is corrected at some iterates.
    outputs : callable
        ``outputs(y)``, what is known of the outputs before a run, for ``Workload``.
    """

    penalty: Callable[[float, int], Any]
    strengths: Strengths
    solver: Solver
    fit_intercept: bool
    max_iter: int
    step_size: float | str
    tol: float
    is_quadratic: bool = False
    is_dual: bool = False
    corrects_loo: bool = True
    outputs: Callable[[Any], dict] = outputs_of_targets

    @classmethod
    def of(cls, estimator, penalty, strengths, solver, **others):
        """With what else the parameters of an estimator say."""
        return cls(
            penalty=penalty,
            strengths=strengths,
            solver=solver,
            fit_intercept=estimator.fit_intercept,
            max_iter=estimator.max_iter,
            step_size=estimator.step_size,
            corrects_loo=getattr(estimator, "loo_correction", True),
            **{"tol": estimator.tol, **others},
        )

    @property
    def has_constant(self):
        """Whether the last coefficient is an intercept: if nothing is centred."""
        return bool(self.fit_intercept and not self.is_quadratic)

    @property
    def takes_summaries(self):
        """Whether means, second moments and a few of the rows may be enough."""
        return self.is_quadratic and not self.is_dual

    @property
    def is_of_moments(self):
        """Whether a run needs only the means and second moments of the rows."""
        # Two rows suffice: the kind of update does not depend on their number.
        return self.takes_summaries and sees_moments_alone(self.solver.update(2))

    def penalty_on(self, n_columns, strength):
        """The penalty of all coefficients, of which it spares an intercept."""
        if not self.has_constant:
            return self.penalty(strength, n_columns)
        return except_last(self.penalty(strength, n_columns - 1), n_columns)

    def refit(self, data):
        """The effect on the fit of leaving out some of the rows.

        A gradient of dual coefficients is a sum over rows, times step_size / n as it
        is, so a refit is stable wherever the run is.
        """
        return LeaveOutRule(
            refits_intercept=data.is_centered,
            is_sum=self.strengths.is_sum,
            renormalises=not self.is_dual,
            columns=None if self.is_dual else data.columns,
        )

    def plan(self, data, seed, folds=()):
        """All phases that are asked for, with an automatic step for all folds.

        The step does not depend on estimates of the run.
        """
        problem, n_columns = data.problem, data.problem.design.shape[1]
        strengths = self.strengths.on(data, self.penalty_on(n_columns, 1.0))
        penalties = [self.penalty_on(n_columns, strength) for strength in strengths]
        # The strongest penalty has the largest curvature.
        strongest = max(penalties, key=lambda penalty: penalty.curvature)
        schedule, step_size = self.solver.on(problem, seed), self.step_size
        if step_size == "auto":
            step_size = self.solver.step_size(strongest.curvature, problem, schedule)
        schedule = replace(schedule, step_size=float(step_size))
        if folds and self.step_size == "auto":
            phase = Phase(strongest, schedule, self.max_iter)
            stable = self._stable_step(data, phase, folds)
            schedule = replace(schedule, step_size=min(schedule.step_size, stable))
        return [Phase(penalty, schedule, self.max_iter) for penalty in penalties]

    def _stable_step(self, data, phase, folds):
        """A step at which no fold diverges: any, where that is certain beforehand."""
        problem = data.problem
        refit = self.refit(data).of_run(Trajectory.planned([phase]))
        counts = counts_in(folds, len(problem.target))
        weights = refit.without(problem, counts)
        if are_surely_stable(problem, [phase], weights):
            return np.inf
        return min(
            float(stable)
            for r in range(len(folds))
            for _, stable in largest_stable_steps(problem, [phase], weights, r)
        )

    def workload(self, shape, y):
        """The workload of a run on X of that shape, before the run."""
        n_columns = shape[1] + self.has_constant
        update = self.solver.update(shape[0])
        # Any strengths, if they differ: one update is that of several or not.
        numbers = range(len(self.strengths))
        penalties = [self.penalty_on(n_columns, 1.0 + k) for k in numbers]
        return Workload(
            shape=(shape[0], n_columns),
            lengths=[self.max_iter] * len(penalties),
            rules=[(update, penalty) for penalty in penalties],
            is_quadratic=self.is_quadratic,
            correction=self.corrects_loo,
            **self.outputs(y),
        )

    def patience(self, recorded=()):
        """Number of iterates without improvement after which ``patience="auto"`` stops.

        Parameters
        ----------
        recorded : sequence of Phase
            What has been run, if anything: the data may have chosen the schedule.

        Returns
        -------
        int or None
            The number of updates at one sixth of the strengths along a "path"; None
            for other runs, whose length the user has chosen.
        """
        if not self.strengths.is_path:
            return None
        schedule = recorded[-1].schedule if recorded else self.solver.schedule
        most = NEWTON_UPDATES if isinstance(schedule, Newton) else self.max_iter
        return updates_to_wait(len(self.strengths), min(most, self.max_iter))
