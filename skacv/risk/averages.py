"""Averages of losses, with their standard errors."""

import numpy as np
from scipy import sparse

from ..optim.blocks import slices

# How many deviations from a mean are in memory at a time.
ENTRIES = 2**16


def units_of(rows, groups=None):
    """The units that held-out rows belong to: their groups, or else the rows.

    Whatever resamples rows, or counts them, takes a unit as a whole: the rows of a
    group are not independent, and nor are several predictions for one row.

    Parameters
    ----------
    rows : ndarray of int, shape (n_held_out,)
    groups : ndarray of int, shape (n_samples,), default=None

    Returns
    -------
    ndarray of int, shape (n_held_out,)
        Numbers from 0, in the order in which the units come first.
    """
    labels = rows if groups is None else groups[rows]
    _, first, place = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[place]


def have_repeats(rows):
    """Whether some of the row numbers (n_held_out,) come several times."""
    return np.bincount(rows).max(initial=0) > 1


def by_unit(losses, weights, units=None):
    """Mean losses of units of rows, and the weights of the units.

    Parameters
    ----------
    losses : ndarray of shape (n_iterates, n_rows)
    weights : ndarray of shape (n_rows,)
    units : ndarray of int, shape (n_rows,), default=None
        As :func:`units_of` numbers them. None: every row is one.

    Returns
    -------
    losses : ndarray of shape (n_iterates, n_units)
    weights : ndarray of shape (n_units,)
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

    Parameters
    ----------
    rows : ndarray of int, shape (n_held_out,)
        The rows that folds hold out, fold after fold.
    weights : ndarray of shape (n_held_out,)
        Their weights.

    Returns
    -------
    float
        1 if no row is held out more than once.
    """
    if not have_repeats(rows):
        return 1.0
    together = np.bincount(rows, weights)
    return float(np.sqrt(np.sum(together**2) / np.sum(weights**2)))


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
        A single loss has no standard error: NaN.
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
    correction = n_losses / (n_losses - 1) if n_losses > 1 else np.nan
    return mean, np.sqrt(variance * correction)
