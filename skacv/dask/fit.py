"""Linear models fitted to Dask collections: a run whose rows are on workers."""

from dataclasses import dataclass, replace

from dask.base import tokenize

from .._estimator.estimates.left_out import check_loo
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.parameters import to_python_scalar
from .._estimator.run.slow_runs import warn_of_uneven_columns
from .._estimator.run.source import Source
from ..optim.updates import ProximalGradient
from .data import data_of
from .estimates import estimates_of, is_requested
from .run import FoldRuns, RunOnWorkers


@dataclass(eq=False)
class DaskSource(Source):
    """Collections, for a fit whose rows stay on workers."""

    live_type = RunOnWorkers

    def validate(self, model, spec):
        """Identify the collections: equal ones have the same token."""
        self.token = tokenize(self.X, self.y, self.sample_weight)

    def problem(self, model, task, params):
        """The problem of these rows, with its folds side by side, and no groups."""
        check_settings(model, task.spec, params)
        if task.recorded is not None:
            raise ValueError(
                "A recorded run cannot be continued with Dask input: set "
                "warm_start=False, or keep the run that begin() returns and let that "
                "go on."
            )
        data = data_of(model, task.spec, self.X, self.y, self.sample_weight)
        check_loo(model.loo, data.n_samples)
        return data, [], None

    def side_runs(self, data):
        """The folds, which share every round of the run."""
        return FoldRuns(data.fits)

    def finish(self, finished):
        """The run from which estimates are computed; automatic ones are off."""
        data, trajectory = finished.data, finished.trajectory
        values = finished.side_runs.values[: len(trajectory.coef)]
        for column, name in enumerate(("train", "judged")):
            finished.so_far.first(
                name, len(values), lambda part, k=column: (values[part, k],)
            )
        computed = estimates_of(
            finished.estimator, finished.spec, trajectory, data, values
        )
        return replace(finished, computed=computed)

    def warn(self, model, finished):
        """Warn about uneven columns, from a few of the rows."""
        data = finished.data
        warn_of_uneven_columns(data.observed, finished.trajectory, data.has_constant)


# ------------------------------------------------------------------- refusals


def check_settings(estimator, spec, params):
    """Raise if a run on workers lacks data that parameters, or ``params``, need."""
    if params:
        raise ValueError(
            f"fit passes {', '.join(params)} to cv, which Dask input does not "
            "support: set cv to a number of folds."
        )
    # Two rows suffice: the kind of update does not depend on their number.
    update = spec.solver.update(2)
    if type(update) is not ProximalGradient or update.preconditioner is not None:
        raise ValueError(
            "Dask input needs gradient steps on all rows: use a solver, or schedule, "
            "without batches, Hessian or preconditioner, such as gradient descent or "
            "Nesterov's acceleration."
        )
    if estimator.keep_data:
        raise ValueError(
            "keep_data=True keeps X and y in memory, but Dask input may not fit "
            "there: set keep_data=False."
        )
    if to_python_scalar(estimator.loo) is True:
        raise ValueError(
            "loo=True leaves out every row, with a refit for each. For Dask input set "
            "loo to the number of rows to leave out, such as loo=100, or use folds: "
            "cv=5."
        )
    available = {"cv", "loo", "risk"} if spec.is_quadratic else {"cv", "loo"}
    for name, estimate in ESTIMATES.items():
        if name not in available and is_requested(name, estimator):
            setting = f"{estimate.parameter}={estimate.setting(estimator)!r}"
            raise ValueError(
                f"{setting} needs single rows, which stay on their workers with Dask "
                f"input: set {estimate.parameter}=False, and cv=5 to evaluate iterates "
                "on folds."
            )
