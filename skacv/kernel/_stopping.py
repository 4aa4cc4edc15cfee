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

# A run waits for as many more iterates as came before its best: what a step
# changes gets less along a run.
PATIENCE_GROWTH = 1.0
# Updates before a run is first evaluated, as a multiple of its patience, where that
# takes longer than updates do.
FIRST_STAGE = 6


class StoppingModel(TrajectoryModel):
    """A fit that stops early by ``patience`` and ``tol``, from its estimates."""

    def _side_runs(self, run):
        """Labels, if rows are not left out exactly, and folds beside the run."""
        problem, planned = run.data.problem, Trajectory.planned(run.plan)
        seen, rng = planned.rows_seen(), np.random.default_rng(run.seed)
        folds = unseen_folds(run.folds, seen)
        refit = run.spec.refit(run.data).of_run(planned)
        if not self._takes_labels(run.spec, problem, run.plan):
            return SideFolds(problem, refit, folds) if folds else None
        labels = random_signs((len(problem.target), self.n_probes), rng)
        rows = np.setdiff1d(np.arange(len(labels)), seen)
        return RademacherSideRuns(problem, refit, labels, rows, folds)

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
        # Phases may end before their last update: what counts is the place in the plan.
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
        """Updates until the run is evaluated again.

        What random labels say is at hand after every update. Other estimates are read
        from the record, all of it: in stages that double, the first so long that most
        runs end in it.
        """
        if self.patience is None:
            return sum(phase.n_updates for phase in run.plan)
        if _random_labels(run) is not None:
            return 1
        return max(n_updates, FIRST_STAGE * self._waiting(run.plan).patience)

    def _waiting(self, plan):
        """The patience of a run, which waits for several strengths."""
        if self.patience is None or len(plan) == 1:
            return Patience(self.patience, self.tol, PATIENCE_GROWTH)
        n_updates = updates_to_wait(len(plan), self.max_iter)
        return Patience(max(self.patience, n_updates), self.tol)

    def _evaluated(self, run):
        """Where patience ends the run so far, None if it does not; notes the best."""
        found = self._risk_so_far(run)
        if found is None:
            return None
        patience = self._waiting(run.plan)
        for t, (value, uncertainty) in enumerate(zip(*found)):
            patience.update(value, uncertainty)
            run.best = patience.best
            if patience.has_ended:
                return t
        return None

    def _risk_so_far(self, run):
        """The estimates that stop the run, and their uncertainty; or None."""
        labels = _random_labels(run)
        if labels is not None:
            return labels.risks()
        run.trajectory, run.known = run.live.trajectory, {}
        finished = run.source.finish(self, run)
        # With the squared error, rows are left out by one decomposition.
        names = ("loo", "cv") if run.spec.is_quadratic else ("cv", "loo")
        for estimate in map(ESTIMATES.get, names):
            found = estimate.read(finished) if estimate.is_on(self) else {}
            if found:
                run.known = {estimate.name: found}
                return found[estimate.path], np.zeros(len(run.trajectory.coef))
        return None


def _random_labels(run):
    """Leave-one-out by the random labels that a run carries, None if it has none."""
    return None if run.side_runs is None else run.side_runs.left_out
