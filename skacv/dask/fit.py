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
from .estimates import read_folds, read_risk, read_rows
from .run import FoldsBeside, RunOnWorkers


class FitRunOnWorkers(FitRun):
    """A run of rows on workers."""

    live_type = RunOnWorkers

    def beside(self, estimator):
        """The folds that run side by side."""
        return FoldsBeside(self.data.fits)

    def finished(self, estimator):
        """The run from which estimates are computed; automatic ones are off."""
        values = self.side_runs.values[: len(self.trajectory.coef)]
        losses = self.data.problem.reported_losses(values)
        self.so_far = self.so_far or PathCache()
        self.so_far.first("train", len(values), lambda iterates: values[iterates, 0])
        self.known = {name: {} for name in ESTIMATES}
        if len(self.data.fold_weights):
            self.known["cv"] = read_folds(losses[:, 1:], self.data.fold_weights)
        if _is_asked("loo", estimator):
            self.known["loo"] = read_rows(estimator, self.trajectory, self.data)
        if _is_asked("risk", estimator):
            self.known["risk"] = read_risk(estimator, self.trajectory, self.data)
        return super().finished(estimator)

    def warn(self, finished):
        """Warn about the run, from a few of its rows."""
        data = self.data
        warn_of_uneven_columns(data.observed, finished.trajectory, data.has_constant)


@dataclass(frozen=True, eq=False)
class RowsOnWorkers(RowsToFit):
    """Rows of Dask collections, for a fit.

    Parameters
    ----------
    passed : tuple
        X, y and sample_weight, as :class:`~skacv.dask.rows.RowGroups` takes them.
    token : str
        The same for the same collections.
    """

    run_type = FitRunOnWorkers

    passed: tuple
    token: str

    @classmethod
    def of(cls, *passed):
        return cls(passed, tokenize(*passed))

    def is_same_as(self, other):
        """Whether another fit has the same rows."""
        return isinstance(other, RowsOnWorkers) and other.token == self.token

    def problem(self, estimator, params, seed, resume):
        """The problem of these rows, with its folds side by side, and no groups.

        Raises
        ------
        ValueError
            If parameters ask for more than such a run provides.
        """
        check_asked(estimator, params)
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


def check_asked(estimator, params):
    """Raise if parameters ask for more than a run on workers provides.

    Parameters
    ----------
    params : dict
        What else ``fit`` was passed.

    Raises
    ------
    ValueError
        The message says what to use instead.
    """
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
        if name not in available and _is_asked(name, estimator):
            asked = f"{estimate.parameter}={estimate.setting(estimator)!r}"
            raise ValueError(
                f"{asked} needs single rows, which stay on their workers with Dask "
                f"input: set {estimate.parameter}=False, and cv=5 to evaluate iterates "
                "on folds."
            )


def _is_asked(name, estimator):
    """Whether parameters ask for an estimate explicitly."""
    return ESTIMATES[name].setting(estimator) not in (False, None, "auto")
