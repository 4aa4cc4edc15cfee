"""Checks of models, losses and data."""

import numpy as np

from .._compat import check_in_memory
from .data import checked_batches


def checked(model, params, X, y, batches=None):
    """The data of a run, after checks of the parameters, the model and the data."""
    _check_parameters(model.named("params", params))
    check_in_memory(X, y)
    X, y = model.arrays(params, X, y)
    for name, array in {**model.named("X", X), "y": y}.items():
        _check_array(name, model.to_numpy(array), len(y))
    batches = checked_batches(batches, len(y))
    prediction = model.predict(params, X)
    _check_loss(np.shape(model.loss(y, prediction)), prediction.shape, len(y))
    half = len(y) - len(y) // 2
    alone = model.predict(params, model.rows_of(X, np.arange(half)))
    _check_rows_are_independent(*map(model.to_numpy, (alone, prediction[:half])))
    return model.data(X, y, batches)


def _check_parameters(named):
    kinds = {name: array.dtype for name, array in named.items()}
    not_floats = [name for name, kind in kinds.items() if "float" not in str(kind)]
    if not_floats or not kinds:
        said = "there are none"
        if not_floats:
            said = f"{not_floats[0]} is {kinds[not_floats[0]]}"
        raise ValueError(f"Parameters must be floating-point numbers, but {said}.")


def _check_array(name, array, n_rows):
    if array.ndim == 0 or len(array) != n_rows:
        raise ValueError(
            f"{name} must have the {n_rows} rows of y as its first axis, got shape "
            f"{array.shape}."
        )
    if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
        raise ValueError(f"{name} has entries that are NaN or infinite.")


def _check_loss(shape, prediction_shape, n_rows):
    if tuple(shape) == (n_rows,):
        return
    if shape == ():
        advice = "do not average over rows (reduction='none' in torch)"
    else:
        advice = f"predictions have shape {tuple(prediction_shape)}"
    raise ValueError(
        "loss(y, prediction) must give one number a row, of shape "
        f"({n_rows},), got shape {tuple(shape)}: {advice}."
    )


def _check_rows_are_independent(alone, among, rtol=1e-3):
    """Raise unless predictions of some rows alone equal those of all rows."""
    size = np.abs(among).max(initial=0)
    if not np.abs(alone - among).max(initial=0) <= rtol * size:
        raise ValueError(
            "What the model predicts for a row depends on the other rows, or on chance "
            "(batch normalisation, dropout): rows cannot be left out of it."
        )
