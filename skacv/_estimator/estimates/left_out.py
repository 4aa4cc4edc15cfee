"""Single rows to leave out, the resulting estimate, and held-out residuals."""

from dataclasses import replace

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from ...optim.blocks import blocks
from ...optim.trajectory import Trajectory, phases_up_to
from ...records.held_out import HeldOut
from ...risk.cost import RunCost, n_rows_worth
from ...risk.held_out_rows import (
    HeldOutResiduals,
    have_repeats,
    losses_of,
    mean_with_error,
    units_of,
)
from ...risk.left_out.methods import (
    LeaveOneOutTask,
    coefficients_without,
    leave_one_out,
)
from ...risk.prediction_sets import HeldOutScores
from ..parameters import to_python_scalar
from .held_out_predictor import HeldOutPredictor
from .terms import terms_of

# Leave-one-out needs so many rows: a run is fitted to two or more.
FEWEST_ROWS = 3
# The most rows that loo="auto" leaves out where leave-one-out is the criterion: an
# error of some percent does not change the choice.
ROWS_TO_CHOOSE_BY = 500


def check_loo(loo, n_rows):
    """Raise if ``loo`` asks for more rows than there are."""
    loo = to_python_scalar(loo)
    if loo is True and n_rows < FEWEST_ROWS:
        raise ValueError(f"loo=True needs at least {FEWEST_ROWS} rows, got {n_rows}.")
    if loo not in (True, False, "auto") and loo > n_rows:
        raise ValueError(
            f"loo={loo} is more than the {n_rows} rows (of positive weight) that "
            "there are."
        )


def rows_to_choose_by(estimator, X, y, n_rows):
    """The value that replaces ``loo="auto"`` if leave-one-out is the criterion."""
    if terms_of(estimator).leaves_one_out_cheaply(X, y):
        return "auto"
    return True if n_rows <= ROWS_TO_CHOOSE_BY else ROWS_TO_CHOOSE_BY


def read_leave_one_out(run):
    """The leave-one-out estimate; None if "auto" has none."""
    if run.side_runs is not None and run.side_runs.left_out is not None:
        return read_labels(run)
    estimator, trajectory, data = run.estimator, run.trajectory, run.data
    problem, spec = data.problem, estimator._spec()
    n_rows, loo = problem.n_single, to_python_scalar(estimator.loo)
    n_left_out = n_rows if loo is True else loo
    rows = np.setdiff1d(np.arange(n_rows), trajectory.rows_seen())
    if loo == "auto":
        if n_rows < FEWEST_ROWS:
            return None
        n_active = int(np.count_nonzero(trajectory.coef, axis=1).max())
        kind = RunCost.recorded(problem, trajectory, spec.corrects_loo)
        n_left_out = n_rows_worth(kind, n_active)
        if not n_left_out:
            return None
    if n_left_out < len(rows):
        rng = check_random_state(estimator.random_state)
        rows = np.sort(rng.choice(rows, n_left_out, replace=False))
    with np.errstate(over="ignore", invalid="ignore"):
        predictors = leave_one_out(
            problem,
            trajectory,
            rows,
            rule=spec.refit(data),
            correction=spec.corrects_loo,
            **parallel_blocks(estimator.n_jobs),
        )
        estimate = _estimate_of(run, rows, predictors)
    if not np.isfinite(estimate.prediction[-1]).all():
        raise ValueError(
            "The iterates without some row diverge, though those on all rows do not: "
            "use a smaller step_size."
        )
    return estimate


def _estimate_of(run, rows, predictors):
    """The estimate from rows left out, in the order of the samples.

    Predictions overwrite the predictors, which may be the largest array of a fit.
    """
    data = run.data
    path, se_path = mean_losses(predictors, rows, data.problem)
    predictions = data.predictions(run.estimator)(predictors)
    order = np.argsort(data.rows[rows])
    if (np.diff(order) != 1).any():
        rows, predictions = rows[order], predictions[:, order]
    return HeldOut(path, se_path, data.rows[rows], data.y[rows], predictions)


