"""Linear models fitted to Dask collections: a run whose rows are on workers."""

from dataclasses import dataclass

import numpy as np
from dask.base import tokenize

from .._estimator.begun import BegunRun
from .._estimator.conditioning import warn_of_uneven_columns
from .._estimator.left_out import check_loo
from .._estimator.parameters import plain
from .._estimator.readers import ESTIMATES, FinishedRun
from ..optim.updates import ProximalGradient
from ..risk.averages import mean_with_error
from .data import data_of
from .left_out import read_rows
from .memory_matrix import read_risk
from .run import FoldsBeside, RunOnWorkers


def begun(estimator, X, y, sample_weight, params, resume, n_updates=None):
    """A run of rows on workers: at its start, or where the last fit has ended.

    Parameters
    ----------
    estimator : TrajectoryModel
    X, y, sample_weight
        As :class:`~skacv.dask.rows.RowGroups` takes them.
    params : dict
        What else ``fit`` was passed.
    resume : bool
    n_updates : int or None

    Returns
    -------
    BegunOnWorkers

    Raises
    ------
    ValueError
        If more is asked for than can be read from such a run.
    """
    check_asked(estimator, params)
    token = tokenize(X, y, sample_weight)
    if resume and isinstance(estimator._live, BegunOnWorkers):
        if estimator._live.is_of_token(token, estimator._settings()):
            return estimator._live.with_plan_of(estimator.max_iter)
    _check_start(estimator, resume)
    seed = estimator._batch_seed(resume)
    data = data_of(estimator, X, y, sample_weight)
    check_loo(estimator.loo, data.n_samples)
    problem = data.problem
    start = np.zeros((1, *problem.target.shape), problem.design.dtype)
    plan = estimator._plan(data, seed)
    live = RunOnWorkers(
        problem,
        plan,
        start,
        tol=estimator._run_tol,
        carried=FoldsBeside(data.fits),
    )
    found = BegunOnWorkers(data, [], seed, plan, live)
    if estimator._keeps_run(resume, n_updates):
        found.settings, found.rows = estimator._settings(), token
    return found


@dataclass
class BegunOnWorkers(BegunRun):
    """A run of rows on workers; ``rows`` is a token of the collections."""

    def is_of(self, rows, settings):
        """Whether it is the run of these rows: never of any in memory."""
        return False

    was_passed = is_of

    def is_of_token(self, token, settings):
        """Whether it is the run of these collections and settings."""
        return settings == self.settings and token == self.rows

    def finished(self, estimator):
        """What estimates are read from; those that are left to us are off."""
        known = {name: {} for name in ESTIMATES}
        values = self.live.carried.values[: len(self.trajectory.coef)]
        costs = self.data.problem.as_costs(values)
        if len(self.data.fold_weights):
            known["cv"] = _folds_read(costs[:, 1:], self.data.fold_weights)
        if plain(estimator.loo) not in (False, "auto"):
            known["loo"] = read_rows(estimator, self.trajectory, self.data)
        if _asks_for_risk(estimator):
            known["risk"] = read_risk(estimator, self.trajectory, self.data)
        return FinishedOnWorkers(
            estimator,
            self.trajectory,
            self.data,
            self.folds,
            known=known,
            values=values[:, 0],
        )

    def warn(self, estimator, run):
        """What a user should know of the run, by a few of its rows."""
        warn_of_uneven_columns(run.data.shown, run.trajectory, run.data.has_constant)


@dataclass(frozen=True)
class FinishedOnWorkers(FinishedRun):
    """What estimates are read from.

    Attributes
    ----------
    values : ndarray of shape (n_iter + 1,)
        Loss of every iterate on the training rows.
    """

    values: np.ndarray = None


def _folds_read(costs, weights):
    """Fitted attributes of cross-validation.

    Parameters
    ----------
    costs : ndarray of shape (n_iterates, n_folds)
        Over the rows of every fold, times weights whose sum over all rows is one.
    weights : ndarray of shape (n_folds,)
        Weights of the folds.
    """
    by_fold = costs / weights
    path, se_path = mean_with_error(by_fold, weights)
    return {"cv_path_": path, "cv_se_path_": se_path, "cv_fold_path_": by_fold}


# ------------------------------------------------------------------- refusals


def check_asked(estimator, params):
    """Raise where more is asked for than a run of rows on workers gives.

    Parameters
    ----------
    estimator : TrajectoryModel
    params : dict
        What else ``fit`` was passed.

    Raises
    ------
    ValueError
        One sentence that says what to ask for instead.
    """
    if params:
        raise ValueError(
            f"fit passes {', '.join(params)} on to cv, which Dask input does not take: "
            "give cv a number of folds."
        )
    # Two rows suffice: the kind of update does not depend on their number.
    update = estimator._planned_update(2)
    if type(update) is not ProximalGradient or update.preconditioner is not None:
        raise ValueError(
            "Dask input is run by gradient steps on all rows at a time: take a solver, "
            "or schedule, without batches, Hessian or preconditioner, such as gradient "
            "descent or Nesterov's acceleration."
        )
    if estimator._keeps_data:
        raise ValueError(
            "keep_data=True keeps X and y in memory, where Dask input may not fit: set "
            "keep_data=False."
        )
    for estimate in ESTIMATES.values():
        setting = plain(estimate.setting(estimator))
        if estimate.name == "loo" and setting is True:
            raise ValueError(
                "loo=True leaves out every row, a refit each: for Dask input say how "
                "many rows to leave out, such as loo=100, or judge by folds: cv=5."
            )
        if estimate.name == "risk" and estimator._is_quadratic:
            continue
        if estimate.name not in ("cv", "loo") and setting not in (False, None, "auto"):
            asked = f"{estimate.parameter}={setting!r}"
            raise ValueError(
                f"{asked} needs single rows, which stay on their workers with Dask "
                f"input: set {estimate.parameter}=False, and cv=5 to judge iterates by "
                "folds."
            )


def _asks_for_risk(estimator):
    """Whether the memory matrix is asked for in so many words."""
    risk = plain(ESTIMATES["risk"].setting(estimator))
    return risk not in (False, None, "auto")


def _check_start(estimator, resume):
    """Raise where a recorded run would have to go on."""
    if resume and hasattr(estimator, "coef_path_"):
        raise ValueError(
            "A recorded run cannot go on with Dask input: set warm_start=False, or run "
            "it in stages by fit_up_to on the same collections."
        )
