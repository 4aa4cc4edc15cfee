"""The score of a choice, freed of the optimism of having been chosen.

The least over many estimates lies below what it estimates. The bootstrap of BBC-CV
(Tsamardinos, Greasidou and Borboudakis, 2018) chooses again by rows that are drawn from
the held-out ones, and judges that choice by the rows that were not drawn.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..risk.averages import mean_with_error

N_DRAWS = 200
# More rows are drawn in so many groups, formed at random: means vary by as much.
MOST_GROUPS = 1000


class Judged(NamedTuple):
    """What the iterates of one candidate cost held-out rows, and which may be chosen.

    Attributes
    ----------
    costs : HeldOutCosts
    iterations : ndarray of int
        The iterates that may be chosen.
    error : callable
        ``error(place)``, the standard error of the mean cost of one of these.
    """

    costs: object
    iterations: np.ndarray
    error: Callable


def drawn_groups(rows, rng):
    """Rows in groups, and how often each group is in every draw.

    Parameters
    ----------
    rows : ndarray of int
        All that any candidate held out.
    rng : RandomState

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


def corrected_score(judged, rule, rng):
    """What choosing as this was chosen costs rows that had no part in it.

    Parameters
    ----------
    judged : list of Judged
        One for each candidate.
    rule : callable
        What picks an iterate from a path.
    rng : RandomState

    Returns
    -------
    score, standard_error : float
        The mean over rows of what the choices of the draws without them cost; NaN
        where no draw leaves rows to be judged by.
    """
    all_rows = np.concatenate([each.costs.rows for each in judged])
    group_of, counts = drawn_groups(all_rows, rng)
    n_groups = counts.shape[1]
    least = np.full(N_DRAWS, np.inf)
    # Sums of the costs in every group of what each draw chooses, and their weights.
    costs, weights = np.zeros((2, N_DRAWS, n_groups))
    for each in judged:
        sums, own_weights = each.costs.sums(group_of(each.costs.rows), n_groups)
        sums = sums[each.iterations]
        with np.errstate(invalid="ignore", divide="ignore"):
            paths = (counts @ sums.T) / (counts @ own_weights)[:, None]
        places = np.array([rule(path, each.error) for path in paths])
        values = paths[np.arange(N_DRAWS), places]
        is_better = values < least
        least[is_better] = values[is_better]
        costs[is_better] = sums[places[is_better]]
        weights[is_better] = own_weights
    is_out = counts == 0
    costs, weights = (
        np.sum(values, axis=0, where=is_out) for values in (costs, weights)
    )
    judging = weights > 0
    if not judging.any():
        return np.nan, np.nan
    # Groups that are left out by more draws count no more for that.
    share = weights[judging] / is_out.sum(axis=0)[judging]
    mean, error = mean_with_error((costs[judging] / weights[judging])[None], share)
    return float(mean[0]), float(error[0])
