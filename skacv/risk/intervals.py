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
every group has the same mass among the residuals, and one more group has that mass
beyond all of them (Lee, Barber & Willett 2023, "Distribution-free inference with
hierarchical data"). Several residuals of one row count as a group.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

# A rank that is a whole number up to this rounding is that number.
ROUNDING = np.sqrt(np.finfo(float).eps)
# The size of a residual is a mean over so many rows at least: fewer would be noisier.
FEWEST_ROWS = 20


def checked_coverage(coverage):
    """One coverage or several, as an array."""
    try:
        shares = np.asarray(coverage)
    except ValueError:  # lists of several lengths
        shares = np.array(["several"])
    if not shares.size:
        raise ValueError("coverage is empty: pass a number, or several.")
    if shares.dtype.kind not in "fiu":
        raise ValueError(
            f"coverage must be a number between 0 and 1, or several, got {coverage!r}."
        )
    for share in shares.ravel():
        if not 0 < share < 1:
            raise ValueError(f"coverage must be between 0 and 1, got {share}.")
    return shares


def ends_of(interval, predictions, residuals, ranks, spread):
    """Ends of an interval for every rank, (n_samples, ..., 2, n_ranks)."""
    ends = [interval(predictions, residuals, rank, spread) for rank in ranks]
    return np.stack(ends, axis=-1)


def checked_levels(levels):
    """Levels of quantiles, as an array (n_levels,)."""
    try:
        values = np.atleast_1d(np.asarray(levels, dtype=np.float64))
    except (TypeError, ValueError):
        values = np.array([np.nan])
    if values.ndim != 1 or not values.size or not ((0 < values) & (values < 1)).all():
        raise ValueError(
            f"levels must be numbers between 0 and 1, such as [0.05, 0.95], got "
            f"{levels!r}."
        )
    return values


def rank_of(coverage, n_units, name="coverage"):
    """The rank that covers among residuals of n units, ceil(coverage (n + 1))."""
    rank = max(1, int(np.ceil(coverage * (n_units + 1) - ROUNDING)))
    if rank > n_units:
        needed = int(np.ceil((coverage - ROUNDING) / (1 - coverage)))
        raise ValueError(
            f"{name}={coverage} needs at least {needed} rows with held-out "
            f"residuals (or groups, if rows have groups), but there are {n_units}."
        )
    return rank


@dataclass(frozen=True)
class Ends:
    """What is made of held-out residuals for a new row, at a rank of these.

    Functions are of predictions, residuals, a rank and the spread of targets:
    ``around`` of one prediction for every new row, ``by_replicas`` of one without each
    held-out row. ``checked`` checks what users pass, and ``share`` names it.
    """

    method: str
    share: str
    checked: Callable
    around: Callable
    by_replicas: Callable

    def ranks(self, shares, n_units):
        """The rank of every share."""
        return [rank_of(one, n_units, self.share) for one in shares.ravel().tolist()]

    def of_rows(self, predictions, held_out, shares, loss, sizes=None):
        """Predictions, and what is added to them for held-out residuals.

        Shapes: predictions (n_samples, ...); returned (n_samples, ..., 2), or of
        quantiles (n_samples, ...), with several shares on a last axis.
        """
        ranks = self.ranks(shares, held_out.n_units)
        residuals, widths = held_out.residuals, np.ones_like(predictions)
        if held_out.predictions is not None:
            widths = loss.spread(predictions)
        if sizes is not None:
            residuals, widths = residuals / sizes[0], widths * sizes[1]
        around = partial(self.around, units=held_out.units)
        ends = ends_of(around, predictions, residuals, ranks, widths)
        return shaped(np.clip(ends, *loss.target_range), shares)


def shaped(ends, coverage):
    """Ends without the axis of ranks where there is one coverage."""
    return ends.reshape(*ends.shape[:-1], *coverage.shape)


def intervals_between(lower, upper, outside, coverage, units=None):
    """Intervals between two quantiles, widened by a quantile of held-out misses.

    Shapes: lower, upper (n_samples,); outside, units (n_held_out,); returned
    (n_samples, 2).
    """
    # ``outside``: how far held-out targets are outside of their quantiles; negative
    # inside.
    n_units = len(outside) if units is None else int(units.max()) + 1
    ranks = [rank_of(share, n_units) for share in coverage.ravel()]
    moves = np.array([ranked(outside, rank, units) for rank in ranks])
    middle = (lower + upper)[:, None] / 2
    # Ends that move inwards meet in the middle, and do not cross.
    half = np.maximum(np.abs(upper - lower)[:, None] / 2 + moves, 0)
    return shaped(np.stack([middle - half, middle + half], axis=1), coverage)


def sizes_by_prediction(held_out, predictions):
    """Sizes of the held-out residuals and of new ones, as functions of the prediction.

    Shapes: returned (n_held_out, ...), (n_samples, ...), with targets last if several.
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
    """The mean size of residuals of rows with similar predictions, as a function."""
    # A running mean over k rows in the order of the predictions, with k = n^(4/5) / 2,
    # the rate at which nearest neighbours estimate a smooth function of one variable
    # best (Stone 1980, "Optimal rates of convergence for nonparametric estimators").
    size = np.abs(residuals)
    # Rows of equal predictions are in no order: each counts as their mean.
    _, tied = np.unique(predictions, return_inverse=True)
    alike = (np.bincount(tied, size) / np.bincount(tied))[tied]
    order, n_rows = np.argsort(predictions, kind="stable"), len(size)
    k = min(n_rows, max(FEWEST_ROWS, int(np.ceil(n_rows**0.8 / 2))))
    sums = np.cumsum(np.r_[0.0, alike[order]])
    means = (sums[k:] - sums[:-k]) / k
    middles = predictions[order][(k - 1) // 2 :][: len(means)]
    knots, same = np.unique(middles, return_inverse=True)
    means = np.bincount(same, means) / np.bincount(same)
    floor = smallest_size(size)
    return lambda at: np.maximum(np.interp(at, knots, means), floor).astype(size.dtype)


def smallest_size(sizes, share=0.1):
    """A lower bound of the expected size of a residual, above zero."""
    # A ratio to a size near zero would be huge.
    # Where no residual is other than zero any size will do.
    return share * sizes.mean() or 1.0


def held_out_sizes(fitted, X, residuals, units, seed=0, n_folds=5):
    """Expected sizes of residuals (n_rows,), each from residuals of other units."""
    distinct, unit = np.unique(units, return_inverse=True)
    if len(distinct) < 2:
        raise ValueError(
            "method='scaled' needs at least 2 held-out rows (or groups, if rows have "
            "groups): use another method."
        )
    order = np.random.RandomState(seed).permutation(len(distinct))
    fold = order[unit] % min(n_folds, len(distinct))
    sizes = np.empty_like(residuals)
    for held_out in (fold == k for k in range(fold.max() + 1)):
        sizes[held_out] = fitted(X[~held_out], residuals[~held_out])(X[held_out])
    return sizes


def around_predictions(predictions, residuals, rank, spread=1.0, units=None):
    """Predictions plus and minus the absolute residual of a rank, (n_samples, ..., 2).

    Shapes: predictions, spread (n_samples, ...), residuals (n_rows, ...).
    """
    width = ranked(np.abs(residuals), rank, units) * spread
    return np.stack([predictions - width, predictions + width], axis=-1)


def jackknife_plus(predictions, residuals, rank, spread=1.0):
    """The jackknife+: quantiles of mu_{-i}(x) -+ R_i over rows i, (n_samples, 2).

    Shapes: predictions, spread (n_rows, n_samples); residuals (n_rows,).
    """
    width = np.abs(residuals)[:, None] * spread
    lower = ranked(predictions - width, len(residuals) + 1 - rank)
    upper = ranked(predictions + width, rank)
    return np.stack([lower, upper], axis=-1)


def above_predictions(predictions, residuals, rank, spread=1.0, units=None):
    """Predictions plus the residual of a rank, (n_samples, ...).

    The one-sided form of :func:`around_predictions`, with shapes as there.
    """
    return predictions + ranked(residuals, rank, units) * spread


def above_replicas(predictions, residuals, rank, spread=1.0):
    """The one-sided jackknife+: a quantile of mu_{-i}(x) + r_i over rows i.

    With r_i the residual itself; shapes as in :func:`jackknife_plus`.
    """
    return ranked(predictions + residuals[:, None] * spread, rank)


INTERVALS = Ends(
    "predict_interval", "coverage", checked_coverage, around_predictions, jackknife_plus
)
# The k-th smallest residual, with k = ceil(level (n + 1)): with a probability between
# the level and 1 / (n + 1) more an exchangeable new one is at most as large.
QUANTILES = Ends(
    "predict_quantiles", "level", checked_levels, above_predictions, above_replicas
)


def ranked(values, rank, units=None):
    """Values of a rank along the rows, 1 the smallest; units have equal masses."""
    if units is None:
        return np.partition(values, rank - 1, axis=0)[rank - 1]
    shares = 1 / np.bincount(units)[units]
    order = np.argsort(values, axis=0)
    index = np.argmax(np.cumsum(shares[order], axis=0) >= rank - ROUNDING, axis=0)
    ordered = np.take_along_axis(values, order, axis=0)
    return np.take_along_axis(ordered, index[None], axis=0)[0]
