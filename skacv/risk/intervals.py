"""Prediction intervals from held-out residuals, at any iterate, without refits.

With R_i the absolute residual of row i for the iterate that never saw it, and
mu_{-i} that iterate's prediction, the jackknife+ (Barber, Candes, Ramdas &
Tibshirani 2021, eq. 1.5) takes quantiles of mu_{-i}(x) -+ R_i. Its coverage is
at least 1 - 2 alpha for exchangeable rows, and close to 1 - alpha as a rule.

Where targets spread more around some predictions than around others, residuals come
divided by that spread, and are multiplied by the one of a new row. The jackknife+
keeps its bound (Gupta, Kuchibhotla & Ramdas 2022, nested conformal prediction): the
spread is a function of the same mu_{-i}.

How large residuals are as a rule can also be learned from the residuals themselves. At
a held-out row that is done without the residuals of its own fold, so that a row is
compared with a size that knows as little of it as of a new row (Lei, G'Sell, Rinaldo,
Tibshirani & Wasserman 2018, section 5.2; Papadopoulos, Gammerman & Vovk 2008).

Rows of groups are not exchangeable, but groups are. A row of a new group is covered if
every group has the same mass among the residuals, and one more has it beyond all of
them (Lee, Barber & Willett 2023, "Distribution-free inference with hierarchical data").
Several residuals of one row count as a group.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

# What is a whole number but for rounding is that number.
ROUNDING = 1e-9
# The size of a residual is a mean over so many rows at least: fewer would be noisier.
FEWEST_ROWS = 20
# A size is no less than that share of the mean: a ratio to one near zero would be huge.
SMALLEST_SIZE = 0.1
# In so many folds the rows are, of which others say how large residuals are in one.
SIZE_FOLDS = 5


class HeldOutResiduals(NamedTuple):
    """Rows that a model has not seen, for prediction intervals.

    Attributes
    ----------
    residuals : ndarray of shape (n_held_out,) or (n_held_out, n_targets)
        In units of the spread of targets under the loss.
    predictions : ndarray of the same shape, or None
        None where only the residuals are known.
    units : ndarray of int, shape (n_held_out,), or None
        The unit of every row, its group or itself, numbered from 0; None: every row is
        a unit.
    """

    residuals: np.ndarray
    predictions: np.ndarray | None
    units: np.ndarray | None

    @property
    def n_units(self):
        """How many residuals count, where those of a unit count as one."""
        return len(self.residuals) if self.units is None else int(self.units.max()) + 1

    def at_most(self, n_rows):
        """The same, of so many rows at most, of whole units that are drawn at random.

        Coverage holds with the rows drawn as with all.
        """
        places, units = drawn_units(len(self.residuals), self.units, n_rows)
        predictions = self.predictions
        if predictions is not None:
            predictions = predictions[places]
        return HeldOutResiduals(self.residuals[places], predictions, units)


def drawn_units(n_rows, units, most):
    """Places of at most so many rows, of whole units that are drawn at random.

    Parameters
    ----------
    units : ndarray of int, shape (n_rows,), or None
        The unit of every row, numbered from 0; None: every row is a unit.
    most : int

    Returns
    -------
    places : slice or ndarray of int
        In order; all where there are no more.
    units : ndarray of int, shape (n_places,), or None
    """
    if n_rows <= most:
        return slice(None), units
    unit_of_row = np.arange(n_rows) if units is None else units
    n_rows_of = np.bincount(unit_of_row)
    order = np.random.default_rng(0).permutation(len(n_rows_of))
    n_drawn = max(1, np.searchsorted(np.cumsum(n_rows_of[order]), most, "right"))
    places = np.flatnonzero(np.isin(unit_of_row, order[:n_drawn]))
    if units is not None:
        _, units = np.unique(units[places], return_inverse=True)
    return places, units


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


def intervals_around(predictions, held_out, coverage, loss, sizes=None):
    """Predictions plus and minus quantiles of the sizes of held-out residuals.

    Parameters
    ----------
    predictions : ndarray of shape (n_samples,) or (n_samples, n_targets)
    held_out : HeldOutResiduals
    coverage : ndarray
        From :func:`checked_coverage`.
    loss : Loss
        Defines the range and the spread of targets.
    sizes : pair of ndarray, default=None
        Expected sizes of the residuals at the held-out rows, and at the rows of the
        predictions. None: they are alike everywhere.

    Returns
    -------
    ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
        With several coverages there is a last axis for these.
    """
    ranks = [rank_of(share, held_out.n_units) for share in coverage.ravel()]
    residuals, widths = held_out.residuals, np.ones_like(predictions)
    if held_out.predictions is not None:
        widths = loss.spread(predictions)
    if sizes is not None:
        residuals, widths = residuals / sizes[0], widths * sizes[1]
    around = partial(around_predictions, units=held_out.units)
    ends = ends_of(around, predictions, residuals, ranks, widths)
    return shaped(np.clip(ends, *loss.target_range), coverage)


def shaped(ends, coverage):
    """Ends without an axis for ranks where there is one coverage."""
    return ends.reshape(*ends.shape[:-1], *coverage.shape)


def distance_outside(lower, upper, targets):
    """How far targets are outside of the interval between two quantiles.

    Negative inside. Where quantiles cross, the smaller one is the lower.

    Shapes: all (n_rows,).
    """
    lower, upper = np.minimum(lower, upper), np.maximum(lower, upper)
    return np.maximum(lower - targets, targets - upper)


def intervals_between(lower, upper, outside, coverage, units=None):
    """Intervals between two quantiles, as much wider as held-out rows need.

    Romano, Patterson & Candes (2019), "Conformalized quantile regression", algorithm 1.

    Parameters
    ----------
    lower, upper : ndarray of shape (n_samples,)
    outside : ndarray of shape (n_held_out,)
        From :func:`distance_outside`, of rows that the quantiles have not seen.
    coverage : ndarray
        From :func:`checked_coverage`.
    units : ndarray of int, shape (n_held_out,), default=None
        As in :class:`HeldOutResiduals`.

    Returns
    -------
    ndarray of shape (n_samples, 2)
        With several coverages there is a last axis for these.
    """
    n_units = len(outside) if units is None else int(units.max()) + 1
    ranks = [rank_of(share, n_units) for share in coverage.ravel()]
    moves = np.array([ranked(outside, rank, units) for rank in ranks])
    middle = (lower + upper)[:, None] / 2
    # Ends that move inwards meet in the middle, and do not cross.
    half = np.maximum(np.abs(upper - lower)[:, None] / 2 + moves, 0)
    return shaped(np.stack([middle - half, middle + half], axis=1), coverage)


def sizes_by_prediction(held_out, predictions):
    """Sizes of residuals as a function of the prediction.

    Parameters
    ----------
    held_out : HeldOutResiduals
        With predictions.
    predictions : ndarray of shape (n_samples,) or (n_samples, n_targets)

    Returns
    -------
    held_out : ndarray of shape (n_held_out,) or (n_held_out, n_targets)
        Each by the residuals of rows in other folds.
    sizes : ndarray of shape (n_samples,) or (n_samples, n_targets)
    """
    residuals = held_out.residuals
    n_rows, shape = len(residuals), residuals.shape[1:]
    units = np.arange(n_rows) if held_out.units is None else held_out.units
    targets = zip(
        held_out.predictions.reshape(n_rows, -1).T,
        residuals.reshape(n_rows, -1).T,
        predictions.reshape(len(predictions), -1).T,
    )
    by_target = [
        (
            held_out_sizes(sizes_nearby, before, errors, units),
            sizes_nearby(before, errors)(new),
        )
        for before, errors, new in targets
    ]
    return tuple(np.stack(part, axis=1).reshape(-1, *shape) for part in zip(*by_target))


def sizes_nearby(predictions, residuals):
    """The mean size of residuals of rows whose predictions are near, as a function.

    A running mean over k rows in the order of the predictions, with k = n^(4/5) / 2,
    the rate at which nearest neighbours estimate a smooth function of one variable best
    (Stone 1980, "Optimal rates of convergence for nonparametric estimators").

    Parameters
    ----------
    predictions, residuals : ndarray of shape (n_rows,)

    Returns
    -------
    callable
        It takes predictions, and gives positive numbers: between the middles of two
        windows on a line, beyond the first and the last as there.
    """
    size = np.abs(residuals)
    # Rows of equal predictions are in no order: each counts as their mean.
    _, tied = np.unique(predictions, return_inverse=True)
    alike = (np.bincount(tied, size) / np.bincount(tied))[tied]
    order, n_rows = np.argsort(predictions, kind="stable"), len(size)
    k = min(n_rows, max(FEWEST_ROWS, int(np.ceil(n_rows**0.8 / 2))))
    sums = np.cumsum(np.r_[0.0, alike[order]])
    means = (sums[k:] - sums[:-k]) / k
    middles = predictions[order][(k - 1) // 2 :][: len(means)]
    places, same = np.unique(middles, return_inverse=True)
    means = np.bincount(same, means) / np.bincount(same)
    floor = smallest_size(size)
    return lambda at: np.maximum(np.interp(at, places, means), floor).astype(size.dtype)


def smallest_size(sizes):
    """The least that a residual is taken to be as a rule, above zero."""
    # Where no residual is other than zero any size will do.
    return SMALLEST_SIZE * sizes.mean() or 1.0


def held_out_sizes(fitted, X, residuals, units, seed=0):
    """Expected sizes of residuals at their rows, each from the residuals of others.

    Shapes: returned (n_rows,).

    Parameters
    ----------
    fitted : callable
        ``fitted(X, residuals)`` learns the sizes, and returns a function of X.
    X : {array-like, sparse matrix} of n_rows
    residuals : ndarray of shape (n_rows,)
    units : ndarray of int, shape (n_rows,)
        The sample, or the group, of each row: those of one are held out together.
    seed : int, default=0
        The seed of the folds.
    """
    distinct, place = np.unique(units, return_inverse=True)
    if len(distinct) < 2:
        raise ValueError(
            "method='scaled' needs at least 2 rows held out (or groups, where rows "
            "have groups): take another method."
        )
    order = np.random.RandomState(seed).permutation(len(distinct))
    fold = order[place] % min(SIZE_FOLDS, len(distinct))
    sizes = np.empty_like(residuals)
    for held_out in (fold == k for k in range(fold.max() + 1)):
        sizes[held_out] = fitted(X[~held_out], residuals[~held_out])(X[held_out])
    return sizes


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
    width = ranked(np.abs(residuals), rank, units) * spread
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
    lower = ranked(predictions - width, len(residuals) + 1 - rank)
    upper = ranked(predictions + width, rank)
    return np.stack([lower, upper], axis=-1)


def ranked(values, rank, units=None):
    """The value of that rank, 1 the smallest, along the rows.

    With units the least value below or at which ``rank`` units are, each counted by its
    share.

    Shapes: values (n_rows, ...), units (n_rows,); returned (...).
    """
    if units is None:
        return np.partition(values, rank - 1, axis=0)[rank - 1]
    shares = 1 / np.bincount(units)[units]
    order = np.argsort(values, axis=0)
    place = np.argmax(np.cumsum(shares[order], axis=0) >= rank - ROUNDING, axis=0)
    ordered = np.take_along_axis(values, order, axis=0)
    return np.take_along_axis(ordered, place[None], axis=0)[0]
