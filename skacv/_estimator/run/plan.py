"""The specification of a run, and its plan: penalties, schedule and step size."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Any

import numpy as np

from ...optim.families import except_last
from ...optim.penalties import SquaredL2
from ...optim.schedules import GradientDescent, Nesterov, Newton, StochasticGradient
from ...optim.trajectory import Phase, Trajectory, smoothness_under
from ...optim.updates import Pass, ProximalGradient
from ...risk.cost import RunCost
from ...risk.held_out_rows import LeaveOutRule, counts_in
from ...risk.left_out.replicas import are_surely_stable, largest_stable_steps
from ..data.checks import number_array
from ..data.standardized import Standardized

# Solvers that are schedules of a step size and all rows alone.
SCHEDULES = {
    "auto": Nesterov,
    "fista": Nesterov,
    "nesterov": Nesterov,
    "ista": GradientDescent,
    "gd": GradientDescent,
    "newton": Newton,
}
# Strengths of a "path" whose penalty is smooth: its iterates on the way from one
# strength to the next are as good, and more updates at each bring them closer to its
# end.
N_SMOOTH_STRENGTHS = 10


# ----------------------------------------------------------------- strengths


@dataclass(frozen=True)
class Strengths:
    """The parameter that sets the strength of a penalty in (1/n) sum_i (...) + g(b)."""

    values: Any  # of the parameter: a number, an array or "path"
    name: str = "alpha"
    # The objective is a sum over the rows and a penalty, which weighs more where rows
    # are left out; else it has the mean over the rows.
    is_sum: bool = False
    # The parameter multiplies the sum over the rows, as C does, not the penalty.
    is_inverse: bool = False
    factor: float = 1.0  # strength of the penalty that the parameter multiplies, or 0
    # The number of strengths of a "path", and its last over its first.
    n_path: int = 30
    ratio: float = 1e-3

    @property
    def is_path(self):
        return isinstance(self.values, str)

    def __len__(self):
        return self.n_path if self.is_path else len(self._numbers())

    def _numbers(self):
        return np.atleast_1d(number_array(self.values, self.name))

    def unit(self, data):
        """The parameter's value at which the strength is one, for a factor of one."""
        return data.total_weight if self.is_sum else 1.0

    def on(self, data, penalty):
        """All strengths, the largest first, whatever the order of the values.

        After a weak penalty, a strong one would have to undo what that has let grow.
        ``penalty(1.0)`` is the penalty of strength one.
        """
        if isinstance(self.values, str):
            return self._path(data.problem, penalty(1.0))
        values = self._numbers()
        if values.ndim > 1 or not values.size:
            raise ValueError(
                f"{self.name} must be a number, a sequence of numbers or 'path', got "
                f"an array of shape {values.shape}."
            )
        if self.is_inverse:
            if np.isnan(values).any() or (values <= 0).any():
                raise ValueError(
                    f"{self.name} must be positive, got {values.tolist()}."
                )
            strengths = 1 / (values * self.unit(data))
            return np.sort(strengths)[::-1].tolist()
        if not np.isfinite(values).all() or (values < 0).any():
            raise ValueError(
                f"{self.name} must be finite and not negative, got {values.tolist()}."
            )
        strengths = values * self.factor / self.unit(data)
        return np.sort(strengths)[::-1].tolist()

    def value_of(self, strength, data):
        """The parameter's value of a strength."""
        value = strength * self.unit(data)
        if not self.is_inverse:
            return float(value / (self.factor or 1.0))
        return 1 / value if strength else np.inf

    def _path(self, problem, penalty):
        n_columns = problem.design.shape[1]
        # Coefficients that are not penalised are fitted first.
        free = np.flatnonzero(penalty.unpenalized(n_columns))
        gradient = problem.gradient(problem.least_squares_predictor(free))
        largest = penalty.largest_strength(gradient, problem.smoothness)
        # All coefficients are zero there, however gradients are rounded: next to
        # large means no more than half of their digits are left.
        largest *= 1 + np.sqrt(np.finfo(problem.design.dtype).eps)
        largest = max(largest, np.finfo(float).eps)
        # Numbers of Python: those of NumPy would make single precision double.
        return np.geomspace(largest, self.ratio * largest, len(self)).tolist()