def read_labels(run):
    """The leave-one-out estimate by labels that the run has carried."""
    by_labels, rows = run.side_runs.left_out, run.side_runs.rows
    n_iterates, target = len(run.trajectory.coef), run.data.problem.target[rows]
    predictors = np.stack(by_labels.residuals[:n_iterates]) + target
    estimate = _estimate_of(run, rows, predictors)
    more = {
        "mc_se_path": np.array(by_labels.mc_se[:n_iterates]),
        "df_path": np.array(by_labels.degrees_of_freedom[:n_iterates]),
    }
    return replace(
        estimate, path=estimate.path - by_labels.bias[:n_iterates], more=more
    )


def held_out_rows(fitted, held_out):
    """HeldOutResiduals of an estimate, for intervals of the iterate in use.

    ``held_out`` is on the scale of y.
    """
    t = fitted.iteration_
    residuals, predictions = held_out.residuals(t), held_out.prediction[t]
    residuals = residuals / fitted._loss.spread(predictions)
    units = units_held_out(held_out, fitted.record_.groups)
    return HeldOutResiduals(residuals, predictions, units)


def held_out_scores(fitted, held_out):
    """HeldOutScores of an estimate, for prediction sets of the iterate in use."""
    t = fitted.iteration_
    targets, predictions = held_out.known_target(), held_out.prediction[t]
    predictor = HeldOutPredictor.from_model(fitted, predictions, t)
    labels = np.searchsorted(fitted.classes_, targets)
    units = units_held_out(held_out, fitted.record_.groups)
    return HeldOutScores.of(predictor.predict_proba(None), labels, units)


def units_held_out(held_out, groups):
    """The unit of every held-out row: its group, or its row; None if all differ.

    Shapes: groups (n_samples,) or None; returned (n_held_out,).
    """
    if held_out.indices is None:
        return None
    rows = np.hstack(held_out.indices)
    if groups is None and not have_repeats(rows):
        return None
    units = units_of(rows, groups)
    return units if units.max() + 1 < len(units) else None


def kept_run(record, n_updates):
    """The beginning of a recorded run, from the data that it has kept."""
    data, iterates = record.data, record.iterates
    coef, intercept = (
        iterates.coef[: n_updates + 1],
        iterates.intercept[: n_updates + 1],
    )
    return Trajectory.recorded(
        data.problem,
        data.iterates(coef, intercept),
        data.phases(phases_up_to(record.phases, n_updates)),
    )


def coefficients_without_rows(estimator):
    """The iterate in use without each held-out row, target by target.

    Shapes: coef (n_left_out, n_features); intercept (n_left_out,).
    """
    record, spec = estimator.record_, estimator._spec()
    data = record.data
    rows = data.rows_of_samples(record["loo"].indices)
    trajectory = kept_run(record, record.iteration)
    settings = {
        "rule": spec.refit(data),
        "correction": spec.corrects_loo,
        **parallel_blocks(estimator.n_jobs),
    }
    task = LeaveOneOutTask.of(data.problem, trajectory, rows, **settings)
    for k, part in enumerate(task.outputs()):
        coef, shift = coefficients_without(part)
        yield data.without_rows(coef, shift, k)


def parallel_blocks(n_jobs):
    """Arguments for blocks of replicas side by side, none with a single job."""
    n_blocks = effective_n_jobs(n_jobs)
    if n_blocks == 1:
        return {}
    return {
        "map": lambda function, parts: Parallel(n_jobs)(map(delayed(function), parts)),
        "n_blocks": n_blocks,
    }


def mean_losses(predictors, rows, problem, units=None):
    """Weighted mean of the losses of the rows, and its standard error over units.

    Shapes: units (n_rows,); returned (2, n_iterates).
    """
    target = problem.target[rows].astype(np.float64)
    weights = problem.row_weights[rows, 0].astype(np.float64)
    path = np.empty((2, len(predictors)))
    # 16 bytes: a loss, and the predictor that it is computed from.
    for iterates in blocks(len(predictors), 16 * target.size):
        losses = losses_of(problem.loss, target, predictors[iterates], weights)
        path[:, iterates] = mean_with_error(losses, weights, units)
    return path
