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

# Draws of held-out rows; from 10,000 rows on fewer, in proportion, and 50 at least: a
# draw of many rows hardly chooses otherwise than all of them, and takes long.
N_DRAWS, ROWS_OF_ALL_DRAWS, FEWEST_DRAWS = 200, 10_000, 50
# More units are drawn in so many groups, formed at random: means vary by as much.
MOST_GROUPS = 1000
# Iterates of which all pairs are compared, for a bound on what later ones may gain.
MOST_PAIRED = 60


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
    (n_samples,), counts (n_draws, n_groups).
    """
    rows = np.unique(rows)
    n_draws = int(N_DRAWS * min(1.0, ROWS_OF_ALL_DRAWS / len(rows)))
    n_draws = max(n_draws, FEWEST_DRAWS)
    units = units_of(rows, groups)
    n_units = units.max() + 1
    n_groups = min(n_units, MOST_GROUPS)
    group_of = np.zeros(rows[-1] + 1, dtype=int)
    group_of[rows] = (rng.permutation(n_units) % n_groups)[units]
    drawn = rng.randint(n_groups, size=(n_draws, n_groups))
    drawn += n_groups * np.arange(n_draws)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=n_draws * n_groups)
    return group_of, counts.reshape(n_draws, n_groups)


def check_time(deadline):
    """Raise Uncorrected if a deadline has passed."""
    if deadline.is_over():
        raise Uncorrected(too_short(deadline.limit))


def chosen_in_draws(recorded, rule, group_of, counts, kept, deadline=None):
    """What every draw chooses among recorded losses, by a rule on the rows drawn.

    Returned are the index of a run and its iterate, and the sums of the losses of that
    over the rows of every group, and of their weights; last, by how much later iterates
    of the iterate that is kept may be better: ``kept`` is the index of its run and its
    number, and without that run it is None. ``group_of`` and ``counts`` are those of
    :func:`drawn_groups`.

    Shapes: returned (n_draws, 2), (n_draws, n_groups), (n_draws, n_groups), float.
    """
    n_draws = len(counts)
    least = np.full(n_draws, np.inf)
    choices = np.tile([recorded[0].index, recorded[0].iterations[0]], (n_draws, 1))
    (losses, weights), gain = np.zeros((2, *counts.shape)), None
    for candidate in recorded:
        if deadline is not None:
            check_time(deadline)
        labels = group_of[candidate.losses.rows]
        sums, sums_of_weights = candidate.losses.sums(labels, counts.shape[1])
        # Models have weights of rows in units of their own: here a row weighs one in
        # the mean, whichever candidate a draw chooses.
        unit = sums_of_weights.sum() / len(labels)
        sums = sums[candidate.iterations] / unit
        sums_of_weights = sums_of_weights / unit
        with np.errstate(invalid="ignore", divide="ignore"):
            paths = (counts @ sums.T) / (counts @ sums_of_weights)[:, None]
        if candidate.index == kept[0]:
            mean = sums.sum(axis=1) / sums_of_weights.sum()
            index = np.searchsorted(candidate.iterations, kept[1])
            gain = possible_gain(mean, paths, index)
        indices = rule(paths, candidate.error)
        values = paths[np.arange(n_draws), indices]
        better = np.flatnonzero(values < least)
        least[better], indices = values[better], indices[better]
        choices[better, 0] = candidate.index
        choices[better, 1] = candidate.iterations[indices]
        losses[better], weights[better] = sums[indices], sums_of_weights
    return choices, losses, weights, gain


def mean_over_rest(losses, weights, counts):
    """Mean over groups of the loss by draws without the group, and standard error.

    Shapes: losses, weights, counts (n_draws, n_groups).
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


def possible_gain(mean, drawn, index):
    """By how much an iterate after one may be better, with a confidence of 95%.

    With m_s the mean held-out loss of iterate s, and e_rs the standard error of m_r -
    m_s, the bound of the gain after iterate t is

        max over s > t of m_t - m_s + c e_ts,

    where c is the 95% quantile, over draws, of the largest studentised deviation of the
    differences of any two iterates: whichever t these rows have chosen, the bound holds
    for all later ones at once. It is 0 after the last iterate.

    Shapes: mean (n_iterates,); drawn (n_draws, n_iterates), the mean losses of the
    draws of :func:`drawn_groups`.
    """
    n_iterates, later = len(mean), slice(index + 1, None)
    if index + 1 == n_iterates:
        return 0.0
    deviations = drawn - mean
    # Neighbours differ little: all pairs of some iterates, in even steps.
    steps = np.linspace(0, n_iterates - 1, min(n_iterates, MOST_PAIRED))
    paired = steps.astype(int)
    largest = np.zeros(len(drawn))
    for number, s in enumerate(paired):
        differences = deviations[:, [s]] - deviations[:, paired[:number]]
        errors = differences.std(axis=0)
        ratios = differences[:, errors > 0] / errors[errors > 0]
        largest = np.maximum(largest, ratios.max(axis=1, initial=0.0))
    factor = np.quantile(largest, 0.95)
    errors = (deviations[:, [index]] - deviations[:, later]).std(axis=0)
    return max(0.0, float(np.max(mean[index] - mean[later] + factor * errors)))
