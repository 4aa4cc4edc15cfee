"""Runs that are evaluated as they go, and end when they no longer improve."""

import numpy as np

from .._estimator.estimates.folds import unseen_folds
from .._estimator.estimates.left_out import FEWEST_ROWS
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.parameters import to_python_scalar
from .._estimator.run.fit import TrajectoryModel
from .._estimator.run.plan import updates_to_wait
from .._estimator.run.stopping import Patience
from ..optim.trajectory import Trajectory, n_planned_updates, phases_up_to
from ..risk.left_out.side_runs import RademacherSideRuns, SideFolds
from ..risk.random_labels import random_signs

# Updates before the first evaluation, in multiples of the patience, where an evaluation
# takes longer than an update.
FIRST_STAGE = 6


class StoppingModel(TrajectoryModel):
    """A fit that stops early by ``patience`` and ``tol``, from its estimates."""

    def _side_runs(self, run):
        """The SideRuns of random targets and of folds, None if there are neither."""
        problem, planned = run.data.problem, Trajectory.planned(run.plan)
        if problem.design.has_columns:  # of centres: a linear model
            return super()._side_runs(run)
        n_rows, update = len(problem.target), run.plan[0].first_update
        seen = planned.rows_seen()
        folds = unseen_folds(run.folds, seen)
        rule = run.spec.refit(run.data).of_run(planned)
        # Random targets estimate leave-one-out of all rows, if all updates are the same
        # linear map. They are not needed if a decomposition is exact.
        takes_targets = (
            to_python_scalar(self.loo) in ("auto", True)
            and n_rows >= FEWEST_ROWS
            and problem.loss.is_quadratic
            and len(run.plan) == 1
            and not getattr(update, "has_memory", False)
            and (update.n_batches or not run.spec.solver.decomposes(n_rows))
        )
        if not takes_targets:
            return SideFolds(problem, rule, folds) if folds else None
        rng = np.random.default_rng(run.seed)
        targets = random_signs((n_rows, self.n_probes), rng)
        rows = np.setdiff1d(np.arange(n_rows), seen)
        return RademacherSideRuns(problem, rule, targets, rows, folds)

    def _go_on(self, run, planned, progress):
        """Take updates until the estimated risk no longer falls, or the plan ends."""
        live, n_total = run.live, sum(phase.n_updates for phase in planned)
        # Leave-one-out by random targets, updated with the run, or None.
        target_estimate = None if run.side_runs is None else run.side_runs.left_out
        # Phases may end early, so updates are counted by the plan.
        n_updates, end = n_total - n_planned_updates(planned, live.phases), None
        while end is None and not live.is_stopped:
            # Updates until the next evaluation.
            if self.patience is None:
                n_more = sum(phase.n_updates for phase in run.plan)
            elif target_estimate is not None:
                n_more = 1
            else:
                # An estimate reads the whole record, so stages double. Most runs end in
                # the first.
                n_more = max(n_updates, FIRST_STAGE * self._waiting(run.plan).patience)
            n_updates, t = n_updates + n_more, live.t
            live.go_on(phases_up_to(planned, n_updates), progress)
            is_over = n_updates >= n_total
            if live.t > t or is_over:
                end = self._evaluated(run, target_estimate)
            if is_over:
                break
        trajectory = live.trajectory
        run.trajectory = trajectory if end is None else trajectory.first(end)
        return end is not None or planned == run.plan

    def _waiting(self, plan):
        """The patience of a run, which waits for several strengths."""
        if self.patience is None or len(plan) == 1:
            # Changes get smaller along a run, so the number of iterates to wait for is
            # at least the number before the best iterate.
            return Patience(self.patience, self.tol, growth=1.0)
        n_updates = updates_to_wait(len(plan), self.max_iter)
        return Patience(max(self.patience, n_updates), self.tol)

    def _evaluated(self, run, target_estimate):
        """The iterate at which patience ends the run, or None; sets ``run.best``."""
        if target_estimate is not None:
            path, uncertainty = map(
                np.array, (target_estimate.path, target_estimate.mc_se)
            )
        else:
            run.trajectory, run.computed = run.live.trajectory, {}
            finished = run.source.finish(self, run)
            # With the squared error, rows are left out by one decomposition.
            names = ("loo", "cv") if run.spec.is_quadratic else ("cv", "loo")
            for estimate in map(ESTIMATES.get, names):
                held_out = estimate.read(finished) if estimate.is_on(self) else None
                if held_out is not None:
                    break
            else:
                return None
            run.computed = {estimate.name: held_out}
            path = held_out.path
            uncertainty = np.zeros(len(run.trajectory.coef))
        patience = self._waiting(run.plan)
        for t, (value, uncertainty_t) in enumerate(zip(path, uncertainty)):
            patience.update(value, uncertainty_t)
            run.best = patience.best
            if patience.has_ended:
                return t
        return None
