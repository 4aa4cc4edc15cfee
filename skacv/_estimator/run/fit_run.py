"""The run of a fit: what it is of, how far it has gone, and what it carries beside."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

from sklearn.utils import check_random_state

from ...optim.growing import SoFar
from ...optim.run import LiveRun
from ..estimates.readers import FinishedRun
from .warm_start import as_recorded, starting_point


@dataclass
class FitRun:
    """A run, what it is of, and what it carries beside.

    Attributes
    ----------
    rows : ArrayRows, SummarisedRows or RowsOnWorkers
    data : TrainingData
    folds : list of (ndarray of int, ndarray of int)
    seed : int
        Draws batches, and whatever else belongs to the run.
    plan : list of Phase
        All that the parameters ask for.
    carried : LabelsAndFolds or None
    live : LiveRun
    trajectory : Trajectory or None
        What counts of the record, once the run has gone on.
    best : int or None
        The best iterate so far, where the run is judged while it goes on.
    known : dict of dict
        By the name of an estimate, what it was judged by.
    so_far : SoFar or None
        What is known of the iterates of a run in stages since it was last read. Other
        runs are read as a whole, and so to the last digit like one longer run.
    settings : dict or None
        Parameters that another fit must have to continue it; None where none may.
    """

    live_type: ClassVar = LiveRun

    rows: object
    data: object
    folds: list
    seed: int
    plan: list
    carried: object = None
    live: object = None
    trajectory: object = None
    best: int | None = None
    known: dict = field(default_factory=dict)
    so_far: SoFar | None = None
    settings: dict | None = None

    @classmethod
    def begun(cls, estimator, rows, params, resume):
        """A run of these rows: at its start, or where the last record has ended."""
        spec, seed = estimator._spec(), _seed(estimator, resume)
        data, folds = rows.problem(estimator, params, seed, resume)
        start, done = starting_point(estimator, data, resume)
        plan = spec.plan(data, seed, folds)
        plan = as_recorded(plan, done, data.problem.design.dtype)
        spec.solver.check([*done, *plan])
        run = cls(rows, data, folds, seed, plan)
        # There is no record of folds to go on from.
        run.carried = None if done else run.beside(estimator)
        run.live = cls.live_type(
            data.problem, plan, start, done=done, tol=spec.tol, carried=run.carried
        )
        return run

    def beside(self, estimator):
        """What runs beside."""
        return estimator._carried(self)

    def with_plan_of(self, n_updates):
        """The same run, with so many updates at every strength."""
        plan = [replace(phase, n_updates=n_updates) for phase in self.plan]
        return replace(self, plan=plan)

    def finished(self, estimator):
        """What estimates are read from."""
        run = self.trajectory, self.data, self.folds, self.carried
        held_out = self.best, self.known, self.so_far or SoFar()
        return FinishedRun(estimator, *run, *held_out)

    def warn(self, finished):
        """What a user should know of the run."""
        finished.estimator._warn_of(finished)


def _seed(estimator, resume):
    """What draws batches: the same as before where a run goes on."""
    if resume and hasattr(estimator, "_seed"):
        return estimator._seed
    return int(check_random_state(estimator.random_state).randint(2**31))
