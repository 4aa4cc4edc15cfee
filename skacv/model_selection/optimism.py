"""The score of a choice, corrected for the optimism of the choice.

The minimum of many estimates is below the risk on average. The bootstrap of BBC-CV
(Tsamardinos, Greasidou and Borboudakis, 2018) repeats the choice on rows drawn from the
held-out ones, and evaluates it on the rows not drawn. Rows of a group are drawn
together, and a row that several folds hold out is one.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._estimator.estimates.held_out_losses import HeldOutLosses
from ..risk.averages import mean_with_error, units_of
from .time_limit import is_over, too_short

N_DRAWS = 200
# More units are drawn in so many groups, formed at random: means vary by as much.
MOST_GROUPS = 1000


class Uncorrected(Exception):
    """A score that cannot be corrected; the message says why."""


class RecordedLosses(NamedTuple):
    """Losses of one candidate on held-out rows, and the iterates to choose from.

    Attributes
    ----------
    place : int
        The place of its run.
    losses : HeldOutLosses
    iterations : ndarray of int
        The iterates that may be chosen.
    error : callable
        ``error(places)``, the standard errors of the mean losses of some of these.
    """

    place: int
    losses: HeldOutLosses
    iterations: np.ndarray
    error: Callable


def drawn_groups(rows, rng, groups=None):
    """Groups of rows, and how often each group is in every draw.

    Parameters
    ----------
    rows : ndarray of int
        All rows that any candidate holds out.
    groups : ndarray of int, shape (n_samples,), default=None
        The groups of rows that depend on each other, of which each is drawn whole.

    Returns
    -------
    group_of : callable
        The numbers of the groups that some rows are in.
    counts : ndarray of shape (N_DRAWS, n_groups)
    """
    rows = np.unique(rows)
    units = units_of(rows, groups)
    n_units = units.max() + 1
    n_groups = min(n_units, MOST_GROUPS)
    group = (rng.permutation(n_units) % n_groups)[units]
    drawn = rng.randint(n_groups, size=(N_DRAWS, n_groups))
    drawn += n_groups * np.arange(N_DRAWS)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=N_DRAWS * n_groups)
    counts = counts.reshape(N_DRAWS, n_groups)
    return (lambda some: group[np.searchsorted(rows, some)]), counts


def check_time(deadline):
    """Raise Uncorrected if a deadline has passed."""
    if is_over(deadline):
        raise Uncorrected(too_short(deadline.limit))


def chosen_in_draws(recorded, rule, group_of, counts, deadline=None):
    """What every draw chooses, by a rule on the rows drawn.

    Parameters
    ----------
    recorded : list of RecordedLosses
        The candidates to choose from.
    rule : callable
        What picks an iterate from every path.
    group_of, counts
        From :func:`drawn_groups`.
    deadline : Deadline, default=None

    Returns
    -------
    choices : ndarray of int, shape (N_DRAWS, 2)
        The place of a run, and the iterate.
    losses, weights : ndarray of shape (N_DRAWS, n_groups)
        Sums of its losses over the rows of every group, and of their weights.
    """
    least = np.full(N_DRAWS, np.inf)
    choices = np.tile([recorded[0].place, recorded[0].iterations[0]], (N_DRAWS, 1))
    losses, weights = np.zeros((2, *counts.shape))
    for each in recorded:
        check_time(deadline)
        labels = group_of(each.losses.rows)
        sums, own_weights = each.losses.sums(labels, counts.shape[1])
        sums = sums[each.iterations]
        with np.errstate(invalid="ignore", divide="ignore"):
            paths = (counts @ sums.T) / (counts @ own_weights)[:, None]
        places = rule(paths, each.error)
        values = paths[np.arange(N_DRAWS), places]
        better = np.flatnonzero(values < least)
        least[better], places = values[better], places[better]
        choices[better, 0], choices[better, 1] = each.place, each.iterations[places]
        losses[better], weights[better] = sums[places], own_weights
    return choices, losses, weights


def corrected_score(recorded, rule, rng, groups=None, deadline=None):
    """The loss of choosing in this way, on rows that had no part in it.

    Parameters
    ----------
    recorded : list of RecordedLosses
        One for each candidate.
    rule : callable
        What picks an iterate from every path.
    groups : ndarray of int, shape (n_samples,), default=None
        As :func:`drawn_groups` takes them.
    deadline : Deadline, default=None

    Returns
    -------
    score, standard_error : float
        Mean over rows of the loss of the choices of the draws without the row; NaN if
        no draw leaves rows out, as where all are of one group.
    """
    all_rows = np.concatenate([each.losses.rows for each in recorded])
    group_of, counts = drawn_groups(all_rows, rng, groups)
    _, losses, weights = chosen_in_draws(recorded, rule, group_of, counts, deadline)
    return _mean_of_others(losses, weights, counts)


def corrected_blend(
    members, rows, part, blended, rule, rng, groups=None, deadline=None
):
    """The loss of blending in this way, on rows that had no part in it.

    Every draw chooses the iterate of each member again, and then their weights.

    Parameters
    ----------
    members : list of list of RecordedLosses
        The candidates of every member.
    rows : (ndarray of int, ndarray), each of shape (n_held_out,)
        Which samples members are blended by, and the weights of these rows.
    part : callable
        ``part(place, t)``, what iterate t of a run contributes to a blend, row by row.
    blended : callable
        ``blended(parts, times)``, losses of the rows, (n_held_out,), by a blend of the
        parts of all members, along a last axis, with weights from rows so often drawn.
    rule : callable
        What picks an iterate from every path.
    groups : ndarray of int, shape (n_samples,), default=None
        As :func:`drawn_groups` takes them.
    deadline : Deadline, default=None

    Returns
    -------
    score, standard_error : float
        As :func:`corrected_score` gives them.
    """
    samples, row_weights = rows
    group_of, counts = drawn_groups(samples, rng, groups)
    n_groups, labels = counts.shape[1], group_of(samples)
    chosen = [
        chosen_in_draws(own, rule, group_of, counts, deadline)[0] for own in members
    ]
    # In the order of the iterates, which are computed in blocks.
    wanted = np.unique(np.concatenate(chosen), axis=0).tolist()
    parts = {(place, t): part(place, t) for place, t in wanted}
    losses = np.empty(counts.shape)
    for draw, times in enumerate(counts):
        check_time(deadline)
        own = np.stack([parts[tuple(each[draw])] for each in chosen], axis=-1)
        found = blended(own, times[labels])
        losses[draw] = np.bincount(labels, found * row_weights, n_groups)
    weights = np.bincount(labels, row_weights, n_groups)
    return _mean_of_others(losses, np.broadcast_to(weights, counts.shape), counts)


def _mean_of_others(losses, weights, counts):
    """The mean over groups of their loss by the draws without them.

    Shapes: losses, weights, counts (N_DRAWS, n_groups).

    Returns
    -------
    mean, standard_error : float
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
