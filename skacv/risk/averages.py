"""Averages of costs, with their standard errors."""

import numpy as np


def mean_with_error(costs, weights):
    """Weighted mean of every iterate's costs, and its standard error.

    Parameters
    ----------
    costs : ndarray of shape (n_iterates, n_costs)
    weights : ndarray of shape (n_costs,)
        Where they are zero it is as if the cost were not there.

    Returns
    -------
    mean, standard_error : ndarray of shape (n_iterates,)
    """
    weights = weights / weights.sum()
    # Not by BLAS: it rounds as the number of iterates has it.
    mean = np.einsum("ti,i->t", costs, weights)
    n_costs = np.count_nonzero(weights)
    # Sum of (w (cost - mean))^2 without another array of that size.
    squares = np.einsum("ti,ti,i->t", costs, costs, weights**2)
    cross = np.einsum("ti,i->t", costs, weights**2)
    variance = squares - 2 * mean * cross + mean**2 * (weights @ weights)
    variance = np.clip(variance, 0, None)
    return mean, np.sqrt(variance * n_costs / max(n_costs - 1, 1))
