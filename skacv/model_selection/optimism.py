"""The score of a choice, corrected for the optimism of the choice.

The minimum of many estimates is below the risk on average. Here the choice is repeated
on four fifths of the held-out rows and evaluated on the others, for many partitions of
the rows. The bootstrap of Tsamardinos, Greasidou and Borboudakis (2018) chooses by two
thirds of the rows only: where single rows cost fifty times as much as others, as by
forests that are sure of the wrong class, its draws choose iterates that all rows would
not. Rows of a group are drawn together, and a row that several folds hold out is one.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit
from sklearn.base import is_classifier

from .._compat import on_host
from .._estimator.estimates.held_out import HeldOutLosses
from ..risk.held_out_rows import mean_with_error, units_of
from .time_limit import too_short

# Draws of held-out rows; from 10,000 rows on fewer, in proportion, and 50 at least: a
# draw of many rows hardly chooses otherwise than all of them, and takes long.
N_DRAWS, ROWS_OF_ALL_DRAWS, FEWEST_DRAWS = 200, 10_000, 50
# Parts of a partition, each evaluated by the choice of the others. Over 300 samples of
# 30 rows, scores of forests of classes are .97 of the truth with ten parts, 1.00 with
# five, 1.16 with two, and 1.08 with the bootstrap: rows of a fold share the luck of its
# model, which more parts do not separate, and few rows choose badly.
N_PARTS = 5
# More units are drawn in so many groups, formed at random: means vary by as much.
MOST_GROUPS = 1000
# Iterates of which all pairs are compared, for a bound on what later ones may gain.
MOST_PAIRED = 60
# The confidence of that bound.
CONFIDENCE = 0.95


class Uncorrected(Exception):
    """A score that cannot be corrected; the message says why."""


class Corrected(NamedTuple):
    """What a fit may be expected to have, without the optimism of its choices."""

    score: float
    standard_error: float
    # By how much later iterates may be better than the one kept.
    possible_gain: float
    # The scores of members by themselves, each by the choices of that member.
    of_members: dict[str, float]


class RecordedLosses(NamedTuple):
    """Losses of one candidate on held-out rows, and the iterates to choose from."""

    # The index of its run.
    index: int
    losses: HeldOutLosses
    # The iterates that may be chosen.
    iterations: np.ndarray
    # ``error(indices)`` are the standard errors of the mean losses of some of these.
    error: Callable
    # What ``sums`` returns, for groups over which losses are summed more than once.
    kept: tuple | None = None

    def keep_sums(self, draws, deadline=None):
        """The same with the sums over the groups of draws, which take long to read."""
        check_time(deadline)
        n_groups = draws.resampled.shape[1]
        return self._replace(kept=self.sums(draws.group_of, n_groups))

    def sums(self, group_of, n_groups):
        """Losses times weights, summed over the rows of every group, and the weights.

        Shapes: group_of (n_samples,); returned (n_iterates, n_groups), (n_groups,).
        """
        if self.kept is not None:
            return self.kept
        labels = group_of[self.losses.rows]
        sums, weights = self.losses.sums(labels, n_groups)
        # Models have weights of rows in units of their own: here a row weighs one in
        # the mean, whichever candidate a draw chooses.
        unit = weights.sum() / np.count_nonzero(self.losses.weights)
        return sums[self.iterations] / unit, weights / unit


class Draws(NamedTuple):
    """Groups of held-out rows, which are drawn as units."""

    group_of: np.ndarray  # of every row, (n_samples,)
    # How often every group is in a bootstrap sample of them, (n_draws, n_groups).
    resampled: np.ndarray
    # The same without one part of a partition, for many of them, (n_parts, n_groups).
    without_parts: np.ndarray

    @classmethod
    def of(cls, rows, weights, rng, groups=None, classes=None):
        """Draws of the rows that any candidate holds out, and that have a weight.

        Rows of one of ``groups`` depend on each other. The rows of each of ``classes``
        are spread evenly over the parts, as folds have them: without any row of a rare
        class other iterates would be chosen.

        Shapes: rows, weights (n_held_out,), groups, classes (n_samples,).
        """
        group_of = np.zeros(rows.max() + 1, dtype=int)
        rows = np.unique(rows[weights > 0])
        n_draws = int(N_DRAWS * min(1.0, ROWS_OF_ALL_DRAWS / len(rows)))
        n_draws = max(n_draws, FEWEST_DRAWS)
        units = units_of(rows, groups)
        n_units = units.max() + 1
        n_groups = min(n_units, MOST_GROUPS)
        group_of[rows] = (rng.permutation(n_units) % n_groups)[units]
        drawn = rng.randint(n_groups, size=(n_draws, n_groups))
        drawn += n_groups * np.arange(n_draws)[:, None]
        resampled = np.bincount(drawn.ravel(), minlength=n_draws * n_groups)
        resampled = resampled.reshape(n_draws, n_groups)
        strata = np.zeros(n_groups, dtype=int)
        if classes is not None and n_groups == len(rows):  # a group is a row
            strata[group_of[rows]] = np.unique(classes[rows], return_inverse=True)[1]
        return cls(group_of, resampled, counts_without_parts(strata, n_draws, rng))


def counts_without_parts(strata, n_draws, rng):
    """Which groups are drawn, one or zero, where a part of a random partition is not.

    The groups of a stratum are spread over the parts. A single group is drawn always:
    nothing can be evaluated without it.

    Shapes: strata (n_groups,), returned (about n_draws, n_groups).
    """
    n_groups = len(strata)
    if n_groups == 1:
        return np.ones((1, 1), dtype=int)
    n_parts = min(N_PARTS, n_groups)
    # Single groups can be parts in one way only.
    n_partitions = 1 if n_parts == n_groups else n_draws // n_parts
    partitions = np.empty((n_partitions, n_groups), dtype=int)
    for part_of in partitions:
        order = rng.permutation(n_groups)
        order = order[np.argsort(strata[order], kind="stable")]
        part_of[order] = np.arange(n_groups) % n_parts
    is_drawn = partitions[:, None, :] != np.arange(n_parts)[:, None]
    return is_drawn.reshape(-1, n_groups).astype(int)


def strata_of_rows(estimator, y):
    """The classes by which parts are stratified, (n_samples,), or None."""
    y = np.asarray(on_host(y))
    return y if is_classifier(estimator) and y.ndim == 1 else None


def check_time(deadline):
    """Raise Uncorrected if a deadline has passed; None is no deadline."""
    if deadline is not None and deadline.is_over():
        raise Uncorrected(too_short(deadline.limit))


class ChosenInDraws(NamedTuple):
    """What every draw chooses: its loss on the rows drawn, and on those of each group.

    Shapes: least (n_draws,), choices (n_draws, 2), losses and weights (n_draws,
    n_groups).
    """

    least: np.ndarray
    # The index of a run, and its iterate.
    choices: np.ndarray
    # The sums over the rows of every group, and of their weights.
    losses: np.ndarray
    weights: np.ndarray

    @classmethod
    def best_of(cls, several):
        """The best of what several members have chosen, draw by draw."""
        best = np.argmin([one.least for one in several], axis=0)
        draws = np.arange(len(best))
        return cls(*(np.stack(parts)[best, draws] for parts in zip(*several)))

    def mean_over_rest(self, counts):
        """The mean loss over groups that a draw is without, and its standard error."""
        return mean_over_rest(self.losses, self.weights, counts)


def choose_in_draws(recorded, rule, group_of, counts, deadline=None):
    """What every draw chooses among recorded losses, by a rule on the rows drawn.

    ``group_of`` and ``counts`` are those of :class:`Draws`. Shapes: counts (n_draws,
    n_groups).
    """
    n_draws = len(counts)
    least = np.full(n_draws, np.inf)
    choices = np.tile([recorded[0].index, recorded[0].iterations[0]], (n_draws, 1))
    losses, weights = np.zeros((2, *counts.shape))
    for candidate in recorded:
        check_time(deadline)
        sums, sums_of_weights = candidate.sums(group_of, counts.shape[1])
        paths = means_of_draws(sums, sums_of_weights, counts)
        indices = rule(paths, candidate.error)
        values = paths[np.arange(n_draws), indices]
        better = np.flatnonzero(values < least)
        least[better], indices = values[better], indices[better]
        choices[better, 0] = candidate.index
        choices[better, 1] = candidate.iterations[indices]
        losses[better], weights[better] = sums[indices], sums_of_weights
    return ChosenInDraws(least, choices, losses, weights)


def means_of_draws(sums, weights, counts):
    """Mean losses of iterates over the groups of draws; NaN where these have no weight.

    Shapes: sums (n_iterates, n_groups), weights (n_groups,), counts (n_draws,
    n_groups), returned (n_draws, n_iterates).
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return (counts @ sums.T) / (counts @ weights)[:, None]


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


