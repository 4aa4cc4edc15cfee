"""Single rows to leave out, the resulting fitted attributes, and held-out residuals."""

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from ...optim.blocks import blocks
from ...optim.trajectory import Trajectory, phases_up_to
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
    if estimator._leaves_one_out_cheaply(X, y):
        return "auto"
    return True if n_rows <= ROWS_TO_CHOOSE_BY else ROWS_TO_CHOOSE_BY


def read_leave_one_out(run):
    """Fitted attributes of leave-one-out."""
    if run.side_runs is not None and run.side_runs.left_out is not None:
        return read_labels(run)
    estimator, trajectory, data = run.estimator, run.trajectory, run.data
    problem, spec = data.problem, estimator._spec()
    n_rows, loo = problem.n_single, to_python_scalar(estimator.loo)
    n_left_out = n_rows if loo is True else loo
    rows = np.setdiff1d(np.arange(n_rows), trajectory.rows_seen())
    if loo == "auto":
        if n_rows < FEWEST_ROWS:
            return {}
        n_active = int(np.count_nonzero(trajectory.coef, axis=1).max())
        kind = RunCost.recorded(problem, trajectory, spec.corrects_loo)
        n_left_out = n_rows_worth(kind, n_active)
        if not n_left_out:
            return {}
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
        attributes = _attributes(run, rows, predictors)
    if not np.isfinite(attributes["loo_prediction_path_"][-1]).all():
        raise ValueError(
            "The iterates without some row diverge, though those on all rows do not: "
            "use a smaller step_size."
        )
    return attributes


def _attributes(run, rows, predictors):
    """Fitted attributes of rows left out, in the order of the samples.

    Predictions overwrite the predictors, which may be the largest array of a fit.
    """
    data = run.data
    path, se_path = mean_losses(predictors, rows, data.problem)
    predictions = data.predictions(run.estimator)(predictors)
    order = np.argsort(data.rows[rows])
    if (np.diff(order) != 1).any():
        rows, predictions = rows[order], predictions[:, order]
    return {
        "loo_path_": path,
        "loo_se_path_": se_path,
        "loo_prediction_path_": predictions,
        "loo_indices_": data.rows[rows],
        "loo_target_": data.y[rows],
    }


def read_labels(run):
    """Fitted attributes of leave-one-out by labels that the run has carried."""
    by_labels, rows = run.side_runs.left_out, run.side_runs.rows
    n_iterates, target = len(run.trajectory.coef), run.data.problem.target[rows]
    predictors = np.stack(by_labels.residuals[:n_iterates]) + target
    attributes = _attributes(run, rows, predictors)
    attributes["loo_path_"] -= by_labels.bias[:n_iterates]
    return {
        **attributes,
        "loo_mc_se_path_": np.array(by_labels.mc_se[:n_iterates]),
        "df_path_": np.array(by_labels.degrees_of_freedom[:n_iterates]),
    }


def held_out_residuals(name, estimator, t):
    """Targets less held-out predictions of an estimate, at iterate t.

    Shapes: returned (n_held_out,) or (n_held_out, n_targets).
    """
    targets = held_out_targets(name, estimator)
    return targets - getattr(estimator, f"{name}_prediction_path_")[t]


def held_out_targets(name, estimator):
    """Targets of the held-out rows of an estimate."""
    if not hasattr(estimator, f"{name}_target_"):
        raise ValueError(
            "Fits to rows on workers do not keep the predictions for rows in folds: "
            "for intervals and prediction sets set loo to a number of rows, such as "
            "loo=100."
        )
    return getattr(estimator, f"{name}_target_")


def held_out_rows(estimator, estimate):
    """HeldOutResiduals of an estimate, for intervals of the iterate in use."""
    t = estimator.iteration_
    residuals = estimate.residuals(estimator, t)
    path = getattr(estimator, estimate.predictions, None)
    predictions = None if path is None else path[t]
    if predictions is not None:
        residuals = residuals / estimator._loss.spread(predictions)
    units = units_held_out(estimator, estimate)
    return HeldOutResiduals(residuals, predictions, units)


def held_out_scores(estimator, estimate):
    """HeldOutScores of an estimate, for prediction sets of the iterate in use."""
    t = estimator.iteration_
    targets = held_out_targets(estimate.name, estimator)
    predictions = getattr(estimator, estimate.predictions)[t]
    probabilities = estimator._held_out_estimator(predictions, t).predict_proba(None)
    labels = np.searchsorted(estimator.classes_, targets)
    units = units_held_out(estimator, estimate)
    return HeldOutScores.of(probabilities, labels, units)


def units_held_out(estimator, estimate):
    """The unit of every held-out row: its group, or its row; None if all differ.

    Shapes: returned (n_held_out,).
    """
    indices = getattr(estimator, estimate.indices, None)
    if indices is None:
        return None
    rows, groups = np.hstack(indices), estimator._groups
    if groups is None and not have_repeats(rows):
        return None
    units = units_of(rows, groups)
    return units if units.max() + 1 < len(units) else None


def kept_run(estimator, n_updates):
    """The beginning of a fitted estimator's run, from the data that it has kept."""
    data = estimator._data
    return Trajectory.recorded(
        data.problem,
        data.iterates(
            estimator.coef_path_[: n_updates + 1],
            estimator.intercept_path_[: n_updates + 1],
        ),
        data.phases(phases_up_to(estimator._phases, n_updates)),
    )


def coefficients_without_rows(estimator):
    """The iterate in use without each held-out row, target by target.

    Shapes: coef (n_left_out, n_features); intercept (n_left_out,).
    """
    data, spec = estimator._data, estimator._spec()
    rows = data.rows_of_samples(estimator.loo_indices_)
    trajectory = kept_run(estimator, estimator.iteration_)
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
        losses = losses_of(problem.loss, target, predictors[iterates])
        path[:, iterates] = mean_with_error(losses, weights, units)
    return path