def ridge_penalty(strength, n_features):
    """The ridge penalty, the same for any number of coefficients."""
    return SquaredL2(strength)


# ------------------------------------------------------------------- solvers


@dataclass(frozen=True)
class Solver:
    """The schedule of a run, with a step of one; it may depend on the data."""

    schedule: Any

    def on(self, problem, seed):
        """The schedule for a problem; the seed draws all that is random in it."""
        return self.schedule

    def update(self, n_rows):
        """An update of the kind that a run on so many rows consists of."""
        return next(iter(self.schedule.updates()))

    def step_size(self, curvature, problem, schedule, smoothness=None):
        """The automatic step, or the largest that is stable without any single row."""
        # The smoothness is the eigenvalue of the Hessian that limits the step, without
        # the curvature of the penalty: the largest, if it is not given.
        if smoothness is None:
            smoothness = smoothness_under(schedule, problem)
        smoothness = smoothness + curvature
        if smoothness == 0:
            return 1.0
        step_size = self.automatic_step(smoothness, schedule, problem)
        # Leaving a row out raises L to at most L over the share of the other weights.
        share = max(1 - problem.largest_weight, np.finfo(float).eps)
        return min(step_size, float(schedule.largest_stable_step(smoothness / share)))

    def automatic_step(self, smoothness, schedule, problem):
        """1 / L, or the step that the schedule has instead."""
        if hasattr(schedule, "automatic_step"):
            return schedule.automatic_step(smoothness)
        return 1 / smoothness

    def check(self, phases):
        """Raise if recorded and planned phases cannot share a record."""
        in_batches = bool(phases[0].first_update.n_batches)
        for phase in phases[1:]:
            if bool(phase.first_update.n_batches) != in_batches:
                raise ValueError(
                    "warm_start=True cannot continue a run in batches with updates on "
                    "all rows, or vice versa: leaving a row out has another meaning "
                    "in batches. Keep solver and batch_size, or set warm_start=False."
                )


