"""Checks of models, losses and data."""

import numpy as np

from .._compat import check_in_memory
from .data import checked_batches

# Predictions of a row alone, and among others, agree up to rounding.
AGREES = 1e-3


def checked(model, params, X, y, batches=None):
    """The data of a run from ``params``, once they and the model are what they must be.

    X, y and batches are as a user has passed them.
    """
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
    others = [name for name, kind in kinds.items() if "float" not in str(kind)]
    if others or not kinds:
        said = f"{others[0]} is {kinds[others[0]]}" if others else "there are none"
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


def _check_rows_are_independent(alone, among):
    """Predictions of some rows alone, and the same of all rows."""
    size = np.abs(among).max(initial=0)
    if not np.abs(alone - among).max(initial=0) <= AGREES * size:
        raise ValueError(
            "What the model predicts for a row depends on the other rows, or on chance "
            "(batch normalisation, dropout): rows cannot be left out of it."
        )
