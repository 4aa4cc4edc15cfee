"""Runs that are evaluated as they go, and end when they no longer improve."""

from dataclasses import dataclass

import numpy as np

from .._estimator.estimates.folds import unseen_folds
from .._estimator.estimates.left_out import FEWEST_ROWS
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.parameters import to_python_scalar
from .._estimator.run.fit_run import FitRun
from .._estimator.run.plan import updates_to_wait
from .._estimator.run.stopping import Patience
from ..optim.array_path import PathCache
from ..optim.trajectory import Trajectory, n_planned_updates, phases_up_to
from ..records.held_out import HeldOut
from ..risk.left_out.side_runs import RademacherSideRuns, SideFolds
from ..risk.random_labels import random_signs

# Updates before the first evaluation, in multiples of the patience, where an evaluation
# takes longer than an update.
FIRST_STAGE = 6


@dataclass(frozen=True, eq=False)
class RunEvaluation:
    """What an evaluation of a run has found."""

    # The best iterate, and the one at which patience ends the run, or None.
    best: int | None = None
    end: int | None = None
    # The estimate that was computed of the record so far, by its name.
    computed: dict[str, HeldOut] | None = None


@dataclass(eq=False)
class StoppingRun(FitRun):
    """A run that stops early by ``patience`` and ``tol``, from its estimates."""

    evaluation: RunEvaluation = RunEvaluation()

    @staticmethod
    def runs_beside(model, task, data, folds, plan):
        """The SideRuns of random targets and of folds, None if there are neither."""
        problem, planned = data.problem, Trajectory.planned(plan)
        if problem.design.has_columns:  # of centres: a linear model
            return FitRun.runs_beside(model, task, data, folds, plan)
        n_rows, update = len(problem.target), plan[0].first_update
        seen = planned.rows_seen()
        folds = unseen_folds(folds, seen)
        rule = task.spec.refit(data).of_run(planned)
        # Random targets estimate leave-one-out of all rows, if all updates are the same
        # linear map. They are not needed if a decomposition is exact.
        takes_targets = (
            to_python_scalar(model.loo) in ("auto", True)
            and n_rows >= FEWEST_ROWS
            and problem.loss.is_quadratic
            and len(plan) == 1
            and not getattr(update, "has_memory", False)
            and (update.n_batches or not task.spec.solver.decomposes(n_rows))
        )
        if not takes_targets:
            return SideFolds(problem, rule, folds) if folds else None
        rng = np.random.default_rng(task.seed)
        targets = random_signs((n_rows, model.n_probes), rng)
        rows = np.setdiff1d(np.arange(n_rows), seen)
        return RademacherSideRuns(problem, rule, targets, rows, folds)

    def _take_updates(self, planned, progress):
        """Take updates until the estimated risk no longer falls, or the plan ends."""
        live, patience = self.live, self.model.patience
        n_total = sum(phase.n_updates for phase in planned)
        # Phases may end early, so updates are counted by the plan.
        n_updates = n_total - n_planned_updates(planned, live.phases)
        self.evaluation = RunEvaluation(self.evaluation.best)
        while self.evaluation.end is None and not live.is_stopped:
            # Updates until the next evaluation.
            if patience is None:
                n_more = sum(phase.n_updates for phase in self.plan)
            elif self._target_estimate is not None:
                n_more = 1
            else:
                # An estimate reads the whole record, so stages double. Most runs end in
                # the first.
                n_more = max(n_updates, FIRST_STAGE * self._waiting().patience)
            n_updates, t = n_updates + n_more, live.t
            live.go_on(phases_up_to(planned, n_updates), progress)
            is_over = n_updates >= n_total
            if live.t > t or is_over:
                self.evaluation = self._evaluate()
            if is_over:
                break
        return self.evaluation.end is not None or planned == self.plan

    @property
    def _target_estimate(self):
        """Leave-one-out by random targets, updated with the run, or None."""
        side_runs = self.live.side_runs
        return None if side_runs is None else side_runs.left_out

    def _trajectory(self):
        trajectory, end = self.live.trajectory, self.evaluation.end
        return trajectory if end is None else trajectory.first(end)

    def to_finished_run(self, **known):
        evaluation = self.evaluation
        known = {"best": evaluation.best, "computed": evaluation.computed or {}} | known
        return super().to_finished_run(**known)

    def _waiting(self):
        """The patience of a run, which waits for several strengths."""
        model = self.model
        if model.patience is None or len(self.plan) == 1:
            # Changes get smaller along a run, so the number of iterates to wait for is
            # at least the number before the best iterate.
            return Patience(model.patience, model.tol, growth=1.0)
        n_updates = updates_to_wait(len(self.plan), model.max_iter)
        return Patience(max(model.patience, n_updates), model.tol)

    def _evaluate(self):
        """Evaluate the iterates so far: the best, and where patience ends the run."""
        by_targets, computed = self._target_estimate, None
        if by_targets is not None:
            path, uncertainty = map(np.array, (by_targets.path, by_targets.mc_se))
        else:
            # An end belongs to another record than this one.
            self.evaluation = RunEvaluation(self.evaluation.best)
            finished = self.to_finished_run(so_far=self.so_far or PathCache())
            # With the squared error, rows are left out by one decomposition.
            names = ("loo", "cv") if self.task.spec.is_quadratic else ("cv", "loo")
            for estimate in map(ESTIMATES.get, names):
                is_on = estimate.is_on(self.model)
                held_out = estimate.read(finished) if is_on else None
                if held_out is not None:
                    break
            else:
                return self.evaluation
            computed, path = {estimate.name: held_out}, held_out.path
            uncertainty = np.zeros(len(finished.trajectory.coef))
        patience, best = self._waiting(), self.evaluation.best
        for t, (value, uncertainty_t) in enumerate(zip(path, uncertainty)):
            patience.update(value, uncertainty_t)
            best = patience.best
            if patience.has_ended:
                return RunEvaluation(best, t, computed)
        return RunEvaluation(best, None, computed)
