"""The score of a choice, corrected for the optimism of the choice.

The minimum of many estimates is below the risk on average. The bootstrap of BBC-CV
(Tsamardinos, Greasidou and Borboudakis, 2018) repeats the choice on rows drawn from the
held-out ones, and evaluates it on the rows not drawn.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..risk.averages import mean_with_error
from .rules import place_of_least

N_DRAWS = 200
# More rows are drawn in so many groups, formed at random: means vary by as much.
MOST_GROUPS = 1000


class RecordedLosses(NamedTuple):
    """Losses of one candidate on held-out rows, and the iterates to choose from.

    Attributes
    ----------
    iterations : ndarray of int
        The iterates that may be chosen.
    error : callable
        ``error(places)``, the standard errors of the mean losses of some of these.
    """

    losses: object
    iterations: np.ndarray
    error: Callable


def drawn_groups(rows, rng):
    """Groups of rows, and how often each group is in every draw.

    Parameters
    ----------
    rows : ndarray of int
        All rows that any candidate holds out.

    Returns
    -------
    group_of : callable
        The numbers of the groups that some rows are in.
    counts : ndarray of shape (N_DRAWS, n_groups)
    """
    rows = np.unique(rows)
    n_groups = min(len(rows), MOST_GROUPS)
    group = rng.permutation(len(rows)) % n_groups
    drawn = rng.randint(n_groups, size=(N_DRAWS, n_groups))
    drawn += n_groups * np.arange(N_DRAWS)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=N_DRAWS * n_groups)
    return (
        lambda some: group[np.searchsorted(rows, some)],
        counts.reshape(N_DRAWS, n_groups),
    )


class Drawn(NamedTuple):
    """The choices of the draws from one candidate.

    Attributes
    ----------
    places : ndarray of int, shape (N_DRAWS,)
        The iterate that each draw has chosen, as a place in ``iterations``.
    values : ndarray of shape (N_DRAWS,)
        Their mean losses on the rows drawn.
    sums : ndarray of shape (n_iterates, n_groups)
        Losses of every group, by those that may be chosen.
    weights : ndarray of shape (n_groups,)
    """

    places: np.ndarray
    values: np.ndarray
    sums: np.ndarray
    weights: np.ndarray


def chosen_in_draws(recorded, rule, group_of, counts):
    """The iterate of a candidate that a rule chooses on the rows of every draw.

    Parameters
    ----------
    rule : callable
        What picks an iterate from every path.
    group_of, counts
        From :func:`drawn_groups`.

    Returns
    -------
    Drawn
    """
    labels = group_of(recorded.losses.rows)
    sums, weights = recorded.losses.sums(labels, counts.shape[1])
    sums = sums[recorded.iterations]
    with np.errstate(invalid="ignore", divide="ignore"):
        paths = (counts @ sums.T) / (counts @ weights)[:, None]
    places = rule(paths, recorded.error)
    return Drawn(places, paths[np.arange(N_DRAWS), places], sums, weights)


def corrected_score(recorded, rule, rng):
    """The loss of choosing in this way, on rows that had no part in it.

    Parameters
    ----------
    recorded : list of RecordedLosses
        One for each candidate.
    rule : callable
        What picks an iterate from a path.

    Returns
    -------
    score, standard_error : float
        Mean over rows of the loss of the choices of the draws without the row; NaN if
        no draw leaves rows out.
    """
    all_rows = np.concatenate([each.losses.rows for each in recorded])
    group_of, counts = drawn_groups(all_rows, rng)
    least = np.full(N_DRAWS, np.inf)
    # Sums of the losses in every group by what each draw chooses, and their weights.
    losses, weights = np.zeros((2, *counts.shape))
    for each in recorded:
        drawn = chosen_in_draws(each, rule, group_of, counts)
        is_better = drawn.values < least
        least[is_better] = drawn.values[is_better]
        losses[is_better] = drawn.sums[drawn.places[is_better]]
        weights[is_better] = drawn.weights
    return _mean_of_others(losses, weights, counts)


def corrected_blend(members, rows, blended, rule, rng):
    """The loss of blending in this way, on rows that had no part in it.

    Every draw chooses the iterate of each member again, and then their weights.

    Parameters
    ----------
    members : list of list of RecordedLosses
        The candidates of every member.
    rows : (ndarray of int, ndarray), each of shape (n_held_out,)
        Which samples members are blended by, and the weights of these rows.
    blended : callable
        ``blended(choices, times)``, losses of the rows, (n_held_out,), by a blend of
        (candidate, iterate) of every member with weights from rows so often drawn.
    rule : callable
        What picks an iterate from a path.

    Returns
    -------
    score, standard_error : float
        As :func:`corrected_score` gives them.
    """
    samples, row_weights = rows
    group_of, counts = drawn_groups(samples, rng)
    n_groups, labels = counts.shape[1], group_of(samples)
    choices = [_best_in_draws(own, rule, group_of, counts) for own in members]
    losses = np.empty(counts.shape)
    for draw, times in enumerate(counts):
        found = blended([own[draw] for own in choices], times[labels])
        losses[draw] = np.bincount(labels, found * row_weights, n_groups)
    weights = np.bincount(labels, row_weights, n_groups)
    return _mean_of_others(losses, np.broadcast_to(weights, counts.shape), counts)


def _best_in_draws(recorded, rule, group_of, counts):
    """The candidate of a member and its iterate that every draw chooses, in pairs."""
    drawn = [chosen_in_draws(each, rule, group_of, counts) for each in recorded]
    bests = place_of_least(np.stack([each.values for each in drawn], axis=1))
    return [
        (best, int(recorded[best].iterations[drawn[best].places[draw]]))
        for draw, best in enumerate(bests)
    ]


def _mean_of_others(losses, weights, counts):
    """The mean over groups of their loss by the draws without them.

    Shapes: losses, weights, counts (N_DRAWS, n_groups).

    Returns
    -------
    mean, standard_error : float
    """
    is_out = counts == 0
    losses, weights = (
        np.sum(values, axis=0, where=is_out) for values in (losses, weights)
    )
    counted = weights > 0
    if not counted.any():
        return np.nan, np.nan
    # Groups that are left out by more draws count no more for that.
    share = weights[counted] / is_out.sum(axis=0)[counted]
    mean, error = mean_with_error((losses[counted] / weights[counted])[None], share)
    return float(mean[0]), float(error[0])
