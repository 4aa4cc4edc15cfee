"""Weights and groups of coefficients as users pass them, and what the engine takes."""

from numbers import Integral

import numpy as np

from ..optim.families import Weighted


def weighted(penalty, weights, n_features):
    """A uniform penalty with the weights of ``penalty_weights``, if there are any.

    Parameters
    ----------
    weights : array-like of shape (n_features,) or None

    Returns
    -------
    Uniform or Weighted

    Raises
    ------
    ValueError
        If the weights are not as many finite numbers, none of them negative.
    """
    if weights is None:
        return penalty
    weights = checked_weights(weights, n_features, "penalty_weights", "features")
    return Weighted(penalty, weights)


def checked_weights(weights, n_weights, name, counted):
    """Weights as an array of so many finite numbers, none of them negative."""
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (n_weights,):
        raise ValueError(
            f"{name} must have shape ({n_weights},), one weight for each of the "
            f"{counted}, got {weights.shape}."
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"{name} must be finite and not negative.")
    return weights


def numbered_groups(groups, n_features):
    """The group of every feature, numbered from 0.

    Shapes: returned (n_features,).

    Parameters
    ----------
    groups : int, array-like of shape (n_features,) or list of array-like of int
        As :class:`TrajectoryGroupLasso` takes them.

    Raises
    ------
    ValueError
        If there is not one label for every feature, or a feature is not in exactly
        one of the lists.
    """
    if isinstance(groups, Integral):
        return np.arange(n_features) // groups
    if all(np.ndim(group) == 1 for group in groups):
        return _numbered_lists(groups, n_features)
    labels = np.asarray(groups)
    if labels.shape != (n_features,):
        raise ValueError(
            f"groups must have a label for each of the {n_features} features, got an "
            f"array of shape {labels.shape}."
        )
    return np.unique(labels, return_inverse=True)[1]


def _numbered_lists(groups, n_features):
    members = [np.asarray(group) for group in groups]
    if not all(len(own) and np.issubdtype(own.dtype, np.integer) for own in members):
        raise ValueError("Every list in groups must have indices of features in it.")
    listed = np.concatenate([*members, np.empty(0, int)])
    if not np.array_equal(np.sort(listed), np.arange(n_features)):
        raise ValueError(
            f"groups as lists must have each of the features 0 to {n_features - 1} in "
            "exactly one of them."
        )
    numbers = np.empty(n_features, dtype=int)
    for number, own in enumerate(members):
        numbers[own] = number
    return numbers
