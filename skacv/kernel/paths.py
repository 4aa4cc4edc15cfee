"""From what was recorded to fitted attributes."""

import numpy as np

from .._estimator.left_out import fold_paths
from ..risk.averages import mean_with_error


def fitted_paths(machine, recorder, samples, is_flat):
    """Everything that a run says, as fitted attributes.

    Parameters
    ----------
    machine : Machine
    recorder : Recorder
    samples : Samples
    is_flat : bool
        Whether coefficients have no axis for outputs.

    Returns
    -------
    dict
    """
    schedule = machine.schedule
    stored = sorted(recorder.dual_coef)
    path = np.stack([recorder.dual_coef[t] for t in stored])
    path = shaped_dual_coef(path, machine, is_flat)
    attributes = {
        "dual_coef_": path[-1].copy(),
        "dual_coef_path_": path,
        "stored_iterations_": np.array(stored),
        "train_path_": np.array(recorder.train),
        "rkhs_norm_path_": np.sqrt(np.maximum(recorder.squared_norm, 0)),
        "n_iter_": recorder.n_epochs,
        "iteration_": recorder.n_epochs,
        "n_components_": len(machine.preconditioner.damping),
        "subsample_indices_": np.sort(machine.order[machine.preconditioner.rows]),
        "batch_indices_": [machine.order[batch] for batch in schedule.batches],
        "batch_size_": schedule.batch_size,
        "critical_batch_size_": schedule.critical_batch_size,
        "step_size_": schedule.step_size,
        "top_eigenvalue_": schedule.top_eigenvalue,
    }
    attributes.update(_left_out_paths(machine, recorder, samples))
    attributes.update(_fold_paths(machine, recorder, samples))
    return attributes


def shaped_dual_coef(dual_coef, machine, is_flat):
    """Coefficients (..., n_rows, n_outputs) in the order of the training rows."""
    dual_coef = dual_coef[..., machine.place, :]
    return dual_coef[..., 0] if is_flat else dual_coef


def _left_out_paths(machine, recorder, samples):
    """Leave-one-out, row by row in the order of the training rows."""
    plan = recorder.plan
    if not len(plan.left_out):
        return {}
    attributes, bias = {}, 0.0
    if recorder.leave_one_out is None:
        singles = recorder.replicas[plan.n_folds :]
        residuals = np.concatenate([np.stack(path) for path in singles], axis=1)
    else:
        residuals, bias = np.stack(recorder.loo), np.array(recorder.loo_bias)
        attributes["loo_mc_se_path_"] = np.array(recorder.loo_mc_se)
        attributes["df_path_"] = np.array(recorder.degrees_of_freedom)
    rows = machine.order[plan.left_out]
    order = np.argsort(rows)
    residuals = residuals[:, order]
    costs = np.mean(residuals**2, axis=2, dtype=np.float64)
    path, se_path = mean_with_error(costs, np.ones(len(rows)))
    predictions = residuals + plan.target[plan.left_out[order]]
    return {
        **attributes,
        "loo_path_": path - bias,
        "loo_se_path_": se_path,
        "loo_prediction_path_": _flattened(predictions, samples),
        "loo_indices_": samples.rows[rows[order]],
        "loo_target_": samples.y[rows[order]],
    }


def _fold_paths(machine, recorder, samples):
    """Cross-validation, fold after fold."""
    plan = recorder.plan
    if not plan.n_folds:
        return {}
    folds = list(zip(plan.replicas, recorder.replicas))[: plan.n_folds]
    judged = [rows for (_, rows), _ in folds]
    residuals = [np.stack(path) for _, path in folds]
    costs = [np.mean(r**2, axis=2) for r in residuals]
    paths = [mean_with_error(cost, np.ones(cost.shape[1])) for cost in costs]
    predictions = [r + plan.target[rows] for r, rows in zip(residuals, judged)]
    return {
        **fold_paths(paths, [len(rows) for rows in judged]),
        "cv_prediction_path_": _flattened(np.concatenate(predictions, axis=1), samples),
        "cv_indices_": [samples.rows[machine.order[rows]] for rows in judged],
    }


def _flattened(predictions, samples):
    """Without an axis of outputs where the targets have none."""
    if samples.y.ndim == 1 and predictions.shape[2] == 1:
        return predictions[:, :, 0]
    return predictions
