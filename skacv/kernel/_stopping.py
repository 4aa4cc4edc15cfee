"""Runs that are evaluated as they go, and end when they no longer improve."""

import numpy as np

from .._estimator.estimates.left_out import FEWEST_ROWS, unseen_folds
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.parameters import to_python_scalar
from .._estimator.run.fit import TrajectoryModel
from .._estimator.run.plan import updates_to_wait
from .._estimator.run.stopping import Patience
from ..optim.trajectory import Trajectory, first_updates, n_planned_updates
from ..risk.left_out.side_runs import RademacherSideRuns, SideFolds
from ..risk.random_labels import random_signs

# Updates before the first evaluation, in multiples of the patience, of a run whose
# evaluation takes longer than an update.
FIRST_STAGE = 6


class StoppingModel(TrajectoryModel):
    """A fit that stops early by ``patience`` and ``tol``, from its estimates."""

    def _side_runs(self, run):
        """Labels, if rows are not left out exactly, and folds beside the run."""
        problem, planned = run.data.problem, Trajectory.planned(run.plan)
        seen, rng = planned.rows_seen(), np.random.default_rng(run.seed)
        folds = unseen_folds(run.folds, seen)
        rule = run.spec.refit(run.data).of_run(planned)
        if not self._takes_labels(run.spec, problem, run.plan):
            return SideFolds(problem, rule, folds) if folds else None
        labels = random_signs((len(problem.target), self.n_probes), rng)
        rows = np.setdiff1d(np.arange(len(labels)), seen)
        return RademacherSideRuns(problem, rule, labels, rows, folds)

    def _takes_labels(self, spec, problem, plan):
        """Whether leave-one-out of all rows is read from random labels."""
        n_rows = len(problem.target)
        if to_python_scalar(self.loo) not in ("auto", True) or n_rows < FEWEST_ROWS:
            return False
        update = plan[0].first_update
        is_same_map = problem.loss.is_quadratic and len(plan) == 1
        if not is_same_map or getattr(update, "has_memory", False):
            return False
        return bool(update.n_batches) or not spec.solver.decomposes(n_rows)

    def _go_on(self, run, planned, progress):
        """Take updates until the estimated risk no longer falls, or the plan ends."""
        live, n_total = run.live, sum(phase.n_updates for phase in planned)
        # Phases may end early, so updates are counted by the plan.
        n_updates, end = n_total - n_planned_updates(planned, live.phases), None
        while end is None and not live.is_stopped:
            n_updates, t = n_updates + self._n_more(n_updates, run), live.t
            live.go_on(first_updates(planned, n_updates), progress)
            is_over = n_updates >= n_total
            if live.t > t or is_over:
                end = self._evaluated(run)
            if is_over:
                break
        trajectory = live.trajectory
        run.trajectory = trajectory if end is None else trajectory.first(end)
        return end is not None or planned == run.plan

    def _n_more(self, n_updates, run):
        """Updates until the next evaluation of the run."""
        if self.patience is None:
            return sum(phase.n_updates for phase in run.plan)
        if _random_labels(run) is not None:
            return 1
        # An estimate reads the whole record, so stages double. Most runs end in the
        # first.
        return max(n_updates, FIRST_STAGE * self._waiting(run.plan).patience)

    def _waiting(self, plan):
        """The patience of a run, which waits for several strengths."""
        if self.patience is None or len(plan) == 1:
            # Steps get smaller along a run, so it waits for as many iterates more as
            # came before the best.
            return Patience(self.patience, self.tol, growth=1.0)
        n_updates = updates_to_wait(len(plan), self.max_iter)
        return Patience(max(self.patience, n_updates), self.tol)

    def _evaluated(self, run):
        """The iterate at which patience ends the run, or None; sets ``run.best``."""
        risks = self._risk_so_far(run)
        if risks is None:
            return None
        patience = self._waiting(run.plan)
        for t, (value, uncertainty) in enumerate(zip(*risks)):
            patience.update(value, uncertainty)
            run.best = patience.best
            if patience.has_ended:
                return t
        return None

    def _risk_so_far(self, run):
        """Path of the estimate that stops the run, and its uncertainty; or None."""
        labels = _random_labels(run)
        if labels is not None:
            return labels.risks()
        run.trajectory, run.computed = run.live.trajectory, {}
        finished = run.source.finish(self, run)
        # With the squared error, rows are left out by one decomposition.
        names = ("loo", "cv") if run.spec.is_quadratic else ("cv", "loo")
        for estimate in map(ESTIMATES.get, names):
            attributes = estimate.read(finished) if estimate.is_on(self) else {}
            if attributes:
                run.computed = {estimate.name: attributes}
                return attributes[estimate.path], np.zeros(len(run.trajectory.coef))
        return None


def _random_labels(run):
    """Leave-one-out by random labels side by side with a run, or None."""
    return None if run.side_runs is None else run.side_runs.left_out