@dataclass(frozen=True)
class InRandomBatches(Solver):
    """Stochastic gradient descent: passes over the rows in batches drawn at random."""

    schedule: None
    batch_size: int
    decay: float  # pass k has the step over k^decay

    def on(self, problem, seed):
        n_rows = len(problem.target)
        return StochasticGradient(1.0, self.decay, n_rows, self.batch_size, seed)

    def update(self, n_rows):
        n_batches = -(-n_rows // self.batch_size)
        return Pass(ProximalGradient(1.0), ((),) * n_batches)

    def step_size(self, curvature, problem, schedule):
        # For twice the expected smoothness (Gower et al. 2019, "SGD", section 3.1).
        n_rows = len(problem.target)
        size = min(self.batch_size, n_rows)
        weights = (problem.row_weights * problem.row_curvatures)[:, 0]
        largest = n_rows * (problem.design.squared_row_norms() * weights).max()
        apart = (n_rows - size) / (size * (n_rows - 1))
        expected = float((1 - apart) * problem.smoothness + apart * largest)
        return super().step_size(curvature, problem, schedule, 2 * expected)


def sees_moments_alone(update):
    """Whether, with the squared error, an update depends on second moments alone."""
    return update.is_affine and not update.n_batches and update.preconditioner is None


# ------------------------------------------------------------ specification


@dataclass(frozen=True)
class ModelSpec:
    """The specification of a run, from the parameters of an estimator."""

    # ``penalty(strength, n_features)`` in the mean form, without an intercept.
    penalty: Callable[[float, int], Any]
    strengths: Strengths
    solver: Solver
    fit_intercept: bool
    max_iter: int  # updates at every strength
    step_size: float | str
    tol: float  # a phase ends where updates move less than that
    # The squared error: an intercept centres the data. Else it is the last coefficient.
    is_quadratic: bool = False
    # Coefficients belong to rows: other rows cannot continue a record, and a fit
    # without some of the rows has the steps of the run as they are.
    is_dual: bool = False
    corrects_loo: bool = True  # linearised leave-one-out, at some iterates
    # ``outputs(y)``, properties of the outputs before a run, for ``RunCost``; None: as
    # many outputs as y has columns.
    outputs: Callable[[Any], dict] | None = None

    @classmethod
    def of(cls, estimator, penalty, strengths, solver, **settings):
        """The specification with the other parameters of an estimator."""
        parameters = vars(estimator)
        return cls(
            penalty=penalty,
            strengths=strengths,
            solver=solver,
            fit_intercept=estimator.fit_intercept,
            max_iter=estimator.max_iter,
            step_size=estimator.step_size,
            corrects_loo=parameters.get("loo_correction", True),
            **{"tol": estimator.tol, **settings},
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
        """The penalty of ``n_columns`` coefficients, of which an intercept has none."""
        if self.is_quadratic or not self.fit_intercept:
            return self.penalty(strength, n_columns)
        return except_last(self.penalty(strength, n_columns - 1), n_columns)

    def refit(self, data):
        """The rule by which rows are left out of the fit."""
        # A gradient of dual coefficients is a sum over rows, times step_size / n as it
        # is, so a refit is stable wherever the run is.
        scales = isinstance(data.columns, Standardized) and not self.is_dual
        scales = scales and data.columns.is_refitted
        return LeaveOutRule(
            refits_intercept=data.is_centered,
            is_sum=self.strengths.is_sum,
            renormalises=not self.is_dual,
            columns=data.columns if scales else None,
        )

    def plan(self, data, seed, folds=()):
        """All phases of the run, with an automatic step that is stable in all folds."""
        problem = data.problem
        penalty = partial(self.penalty_on, problem.design.shape[1])
        strengths = self.strengths.on(data, penalty)
        schedule, step_size = self.solver.on(problem, seed), self.step_size
        if step_size == "auto":
            # The strongest penalty has the largest curvature.
            strongest = penalty(max(strengths))
            step_size = self.solver.step_size(strongest.curvature, problem, schedule)
            if folds:
                schedule = replace(schedule, step_size=float(step_size))
                phase = Phase(strongest, schedule, self.max_iter)
                step_size = min(step_size, self._stable_step(data, phase, folds))
        schedule = replace(schedule, step_size=float(step_size))
        return [Phase(penalty(value), schedule, self.max_iter) for value in strengths]

    def _stable_step(self, data, phase, folds):
        """The largest step stable in all folds; infinite if that of the phase is."""
        problem = data.problem
        rule = self.refit(data).of_run(Trajectory.planned([phase]))
        counts = counts_in(folds, len(problem.target))
        weights = rule.without(problem, counts)
        if are_surely_stable(problem, [phase], weights):
            return np.inf
        return min(
            float(stable)
            for fold in range(len(folds))
            for _, stable in largest_stable_steps(problem, [phase], weights, fold)
        )

    def cost(self, shape, y):
        """The cost of a run on X of that shape, before the run."""
        n_columns = shape[1] + self.has_constant
        if self.outputs is None:
            y_shape = np.asarray(y).shape
            outputs = {"n_outputs": y_shape[1] if len(y_shape) > 1 else 1}
        else:
            outputs = self.outputs(y)
        update = self.solver.update(shape[0])
        # Any strengths, if they differ: one update is that of several or not.
        numbers = range(len(self.strengths))
        penalties = [self.penalty_on(n_columns, 1.0 + k) for k in numbers]
        return RunCost(
            shape=(shape[0], n_columns),
            lengths=[self.max_iter] * len(penalties),
            rules=[(update, penalty) for penalty in penalties],
            is_quadratic=self.is_quadratic,
            correction=self.corrects_loo,
            **outputs,
        )

    def patience(self, recorded=()):
        """Updates without improvement that ``patience="auto"`` allows, or None."""
        # The data may have chosen the schedule of the recorded phases. Newton's method
        # converges at a strength after about ten updates.
        if not self.strengths.is_path:
            return None
        schedule = recorded[-1].schedule if recorded else self.solver.schedule
        longest = 10 if isinstance(schedule, Newton) else self.max_iter
        return updates_to_wait(len(self.strengths), min(longest, self.max_iter))


def updates_to_wait(n_strengths, n_updates):
    """Updates without improvement that a run along many strengths may take."""
    # The first strengths may change next to nothing. On nineteen data sets (those of
    # benchmarks/real_data.py) a sixth of the strengths of a "path" lost nothing.
    return ceil(n_strengths / 6) * n_updates
