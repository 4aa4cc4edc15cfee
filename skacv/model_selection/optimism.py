"""The score of a choice, corrected for the optimism of the choice.

The minimum of many estimates is below the risk on average. The bootstrap of BBC-CV
(Tsamardinos, Greasidou and Borboudakis, 2018) repeats the choice on rows drawn from the
held-out ones, and evaluates it on the rows not drawn. Rows of a group are drawn
together, and a row that several folds hold out is one.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._estimator.estimates.held_out import HeldOutLosses
from ..risk.held_out_rows import mean_with_error, units_of
from .time_limit import too_short

N_DRAWS = 200
# More units are drawn in so many groups, formed at random: means vary by as much.
MOST_GROUPS = 1000


class Uncorrected(Exception):
    """A score that cannot be corrected; the message says why."""


class RecordedLosses(NamedTuple):
    """Losses of one candidate on held-out rows, and the iterates to choose from."""

    # The index of its run.
    index: int
    losses: HeldOutLosses
    # The iterates that may be chosen.
    iterations: np.ndarray
    # ``error(indices)`` are the standard errors of the mean losses of some of these.
    error: Callable


def drawn_groups(rows, rng, groups=None):
    """The group of every row, to be drawn as a unit, and its count in every draw.

    ``rows`` are all that any candidate holds out; rows of one of ``groups`` depend on
    each other. Shapes: rows (n_held_out,), groups (n_samples,), returned group_of
    (n_samples,), counts (N_DRAWS, n_groups).
    """
    rows = np.unique(rows)
    units = units_of(rows, groups)
    n_units = units.max() + 1
    n_groups = min(n_units, MOST_GROUPS)
    group_of = np.zeros(rows[-1] + 1, dtype=int)
    group_of[rows] = (rng.permutation(n_units) % n_groups)[units]
    drawn = rng.randint(n_groups, size=(N_DRAWS, n_groups))
    drawn += n_groups * np.arange(N_DRAWS)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=N_DRAWS * n_groups)
    return group_of, counts.reshape(N_DRAWS, n_groups)


def check_time(deadline):
    """Raise Uncorrected if a deadline has passed."""
    if deadline.is_over():
        raise Uncorrected(too_short(deadline.limit))


def chosen_in_draws(recorded, rule, group_of, counts, deadline=None):
    """What every draw chooses among recorded losses, by a rule on the rows drawn.

    Returned are the index of a run and its iterate, and the sums of the losses of that
    over the rows of every group, and of their weights. ``group_of`` and ``counts`` are
    those of :func:`drawn_groups`.

    Shapes: returned (N_DRAWS, 2), (N_DRAWS, n_groups), (N_DRAWS, n_groups).
    """
    least = np.full(N_DRAWS, np.inf)
    choices = np.tile([recorded[0].index, recorded[0].iterations[0]], (N_DRAWS, 1))
    losses, weights = np.zeros((2, *counts.shape))
    for candidate in recorded:
        if deadline is not None:
            check_time(deadline)
        labels = group_of[candidate.losses.rows]
        sums, sums_of_weights = candidate.losses.sums(labels, counts.shape[1])
        sums = sums[candidate.iterations]
        with np.errstate(invalid="ignore", divide="ignore"):
            paths = (counts @ sums.T) / (counts @ sums_of_weights)[:, None]
        indices = rule(paths, candidate.error)
        values = paths[np.arange(N_DRAWS), indices]
        better = np.flatnonzero(values < least)
        least[better], indices = values[better], indices[better]
        choices[better, 0] = candidate.index
        choices[better, 1] = candidate.iterations[indices]
        losses[better], weights[better] = sums[indices], sums_of_weights
    return choices, losses, weights


def mean_over_rest(losses, weights, counts):
    """Mean over groups of the loss by draws without the group, and standard error.

    Shapes: losses, weights, counts (N_DRAWS, n_groups).
    """
    is_out = counts == 0
    losses = losses.sum(axis=0, where=is_out)
    weights = weights.sum(axis=0, where=is_out)
    counted = weights > 0
    if not counted.any():
        return np.nan, np.nan
    # Groups that are left out by more draws count no more for that.
    share = weights[counted] / is_out.sum(axis=0)[counted]
    mean, error = mean_with_error((losses[counted] / weights[counted])[None], share)
    return float(mean[0]), float(error[0])
