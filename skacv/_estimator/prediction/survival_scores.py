"""How well log hazard ratios order times of events, and how well they predict them."""

import numpy as np
from scipy.integrate import trapezoid

from .baseline_hazards import BaselineHazards

# Times over which a Brier score is integrated, at most; and the shares of the rows
# whose times are earlier than the first and the last of them. Few rows are at risk at
# the latest times, with large weights.
MOST_TIMES, FIRST_SHARE, LAST_SHARE = 100, 0.1, 0.9


def concordance(y, risk, sample_weight=None):
    """Harrell's share of pairs of rows of which the riskier one has the event first.

    Rows can be compared if one of them has its event before the time of the other, or
    at the time at which the other is censored. Equal risks count half, and a pair as
    much as the product of its weights. The share is NaN if there are no such rows.

    Shapes: y (n_rows,) with event and time; risk and weights (n_rows,).
    """
    weights = np.ones(len(y)) if sample_weight is None else sample_weight
    # An event is compared with all rows that have a larger number than its own.
    moment = 2 * np.unique(y["time"], return_inverse=True)[1].ravel() + ~y["event"]
    rank = np.unique(risk, return_inverse=True)[1].ravel()
    later = sums_above(moment, weights)
    # The largest risks of a moment come first: they are not below those that follow.
    order, below = np.lexsort((-rank, -moment)), np.empty(len(moment))
    below[order] = sums_of_smaller_before(rank[order], weights[order])
    both = rank * (moment.max() + 1) + moment
    equal = sums_above(both, weights) - sums_above(rank, weights)
    of_events = np.where(y["event"], weights, 0)
    n_pairs = of_events @ later
    return float(of_events @ (below + 0.5 * equal) / n_pairs) if n_pairs else np.nan


def sums_above(values, weights):
    """For every value the weights of all that are larger."""
    order = np.argsort(values)
    below = np.append(0, np.cumsum(weights[order]))
    return below[-1] - below[np.searchsorted(values[order], values, side="right")]


def sums_of_smaller_before(values, weights):
    """For every one of some numbers from zero, the weights of smaller ones before it.

    Shapes: values, weights and returned (n,).
    """
    number, sums, size = np.arange(len(values)), np.zeros(len(values)), 1
    while size < len(values):
        # Sorted halves of blocks, as in merging: those on the right add up the smaller
        # ones on the left.
        block, is_right = number // (2 * size), number // size % 2 == 1
        keys, is_left = block * (values.max() + 1) + values, ~is_right
        order = np.argsort(keys[is_left])
        below, left = np.append(0, np.cumsum(weights[is_left][order])), keys[is_left]
        up_to = below[np.searchsorted(left[order], keys[is_right])]
        sums[is_right] += up_to - below[block[is_right] * size]
        size *= 2
    return sums


def integrated_brier_score(y, log_ratios, sample_weight=None):
    """The integrated Brier score of proportional hazards (Graf et al. 1999).

    With the survival functions S_i of the rows, from Breslow's baseline hazard of all
    of them, and G the Kaplan-Meier estimate of being censored after a time, it is the
    mean over the times t of

        (1 / sum w) sum_i w_i (S_i(t)^2 [t_i <= t, event] / G(t_i)
                               + (1 - S_i(t))^2 [t_i > t] / G(t)),

    by the trapezoidal rule, over times of events at which a tenth to nine tenths of the
    rows have had theirs. NaN if there are fewer than two such times.

    Shapes: y (n_rows,) with event and time; log_ratios and weights (n_rows,).
    """
    weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
    time, event = y["time"], y["event"]
    times = brier_times(time[event & (weights > 0)], time, weights)
    if len(times) < 2:
        return np.nan
    baseline = BaselineHazards.of(y, weights, np.reshape(log_ratios, (1, -1, 1)))
    steps = baseline.times[baseline.is_step]
    log_hazards = baseline.log_hazards[0][np.searchsorted(steps, times)]
    survival = np.exp(-np.exp(np.add.outer(log_ratios, log_hazards)))
    stays_uncensored = uncensored_shares(y, weights)
    distinct = np.unique(time)
    of_rows, of_times = (
        stays_uncensored[np.searchsorted(distinct, at)][:, None] for at in (time, times)
    )
    has_event = (time[:, None] <= times) & event[:, None]
    is_at_risk = time[:, None] > times
    with np.errstate(divide="ignore", invalid="ignore"):
        past = np.where(has_event, survival**2 / of_rows, 0.0)
    scores = weights @ (past + is_at_risk * (1 - survival) ** 2 / of_times.T)
    scores /= weights.sum()
    return float(trapezoid(scores, times) / (times[-1] - times[0]))


def brier_times(of_events, time, weights):
    """The distinct times of events over which a Brier score is integrated."""
    order = np.argsort(time)
    shares = np.cumsum(weights[order]) / weights.sum()
    times = np.unique(of_events)
    last_rows = np.searchsorted(time[order], times, side="right") - 1
    shares = shares[last_rows]
    times = times[(shares >= FIRST_SHARE) & (shares <= LAST_SHARE)]
    places = np.linspace(0, len(times) - 1, min(MOST_TIMES, len(times))).astype(int)
    return times[places]


def uncensored_shares(y, weights):
    """Kaplan-Meier estimates of being censored after each distinct time.

    Of rows with the same time those with events are no more at risk of being censored.

    Shapes: returned (n_times,).
    """
    distinct, number = np.unique(y["time"], return_inverse=True)
    n_times, number = len(distinct), number.ravel()
    all_rows = np.bincount(number, weights, n_times)
    events = np.bincount(number, weights * y["event"], n_times)
    at_risk = np.cumsum(all_rows[::-1])[::-1] - events
    censored = all_rows - events
    hazards = np.divide(censored, at_risk, out=np.zeros(n_times), where=at_risk > 0)
    return np.cumprod(1 - hazards)
