"""Losses of rows, and their averages with standard errors."""

import numpy as np
from scipy import sparse

from ..optim.blocks import blocks


def units_of(rows, groups=None):
    """The units that held-out rows belong to: their groups, or else the rows.

    Shapes: rows (n_held_out,), groups (n_samples,); returned (n_held_out,).
    """
    labels = rows if groups is None else groups[rows]
    _, first, unit = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[unit]


def have_repeats(rows):
    """Whether some of the row numbers (n_held_out,) come several times."""
    return np.bincount(rows).max(initial=0) > 1


def by_unit(losses, weights, units=None):
    """Mean losses of units of rows, and the weights of the units.

    Shapes: losses (n_iterates, n_rows), weights (n_rows,), units (n_rows,); returned
    losses (n_iterates, n_units), weights (n_units,).
    """
    if units is None or units.max(initial=-1) + 1 == len(units):
        return losses, weights
    n_rows, together = len(units), np.bincount(units, weights)
    entries = weights / together[units], units, np.arange(n_rows + 1)
    averaging = sparse.csc_array(entries, shape=(len(together), n_rows))
    return (averaging @ losses.T).T, together


def error_of_repeats(rows, weights):
    """What a standard error over folds is multiplied by if rows are held out often.

    Folds that share rows are not independent: r repetitions of k folds say as much of
    the loss as the rows do, not r times as much. For a mean of losses in which row i
    counts c_i times, of which the folds have one each, the variance over independent
    rows is sum c_i^2 / sum c_i times that over independent folds.

    Shapes: rows (n_held_out,), weights (n_held_out,).
    """
    if not have_repeats(rows):
        return 1.0
    together = np.bincount(rows, weights)
    return float(np.sqrt(np.sum(together**2) / np.sum(weights**2)))


def mean_with_error(losses, weights):
    """Weighted mean of every iterate's losses, and its standard error.

    Shapes: losses (n_iterates, n_losses), weights (n_losses,); returned mean,
    standard_error (n_iterates,).
    """
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


def losses_of(loss, target, predictors):
    """Losses of linear predictors for some rows, averaged over outputs.

    Shapes: target (n_rows, n_outputs), predictors (n_iterates, n_rows, n_outputs),
    returned (n_iterates, n_rows).
    """
    predictors = np.moveaxis(predictors, 0, 2).astype(np.float64, copy=False)
    losses = loss.reported(target[:, :, None], predictors)
    # A mean over a single output would take as long as the losses themselves.
    return (losses[:, 0] if losses.shape[1] == 1 else losses.mean(axis=1)).T
