"""Averages of losses, with their standard errors."""

import numpy as np

from ..optim.matrix import slices

# How many deviations from a mean are in memory at a time.
ENTRIES = 2**16


def mean_with_error(losses, weights):
    """Weighted mean of every iterate's losses, and its standard error.

    Parameters
    ----------
    losses : ndarray of shape (n_iterates, n_losses)
    weights : ndarray of shape (n_losses,)
        Losses with weight zero are ignored.

    Returns
    -------
    mean, standard_error : ndarray of shape (n_iterates,)
    """
    weights = weights / weights.sum()
    # Not by BLAS: it rounds as the number of iterates has it.
    mean = np.einsum("ti,i->t", losses, weights)
    n_losses = np.count_nonzero(weights)
    variance = np.empty_like(mean)
    # From the deviations: a difference of squares loses digits if losses are nearly
    # equal.
    for some in slices(len(losses), 1 + ENTRIES // (1 + len(weights))):
        deviation = np.subtract(losses[some], mean[some, None], order="C")
        variance[some] = np.einsum("ti,ti,i->t", deviation, deviation, weights**2)
    return mean, np.sqrt(variance * n_losses / max(n_losses - 1, 1))