def possible_gain(candidate, iteration, draws):
    """By how much iterates after one may be better, with a confidence of 95%.

    With m_s the mean held-out loss of iterate s, and e_rs the standard error of m_r -
    m_s over bootstrap draws, the bound of the gain after iterate t is

        max over s > t of m_t - m_s + c e_ts,

    where c is the 95% quantile, over draws, of the largest studentised deviation of the
    differences of any two iterates: whichever t these rows have chosen, the bound holds
    for all later ones at once. Errors over draws of G groups are too small by the root
    of (G - 1) / G, and known only as well as by G - 1 degrees of freedom: c becomes the
    quantile of Student's distribution of the same level. It is at least that of a
    single difference, which draws of two or three groups do not reach. The bound is 0
    after the last iterate, and NaN for a single group.
    """
    n_groups = draws.resampled.shape[1]
    index = np.searchsorted(candidate.iterations, iteration)
    n_iterates, later = len(candidate.iterations), slice(index + 1, None)
    if index + 1 == n_iterates:
        return 0.0
    if n_groups == 1:
        return np.nan
    sums, weights = candidate.sums(draws.group_of, n_groups)
    mean = sums.sum(axis=1) / weights.sum()
    deviations = means_of_draws(sums, weights, draws.resampled) - mean
    # Neighbours differ little: all pairs of some iterates, in even steps.
    steps = np.linspace(0, n_iterates - 1, min(n_iterates, MOST_PAIRED))
    paired = steps.astype(int)
    largest = np.zeros(len(deviations))
    for number, s in enumerate(paired):
        differences = deviations[:, [s]] - deviations[:, paired[:number]]
        errors = differences.std(axis=0)
        ratios = differences[:, errors > 0] / errors[errors > 0]
        largest = np.maximum(largest, ratios.max(axis=1, initial=0.0))
    factor = max(np.quantile(largest, CONFIDENCE), ndtri(CONFIDENCE))
    factor = stdtrit(n_groups - 1, ndtr(factor)) * np.sqrt(n_groups / (n_groups - 1))
    errors = (deviations[:, [index]] - deviations[:, later]).std(axis=0)
    return max(0.0, float(np.max(mean[index] - mean[later] + factor * errors)))
