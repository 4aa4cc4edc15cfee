"""What models, losses and runs must be, in one sentence each."""

import numpy as np

# Predictions of a row alone, and among others, agree up to rounding.
AGREES = 1e-3


def check_data(X, y):
    """Raise where arrays have numbers that are none, or differ in length.

    Parameters
    ----------
    X : list of ndarray
        All arrays of it; their first axis are the rows.
    y : ndarray

    Raises
    ------
    ValueError
    """
    for name, array in [*(("X", part) for part in X), ("y", y)]:
        if array.ndim == 0 or len(array) != len(y):
            raise ValueError(
                f"{name} must have the {len(y)} rows of y as its first axis, got shape "
                f"{array.shape}."
            )
        if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
            raise ValueError(f"{name} has entries that are NaN or infinite.")


def check_parameters(kinds):
    """Raise where a parameter is no array of floating-point numbers.

    Parameters
    ----------
    kinds : dict of str to str
        The types of all parameters, by their names.

    Raises
    ------
    ValueError
    """
    others = [name for name, kind in kinds.items() if "float" not in kind]
    if others or not kinds:
        said = f"{others[0]} is {kinds[others[0]]}" if others else "there are none"
        raise ValueError(f"Parameters must be floating-point numbers, but {said}.")


def check_loss(shape, n_rows, prediction_shape):
    """Raise where a loss does not give one number a row.

    Parameters
    ----------
    shape : tuple
        Shape of its output.
    n_rows : int
    prediction_shape : tuple

    Raises
    ------
    ValueError
    """
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


def check_rows_are_independent(alone, among):
    """Raise where what a model predicts for rows depends on the others.

    Parameters
    ----------
    alone, among : ndarray
        Predictions of some rows alone, and the same of all rows.

    Raises
    ------
    ValueError
    """
    size = np.abs(among).max(initial=0)
    if not np.abs(alone - among).max(initial=0) <= AGREES * size:
        raise ValueError(
            "What the model predicts for a row depends on the other rows, or on chance "
            "(batch normalisation, dropout): rows cannot be left out of it."
        )


def check_finite(train_path):
    """Raise where the run has diverged.

    Parameters
    ----------
    train_path : ndarray of shape (n_steps + 1,)

    Raises
    ------
    ValueError
    """
    finite = np.isfinite(train_path)
    if not finite.all():
        raise ValueError(
            f"The training loss is not finite from iterate {finite.argmin()} on: take "
            "smaller steps, fewer of them, or a loss that overflows later."
        )


def check_iterate(t, n_steps):
    """Raise where a run has no such iterate.

    Parameters
    ----------
    t : int
    n_steps : int

    Raises
    ------
    ValueError
    """
    if not -n_steps - 1 <= t <= n_steps:
        raise ValueError(f"t must be in [{-n_steps - 1}, {n_steps}], got {t}.")
