"""A run in progress: its data, and the labels and folds fitted along with it."""

from dataclasses import dataclass, field, replace

from ..optim.growing import SoFar
from ..optim.run import LiveRun
from .readers import FinishedRun


@dataclass
class BegunRun:
    """A run, what it is of, and what it carries beside.

    Attributes
    ----------
    data : TrainingData
    folds : list of (ndarray of int, ndarray of int)
    seed : int
        Draws batches, and whatever else belongs to the run.
    plan : list of Phase
        All that the parameters ask for.
    live : LiveRun
    carried : LabelsAndFolds or None
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
    rows : ArrayRows or SummarisedRows or None
        And the rows it is of.
    """

    data: object
    folds: list
    seed: int
    plan: list
    live: LiveRun
    carried: object = None
    trajectory: object = None
    best: int | None = None
    known: dict = field(default_factory=dict)
    so_far: SoFar | None = None
    settings: dict | None = None
    rows: object = None

    def was_passed(self, passed, settings):
        """Whether it is the run of these settings and of the very same objects."""
        if self.rows is None or settings != self.settings:
            return False
        return self.rows.were_passed(passed)

    def is_of(self, rows, settings):
        """Whether it is the run of these rows and settings."""
        return settings == self.settings and self.rows.is_same_as(rows)

    def with_plan_of(self, n_updates):
        """The same run, with so many updates at every strength."""
        plan = [replace(phase, n_updates=n_updates) for phase in self.plan]
        return replace(self, plan=plan)

    def warn(self, estimator, run):
        """What a user should know of the run."""
        estimator._warn_of(run)

    def finished(self, estimator):
        """What estimates are read from."""
        return FinishedRun(
            estimator,
            self.trajectory,
            self.data,
            self.folds,
            self.carried,
            self.best,
            self.known,
            self.so_far or SoFar(),
        )
