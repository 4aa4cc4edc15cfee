"""Averages of losses, with their standard errors."""

import numpy as np
from scipy import sparse

from ..optim.blocks import blocks


def units_of(rows, groups=None):
    """Units of held-out rows, (n_held_out,): groups, (n_samples,), or the rows."""
    labels = rows if groups is None else groups[rows]
    _, first, unit = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[unit]


def have_repeats(rows):
    """Whether a row number comes several times in rows, (n_held_out,)."""
    return np.bincount(rows).max(initial=0) > 1


def error_of_repeats(rows, weights):
    """Factor of a standard error over folds that accounts for rows in several folds."""
    # Folds that share rows are not independent: r repetitions of k folds say as much of
    # the loss as the rows do, not r times as much. For a mean of losses in which row i
    # counts c_i times, of which the folds have one each, the variance over independent
    # rows is sum c_i^2 / sum c_i times that over independent folds.
    if not have_repeats(rows):
        return 1.0
    together = np.bincount(rows, weights)
    return float(np.sqrt(np.sum(together**2) / np.sum(weights**2)))


def mean_with_error(losses, weights, units=None):
    """Weighted means of losses (n_iterates, n_losses), and their errors over units."""
    if units is not None and units.max(initial=-1) + 1 < len(units):
        n_losses, together = len(units), np.bincount(units, weights)
        entries = weights / together[units], units, np.arange(n_losses + 1)
        averaging = sparse.csc_array(entries, shape=(len(together), n_losses))
        losses, weights = (averaging @ losses.T).T, together
    weights = weights / weights.sum()
    # Not by BLAS: it rounds as the number of iterates has it.
    mean = np.einsum("ti,i->t", losses, weights)
    n_losses = np.count_nonzero(weights)
    variance = np.empty_like(mean)
    # From the deviations: a difference of squares loses digits if losses are nearly
    # equal.
    for block in blocks(len(losses), 2 * 8 * len(weights)):
        deviation = np.subtract(losses[block], mean[block, None], order="C")
        variance[block] = np.einsum("ti,ti,i->t", deviation, deviation, weights**2)
    correction = n_losses / (n_losses - 1) if n_losses > 1 else np.nan
    return mean, np.sqrt(variance * correction)
