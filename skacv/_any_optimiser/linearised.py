"""Rows left out by linearising: when that is corrected, and what it requires."""

import numpy as np

from ..risk.left_out.moments import GROWTH, powers

# A matrix of so many parameters squared is made at every update.
MOST_PARAMETERS = 4096
# Curvature below zero, relative to the largest, that is no rounding.
NEGATIVE = 1e-3
# Every block makes that matrix anew, so that blocks are larger than those of exact
# replicas.
BLOCK_BYTES = 1 << 25
# Iterates at which it is looked for.
N_LOOKED_AT = 5


def due_updates(n_steps):
    """At which updates what linearising misses is evaluated, (n_steps,) of bool."""
    numbers = powers(GROWTH, n_steps)
    return np.isin(np.arange(1, n_steps + 1), list(numbers))


def check_size(n_parameters):
    """Raise where there are too many parameters to make a matrix of.

    Parameters
    ----------
    n_parameters : int

    Raises
    ------
    ValueError
    """
    if n_parameters > MOST_PARAMETERS:
        raise ValueError(
            f"method='linearised' makes a matrix of all parameters squared, of which "
            f"there are {n_parameters}, more than {MOST_PARAMETERS}: take "
            "method='exact', or folds."
        )


def looked_at(n_steps):
    """A few iterates, the first and the last among them."""
    return np.unique(np.linspace(0, n_steps, N_LOOKED_AT).astype(int))


def check_convex(hessian):
    """Raise where a mean loss is not convex, as those of networks are not.

    Parameters
    ----------
    hessian : ndarray of shape (n_parameters, n_parameters)

    Raises
    ------
    ValueError
    """
    values = np.linalg.eigvalsh(hessian)
    if values[0] < -NEGATIVE * np.abs(values).max():
        raise ValueError(
            "The mean loss is not convex along this run, and linearising it would "
            "estimate nothing: take method='exact', or folds."
        )


def check_method(method):
    """Raise where a method of leave-one-out has no such name.

    Parameters
    ----------
    method : str

    Raises
    ------
    ValueError
    """
    methods = ("exact", "linearised")
    if method not in methods:
        raise ValueError(f"method must be one of {methods}, got {method!r}.")
