"""Prediction intervals from held-out residuals, at any iterate, without refits.

With R_i the absolute residual of row i for the iterate that never saw it, and
mu_{-i} that iterate's prediction, the jackknife+ (Barber, Candes, Ramdas &
Tibshirani 2021, eq. 1.5) takes quantiles of mu_{-i}(x) -+ R_i. Its coverage is
at least 1 - 2 alpha for exchangeable rows, and close to 1 - alpha as a rule.

Where targets spread more around some predictions than around others, residuals come
divided by that spread, and are multiplied by the one of a new row. The jackknife+
keeps its bound (Gupta, Kuchibhotla & Ramdas 2022, nested conformal prediction): the
spread is a function of the same mu_{-i}.

Rows of groups are not exchangeable, but groups are. A row of a new group is covered if
every group has the same mass among the residuals, and one more has it beyond all of
them (Lee, Barber & Willett 2023, "Distribution-free inference with hierarchical data").
Several residuals of one row count as a group.
"""

import numpy as np

# What is a whole number but for rounding is that number.
ROUNDING = 1e-9


def checked_coverage(coverage):
    """One coverage or several, as an array.

    Raises
    ------
    ValueError
        If one is not in (0, 1), or if there is none.
    """
    coverage = np.asarray(coverage)
    for each in coverage.ravel():
        if not 0 < each < 1:
            raise ValueError(f"coverage must be between 0 and 1, got {each}.")
    if not coverage.size:
        raise ValueError("coverage must be a number or several, got none.")
    return coverage


def ends_of(interval, predictions, residuals, ranks, spread):
    """Lower and upper ends of an interval for every rank, along a last axis.

    Shapes: returned (n_samples, ..., 2, n_ranks).

    Parameters
    ----------
    interval : callable
        :func:`around_predictions` or :func:`jackknife_plus`, whose arguments the
        others are.
    ranks : list of int
    """
    ends = [interval(predictions, residuals, rank, spread) for rank in ranks]
    return np.stack(ends, axis=-1)


def rank_of(coverage, n_units):
    """Which of the ordered values of ``n_units`` rows covers, ceil(c (n + 1)).

    Raises
    ------
    ValueError
        If there are too few of them for that coverage.
    """
    rank = max(1, int(np.ceil(coverage * (n_units + 1) - ROUNDING)))
    if rank > n_units:
        needed = int(np.ceil((coverage - ROUNDING) / (1 - coverage)))
        raise ValueError(
            f"coverage={coverage} needs at least {needed} rows with held-out residuals "
            f"(or groups, where rows have groups), there are {n_units}."
        )
    return rank


def around_predictions(predictions, residuals, rank, spread=1.0, units=None):
    """Predictions plus and minus one of the ordered absolute residuals.

    Parameters
    ----------
    predictions : ndarray of shape (n_samples, ...)
    residuals : ndarray of shape (n_rows, ...)
        In units of the spread at their own rows.
    rank : int
        From :func:`rank_of`.
    spread : float or ndarray of shape (n_samples, ...), default=1.0
        What the residual is multiplied by.
    units : ndarray of int, shape (n_rows,), default=None
        The unit of every residual, numbered from 0: all residuals of a unit count as
        one. None: every row is a unit.

    Returns
    -------
    ndarray of shape (n_samples, ..., 2)
        Lower and upper end.
    """
    sizes = np.abs(residuals)
    found = _ranked(sizes, rank) if units is None else _ranked_unit(sizes, rank, units)
    width = found * spread
    return np.stack([predictions - width, predictions + width], axis=-1)


def jackknife_plus(predictions, residuals, rank, spread=1.0):
    """Quantiles of the predictions without each row, moved by its residual.

    Ends may cross where the rank is below half the rows; never above.

    Parameters
    ----------
    predictions : ndarray of shape (n_rows, n_samples)
        For every sample, by the iterate without each row.
    residuals : ndarray of shape (n_rows,)
        In units of the spread at their own rows.
    rank : int
        From :func:`rank_of`.
    spread : float or ndarray of shape (n_rows, n_samples), default=1.0
        What the residuals are multiplied by, around each of the predictions.

    Returns
    -------
    ndarray of shape (n_samples, 2)
        Lower and upper end.
    """
    width = np.abs(residuals)[:, None] * spread
    lower = _ranked(predictions - width, len(residuals) + 1 - rank)
    upper = _ranked(predictions + width, rank)
    return np.stack([lower, upper], axis=-1)


def _ranked(values, rank):
    """The value of that rank, 1 the smallest, along the rows."""
    return np.partition(values, rank - 1, axis=0)[rank - 1]


def _ranked_unit(values, rank, units):
    """The least value below or at which ``rank`` units are, each counted by its share.

    Shapes: values (n_rows, ...), units (n_rows,); returned (...).
    """
    shares = 1 / np.bincount(units)[units]
    order = np.argsort(values, axis=0)
    place = np.argmax(np.cumsum(shares[order], axis=0) >= rank - ROUNDING, axis=0)
    ordered = np.take_along_axis(values, order, axis=0)
    return np.take_along_axis(ordered, place[None], axis=0)[0]
