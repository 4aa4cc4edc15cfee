"""Checks of models, losses and data."""

import numpy as np

from .._compat import check_in_memory
from .._estimator.data.checks import validate_weights
from .data import check_batches


def check_run(model, params, X, y, batches=None, sample_weight=None):
    """The data of a run, after checks of the parameters, the data and the model.

    Returned are the RunRows, and the weights of the rows in double precision.
    """
    dtypes = {
        name: array.dtype
        for name, array in model.arrays_by_name("params", params).items()
    }
    not_floats = [name for name, dtype in dtypes.items() if "float" not in str(dtype)]
    if not_floats or not dtypes:
        reason = "there are none"
        if not_floats:
            reason = f"{not_floats[0]} is {dtypes[not_floats[0]]}"
        raise ValueError(f"Parameters must be floating-point numbers, but {reason}.")

    check_in_memory(X, y)
    X, y = model.arrays(params, X, y)
    n_rows = len(y)
    for name, array in {**model.arrays_by_name("X", X), "y": y}.items():
        array = model.to_numpy(array)
        if array.ndim == 0 or len(array) != n_rows:
            raise ValueError(
                f"{name} must have {n_rows} rows, as y does, got shape {array.shape}."
            )
        if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
            raise ValueError(f"{name} has entries that are NaN or infinite.")
    batches = check_batches(batches, n_rows)
    row_weights = validate_weights(sample_weight, n_rows)
    if not row_weights.any():
        raise ValueError("sample_weight is zero on all rows.")

    prediction = model.predict(params, X)
    shape = np.shape(model.loss(y, prediction))
    if tuple(shape) != (n_rows,):
        advice = f"predictions have shape {tuple(prediction.shape)}"
        if shape == ():
            advice = "do not average over rows (reduction='none' in torch)"
        raise ValueError(
            "loss(y, prediction) must return one number per row, of shape "
            f"({n_rows},), got shape {tuple(shape)}: {advice}."
        )

    # The first half of the rows alone must have the predictions of all rows.
    half = n_rows - n_rows // 2
    half_prediction = model.to_numpy(
        model.predict(params, model.rows_of(X, np.arange(half)))
    )
    first_half = model.to_numpy(prediction[:half])
    difference = np.abs(half_prediction - first_half).max(initial=0)
    if not difference <= 1e-3 * np.abs(first_half).max(initial=0):
        raise ValueError(
            "Predictions for a row depend on other rows or on chance (batch "
            "normalisation, dropout), so rows cannot be left out. Use weight decay "
            "instead of dropout, and LayerNorm instead of batch normalisation, or "
            "freeze both (eval() in torch)."
        )
    data = model.data(X, y, batches)
    weights = model.weights(params, data, row_weights / row_weights.sum())
    return data._replace(weights=weights), row_weights
