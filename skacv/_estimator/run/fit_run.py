"""The run of a fit, with its rows, plan and folds."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

from sklearn.utils import check_random_state

from ...optim.array_path import PathCache
from ...optim.run import LiveRun
from ..estimates.readers import FinishedRun
from .warm_start import as_recorded, starting_point


@dataclass
class FitRun:
    """A run, with its rows, its plan, its folds and its labels.

    Attributes
    ----------
    rows : ArrayRows, SummarisedRows or RowsOnWorkers
    folds : list of (ndarray of int, ndarray of int)
    groups : ndarray of int, shape (n_samples,), or None
        The group of every sample that was passed, where there are groups.
    seed : int
        Draws batches, and whatever else belongs to the run.
    plan : list of Phase
        All that the parameters ask for.
    carried : SideFolds or None
    trajectory : Trajectory or None
        What counts of the record, once the run has gone on.
    best : int or None
        The best iterate so far, if the run is evaluated as it goes.
    known : dict of dict
        Fitted attributes by the name of the estimate, as far as computed.
    so_far : PathCache or None
        State of the estimates of a run in stages since they were last computed. Other
        runs are read as a whole, and so to the last digit like one longer run.
    asked : dict or None
        Parameters, and what was passed to the splitter, that another fit must have to
        continue it; None where none may.
    """

    live_type: ClassVar = LiveRun

    rows: object
    data: object
    folds: list
    groups: object
    seed: int
    plan: list
    side_runs: object = None
    live: object = None
    trajectory: object = None
    best: int | None = None
    known: dict = field(default_factory=dict)
    so_far: PathCache | None = None
    asked: dict | None = None

    @classmethod
    def begun(cls, estimator, rows, params, resume):
        """A run on these rows: at its start, or where the last record ended."""
        spec = estimator._spec()
        # Dual coefficients of another record are not gone on from.
        seed = _seed(estimator, resume and not spec.is_dual)
        data, folds, groups = rows.problem(estimator, params, seed, resume)
        start, done = starting_point(estimator, data, resume)
        plan = spec.plan(data, seed, folds)
        plan = as_recorded(plan, done, data.problem.design.dtype)
        spec.solver.check([*done, *plan])
        run = cls(rows, data, folds, groups, seed, plan)
        # There is no record of folds to go on from.
        run.side_runs = None if done else run.beside(estimator)
        run.live = cls.live_type(
            data.problem, plan, start, done=done, tol=spec.tol, side_runs=run.side_runs
        )
        return run

    def beside(self, estimator):
        """The folds and labels beside the run."""
        return estimator._side_runs(self)

    def with_plan_of(self, n_updates):
        """The same run, with ``max_iter`` updates at every strength."""
        plan = [replace(phase, n_updates=n_updates) for phase in self.plan]
        return replace(self, plan=plan)

    def finished(self, estimator):
        """The finished run, from which estimates are computed."""
        run = self.trajectory, self.data, self.folds, self.side_runs
        held_out = self.best, self.known, self.so_far or PathCache()
        return FinishedRun(estimator, *run, *held_out, groups=self.groups)

    def warn(self, finished):
        """Warn about the run."""
        finished.estimator._warn_of(finished)


class RowsToFit:
    """The rows of a fit, whatever they are: arrays, a summary, rows on workers.

    A subclass defines ``problem(estimator, params, seed, resume)``, the data of the
    run, the folds as rows of them, and groups; and ``is_same_as(other)``, whether
    another fit is to the same rows.
    """

    run_type = FitRun

    def were_passed(self, passed):
        """Whether they are surely those of the very same X, y and sample_weight."""
        return False


def _seed(estimator, resume):
    """The seed of batches, the same as before if a run is continued."""
    if resume and hasattr(estimator, "_seed"):
        return estimator._seed
    return int(check_random_state(estimator.random_state).randint(2**31))
