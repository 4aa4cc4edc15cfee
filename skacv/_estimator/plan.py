"""The plan of a run: penalties, schedule and step size."""

from dataclasses import replace
from math import ceil

import numpy as np

from ..optim.phases import Phase, smoothness_under
from ..optim.trajectory import Trajectory
from ..risk.left_out.costs import Run
from ..risk.left_out.methods import is_cheap
from ..risk.left_out.replicas import are_surely_stable, largest_stable_steps
from ..risk.refit import stays_in
from .collections import is_collection
from .left_out import FEWEST_ROWS
from .strengths import PenaltyStrengths

# The share of the strengths of a "path" without an improvement after which it may end:
# on the data sets of the study of it (benchmarks) that loses nothing.
PATIENT_SHARE = 1 / 6


def updates_to_wait(n_strengths, max_iter):
    """How long a run along many strengths may go on without an improvement.

    The first strengths may change next to nothing.
    """
    return ceil(PATIENT_SHARE * n_strengths) * max_iter


class PlannedModel(PenaltyStrengths):
    """An estimator whose parameters say what its run will be.

    A subclass says, besides what :class:`PenaltyStrengths` asks for,

    ``_solvers``
        the schedule class of every solver name.

    Where a solver is not a schedule of a step size and all rows alone, it also says

    ``_schedule(step_size, problem, seed)``
        the schedule;
    ``_smoothness(problem, schedule)``, \
``_automatic_step(smoothness, schedule, problem)``, \
``_step_size(penalties, problem, schedule)``
        the constant of its gradients; the automatic step; the step, where it is not
        to be the automatic one;
    ``_planned_update(n_rows)``, ``_outputs(y)``
        an update of the kind that a run will take, where its schedule needs the
        problem, and the run's outputs: what leaving rows out depends on.
    """

    _solvers: dict = {}

    @property
    def _corrects_loo(self):
        """``loo_correction``, where there is that parameter."""
        return getattr(self, "loo_correction", True)

    def _plan(self, data, seed, folds=()):
        """All phases that the parameters ask for, with an automatic step for all folds.

        What is read from a run has no part in its step.
        """
        problem, n_columns = data.problem, data.problem.design.shape[1]
        # Numbers of Python: those of NumPy would make single precision double.
        strengths = [float(strength) for strength in self._strengths(data)]
        penalties = [self._penalty_on(n_columns, strength) for strength in strengths]
        schedule = self._schedule(1.0, problem, seed)
        step_size = float(self._step_size(penalties, problem, schedule))
        schedule = replace(schedule, step_size=step_size)
        plan = [Phase(penalty, schedule, self.max_iter) for penalty in penalties]
        if not folds or self.step_size != "auto":
            return plan
        # The strongest penalty has the largest curvature.
        strongest = max(plan, key=lambda phase: phase.penalty.curvature)
        step_size = min(step_size, self._stable_step(data, strongest, folds))
        schedule = replace(schedule, step_size=step_size)
        return [replace(phase, schedule=schedule) for phase in plan]

    def _stable_step(self, data, phase, folds):
        """A step at which no fold diverges: any, where that is certain beforehand."""
        problem = data.problem
        refit = self._refit(data).of_run(Trajectory.planned([phase]))
        stays = stays_in(folds, len(problem.target))
        weights = refit.without(problem, stays)
        if are_surely_stable(problem, [phase], weights):
            return np.inf
        return min(
            float(stable)
            for r in range(len(folds))
            for _, stable in largest_stable_steps(problem, [phase], weights, r)
        )

    def _schedule(self, step_size, problem, seed):
        return self._solvers[self.solver](step_size)

    def _step_size(self, penalties, problem, schedule):
        """The automatic step, or the largest that is stable without any single row.

        That raises L to at most L over the share of the weight that stays.
        """
        if self.step_size != "auto":
            return float(self.step_size)
        curvature = max(penalty.curvature for penalty in penalties)
        smoothness = self._smoothness(problem, schedule) + curvature
        if smoothness == 0:
            return 1.0
        step_size = self._automatic_step(smoothness, schedule, problem)
        share = max(1 - problem.largest_weight, np.finfo(float).eps)
        return min(step_size, float(schedule.largest_stable_step(smoothness / share)))

    def _automatic_step(self, smoothness, schedule, problem):
        """1 / L, or what the schedule takes for it, if that is stable without rows."""
        if hasattr(schedule, "automatic_step"):
            return schedule.automatic_step(smoothness)
        return 1 / smoothness

    def _smoothness(self, problem, schedule):
        """The largest eigenvalue of the Hessian that limits the step size."""
        return smoothness_under(schedule, problem)

    # ------------------------------------------------------- known before the run

    def _leaves_one_out_cheaply(self, X, y):
        """Whether leave-one-out of every row takes about as long as a few folds.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)

        Returns
        -------
        bool

        Raises
        ------
        ValueError
            If y is invalid for this estimator.
        """
        if is_collection(X):
            return False
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
        if len(shape) != 2 or shape[0] < FEWEST_ROWS:
            return False
        return is_cheap(self._planned_run(shape, y))

    def _default_patience(self):
        """Iterates without an improvement after which ``patience="auto"`` stops.

        Returns
        -------
        int or None
            The number of updates at one sixth of the strengths along a "path"; None for
            other runs, whose length the user has chosen.
        """
        if isinstance(getattr(self, self._strength_name), str):
            return updates_to_wait(self._n_strengths(), self.max_iter)
        return None

    def _is_of_row_space(self, shape, done=()):
        """Whether there are fewer rows than features, and the run stays in their span.

        It does if it is the same in any basis of the coefficients.

        Parameters
        ----------
        shape : tuple of int
            Samples and features.
        done : sequence of Phase
            Recorded phases that the run goes on from.
        """
        n_rows, n_features = shape
        if n_rows >= n_features:
            return False
        penalty, features = self._penalty(1.0, n_features), np.arange(n_features)
        if not penalty.is_rotation_invariant:
            return False
        # It has to be one on as many coefficients as there are rows, too.
        if penalty.on(features[:n_rows]) != self._penalty(1.0, n_rows):
            return False
        updates = [self._planned_update(n_rows), *(p.first_update for p in done)]
        return all(update.is_rotation_invariant for update in updates) and all(
            phase.penalty.on(features).is_rotation_invariant for phase in done
        )

    def _planned_run(self, shape, y):
        """What is known of a run before it, on X of that shape."""
        n_values = self._n_strengths()
        n_columns = shape[1] + self._has_constant
        update = self._planned_update(shape[0])
        # Any strengths, if they differ: one update is that of several or not.
        penalties = [self._penalty_on(n_columns, 1.0 + k) for k in range(n_values)]
        return Run(
            shape=(shape[0], n_columns),
            lengths=[self.max_iter] * n_values,
            rules=[(update, penalty) for penalty in penalties],
            is_quadratic=self._is_quadratic,
            correction=self._corrects_loo,
            **self._outputs(y),
        )

    def _planned_update(self, n_rows):
        """An update of the kind that a run will take."""
        schedule = self._schedule(1.0, problem=None, seed=None)
        return next(iter(schedule.updates()))

    def _outputs(self, y):
        """What is known of the outputs before a run."""
        shape = np.asarray(y).shape
        return {"n_outputs": shape[1] if len(shape) > 1 else 1}
