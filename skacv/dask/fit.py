"""Linear models fitted to Dask collections: a run whose rows are on workers."""

from dataclasses import dataclass

from dask.base import tokenize

from .._estimator.estimates.left_out import check_loo
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.parameters import keeps_data, to_python_scalar
from .._estimator.run.conditioning import warn_of_uneven_columns
from .._estimator.run.fit_run import FitRun, RowsToFit
from ..optim.array_path import PathCache
from ..optim.updates import ProximalGradient
from .data import data_of
from .estimates import estimates_of, is_requested
from .run import FoldRuns, RunOnWorkers


class FitRunOnWorkers(FitRun):
    """A run of rows on workers."""

    live_type = RunOnWorkers

    def beside(self, estimator):
        """The folds, side by side with the run."""
        return FoldRuns(self.data.fits)

    def finished(self, estimator):
        """The run from which estimates are computed; automatic ones are off."""
        values = self.side_runs.values[: len(self.trajectory.coef)]
        self.so_far = self.so_far or PathCache()
        self.so_far.first("train", len(values), lambda iterates: values[iterates, 0])
        self.known = estimates_of(estimator, self.trajectory, self.data, values)
        return super().finished(estimator)

    def warn(self, finished):
        """Warn about uneven columns, from a few of the rows."""
        data = self.data
        warn_of_uneven_columns(data.observed, finished.trajectory, data.has_constant)


@dataclass(frozen=True, eq=False)
class RowsOnWorkers(RowsToFit):
    """Rows of Dask collections (X, y, sample_weight), with a token that names them."""

    run_type = FitRunOnWorkers

    passed: tuple
    token: str

    @classmethod
    def of(cls, *passed):
        return cls(passed, tokenize(*passed))

    def is_same_as(self, rows):
        """Whether another fit has the same rows."""
        return isinstance(rows, RowsOnWorkers) and rows.token == self.token

    def problem(self, estimator, params, seed, resume):
        """The problem of these rows, with its folds side by side, and no groups."""
        check_supported(estimator, params)
        if resume and hasattr(estimator, "coef_path_"):
            raise ValueError(
                "A recorded run cannot be continued with Dask input: set "
                "warm_start=False, or run it in stages with fit_up_to on the same "
                "collections."
            )
        data = data_of(estimator, *self.passed)
        check_loo(estimator.loo, data.n_samples)
        return data, [], None


# ------------------------------------------------------------------- refusals


def check_supported(estimator, params):
    """Raise if a run on workers lacks what parameters, or ``params`` of fit, need."""
    if params:
        raise ValueError(
            f"fit passes {', '.join(params)} on to cv, which Dask input does not take: "
            "give cv a number of folds."
        )
    # Two rows suffice: the kind of update does not depend on their number.
    spec = estimator._spec()
    update = spec.solver.update(2)
    if type(update) is not ProximalGradient or update.preconditioner is not None:
        raise ValueError(
            "Dask input needs gradient steps on all rows: use a solver, or schedule, "
            "without batches, Hessian or preconditioner, such as gradient descent or "
            "Nesterov's acceleration."
        )
    if keeps_data(estimator):
        raise ValueError(
            "keep_data=True keeps X and y in memory, where Dask input may not fit: set "
            "keep_data=False."
        )
    if to_python_scalar(estimator.loo) is True:
        raise ValueError(
            "loo=True leaves out every row, with a refit for each: for Dask input set "
            "the number of rows to leave out, such as loo=100, or use folds: cv=5."
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
