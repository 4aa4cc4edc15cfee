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
from ..risk.averages import mean_with_error, units_of
from .time_limit import too_short

N_DRAWS = 200
# More units are drawn in so many groups, formed at random: means vary by as much.
MOST_GROUPS = 1000


class Uncorrected(Exception):
    """A score that cannot be corrected; the message says why."""


class RecordedLosses(NamedTuple):
    """Losses of one candidate on held-out rows, and the iterates to choose from.

    Attributes
    ----------
    index : int
        The index of its run.
    losses : HeldOutLosses
    iterations : ndarray of int
        The iterates that may be chosen.
    error : callable
        ``error(indices)``, the standard errors of the mean losses of some of these.
    """

    index: int
    losses: HeldOutLosses
    iterations: np.ndarray
    error: Callable


def drawn_groups(rows, rng, groups=None):
    """Groups of rows, and how often each group is in every draw.

    Shapes: rows (n_held_out,), groups (n_samples,), returned counts (N_DRAWS,
    n_groups).

    Parameters
    ----------
    rows : ndarray of int
        All rows that any candidate holds out.
    groups : ndarray of int, default=None
        The groups of rows that depend on each other: each is drawn as a unit.

    Returns
    -------
    group_of : callable
        The numbers of the groups of given rows.
    counts : ndarray
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
    return (lambda held_out: group[np.searchsorted(rows, held_out)]), counts


def check_time(deadline):
    """Raise Uncorrected if a deadline has passed."""
    if deadline is not None and deadline.is_over():
        raise Uncorrected(too_short(deadline.limit))


def chosen_in_draws(recorded, rule, group_of, counts, deadline=None):
    """What every draw chooses, by a rule on the rows drawn.

    Parameters
    ----------
    recorded : list of RecordedLosses
        The candidates to choose from.
    rule : callable
        Picks an iterate from every path.
    group_of, counts
        From :func:`drawn_groups`.
    deadline : Deadline, default=None

    Returns
    -------
    choices : ndarray of int, shape (N_DRAWS, 2)
        The index of a run, and the iterate.
    losses, weights : ndarray of shape (N_DRAWS, n_groups)
        Sums of its losses over the rows of every group, and of their weights.
    """
    least = np.full(N_DRAWS, np.inf)
    choices = np.tile([recorded[0].index, recorded[0].iterations[0]], (N_DRAWS, 1))
    losses, weights = np.zeros((2, *counts.shape))
    for candidate in recorded:
        check_time(deadline)
        labels = group_of(candidate.losses.rows)
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


def corrected_score(recorded, rule, rng, groups=None, deadline=None):
    """The loss of choosing in this way, on rows that had no part in it.

    Parameters
    ----------
    recorded : list of RecordedLosses
        One for each candidate.
    rule : callable
        Picks an iterate from every path.
    groups : ndarray of int, shape (n_samples,), default=None
        As in :func:`drawn_groups`.
    deadline : Deadline, default=None

    Returns
    -------
    score, standard_error : float
        Mean over rows of the loss of the choices of the draws without the row; NaN if
        no draw leaves rows out, as where all are of one group.
    """
    all_rows = np.concatenate([candidate.losses.rows for candidate in recorded])
    group_of, counts = drawn_groups(all_rows, rng, groups)
    _, losses, weights = chosen_in_draws(recorded, rule, group_of, counts, deadline)
    return _mean_over_rest(losses, weights, counts)


def corrected_blend(
    members,
    samples,
    row_weights,
    *,
    part,
    blended,
    rule,
    rng,
    groups=None,
    deadline=None,
):
    """The loss of blending in this way, on rows that had no part in it.

    Every draw chooses the iterate of each member again, and then their weights.

    Parameters
    ----------
    members : list of list of RecordedLosses
        The candidates of every member.
    samples, row_weights : ndarray of shape (n_held_out,)
        The rows that members are blended by, and their weights.
    part : callable
        ``part(index, t)``, what iterate t of a run contributes to a blend, row by row.
    blended : callable
        ``blended(parts, times)``, losses of the rows, (n_held_out,), by a blend of the
        parts of all members, along a last axis, with weights from rows so often drawn.

    Returns
    -------
    score, standard_error : float
        As in :func:`corrected_score`.
    """
    group_of, counts = drawn_groups(samples, rng, groups)
    n_groups, labels = counts.shape[1], group_of(samples)
    chosen = [
        chosen_in_draws(recorded, rule, group_of, counts, deadline)[0]
        for recorded in members
    ]
    # In the order of the iterates, which are computed in blocks.
    distinct = np.unique(np.concatenate(chosen), axis=0).tolist()
    parts = {(index, t): part(index, t) for index, t in distinct}
    losses = np.empty(counts.shape)
    for draw, times in enumerate(counts):
        check_time(deadline)
        drawn = [parts[tuple(choices[draw])] for choices in chosen]
        row_losses = blended(np.stack(drawn, axis=-1), times[labels])
        losses[draw] = np.bincount(labels, row_losses * row_weights, n_groups)
    weights = np.bincount(labels, row_weights, n_groups)
    return _mean_over_rest(losses, np.broadcast_to(weights, counts.shape), counts)


def _mean_over_rest(losses, weights, counts):
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
