"""Cox's partial likelihood, a loss that couples rows: each event is compared with all
rows that are at risk at its time."""

from dataclasses import dataclass

import numpy as np

from .losses import Loss

TIES = "breslow", "efron"
# Exponents that differ by less are summed up as they are: the least of them is far from
# underflow, and the sums have all digits.
WIDEST = 600.0


@dataclass(frozen=True)
class Cox(Loss):
    """Half the deviance of Cox's partial likelihood.

    With weights w of the rows, S_k the sum of w exp(z) over the rows that are at risk
    at the k-th time of events, and D_k the weight of its events, the sum over all rows
    is

        sum_k D_k log(S_k / D_k) - sum_(events i) w_i z_i

    for Breslow's ties: minus the logarithm of the partial likelihood, plus a constant
    that makes the least possible value zero and is zero for equal weights of one
    without ties. Efron's likelihood takes the events of one time out of the sum one
    after the other. A row of weight zero is in no risk set.

    Targets are times, of which only the order counts, with a minus where a row is
    censored; none is zero. The value of a row is its part in the sum: zero where it is
    censored.

    Parameters
    ----------
    ties : {"breslow", "efron"}, default="breslow"
    """

    name = "half Cox deviance"
    couples_rows = True
    has_bounded_curvature = False
    ties: str = "breslow"

    def __post_init__(self):
        if self.ties not in TIES:
            raise ValueError(f"ties must be 'breslow' or 'efron', got {self.ties!r}.")

    def check_target(self, target: np.ndarray) -> None:
        if not (target > 0).any():
            raise ValueError(
                "All rows are censored: the partial likelihood needs at least one "
                "event."
            )

    def value(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        return self.weighted_values(target, predictor, np.ones_like(target))

    def derivative(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        return self.slopes(target, predictor, np.ones_like(target))

    def curvature_bound(self, target: np.ndarray) -> float:
        # The weighted mean of the curvatures, at most.
        return 1.0

    def weighted_values(
        self, target: np.ndarray, predictor: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        sets = RiskSets.of(target, predictor, weights, self.ties)
        # All events of a time have the same part, whatever their order.
        values = sets.mean_logarithms()[sets.event_group] - sets.predictor[sets.events]
        values *= sets.weights[sets.events]
        return sets.unsorted(sets.at_events(values), predictor)

    def slopes(
        self, target: np.ndarray, predictor: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        sets = RiskSets.of(target, predictor, weights, self.ties)
        slopes = sets.expected_events()
        slopes[sets.events] -= sets.weights[sets.events]
        return sets.unsorted(slopes, predictor)

    def largest_curvature(
        self, target: np.ndarray, predictor: np.ndarray, weights: np.ndarray
    ) -> float:
        """The largest cumulative hazard of a row until its time.

        The second derivatives in the predictors are at most the diagonal matrix of
        these, times the weights.
        """
        sets = RiskSets.of(target, predictor, weights, self.ties)
        has_weight = sets.weights > 0
        hazards = sets.expected_events()[has_weight] / sets.weights[has_weight]
        return float(hazards.max(initial=0.0))


@dataclass(frozen=True, eq=False)
class RiskSets:
    """Rows from the last time to the first, and the risk sets of all events.

    The rows at risk at a time are the first ones, up to the last row of that time.
    Shapes: predictor, weights and exponent (n_rows, n_fits); first, last (n_rows,), the
    bounds of the rows of the same time; events (n_events,), their rows; event_group
    (n_events,), the number of their time; begins (n_times,), the first event of each;
    terms and coefficients (n_events, n_fits); shares (n_events, n_fits) or 0.
    """

    order: np.ndarray
    first: np.ndarray
    last: np.ndarray
    predictor: np.ndarray
    weights: np.ndarray
    exponent: np.ndarray  # of w exp(z)
    events: np.ndarray
    event_group: np.ndarray
    begins: np.ndarray
    # Logarithms of the sum over the rows at risk, less the part of the events of the
    # same time that Efron has taken out before.
    terms: np.ndarray
    # Share of the events of the same time that has been taken out.
    shares: np.ndarray
    n_events: np.ndarray  # of positive weight, at each time, (n_times, n_fits)
    event_weight: np.ndarray  # of the events of each time, (n_times, n_fits)

    @classmethod
    def of(cls, target, predictor, weights, ties):
        """The risk sets of targets (n_rows, 1, ...) for fits with these predictors."""
        target = target.reshape(len(target), -1)[:, 0]
        order = np.argsort(-np.abs(target), kind="stable")
        target, time = target[order], np.abs(target)[order]
        is_new = np.append(True, time[1:] != time[:-1])
        begin = np.flatnonzero(is_new)
        group, end = np.cumsum(is_new) - 1, np.append(begin[1:], len(time))
        z = predictor.reshape(len(order), -1)[order].astype(np.float64, copy=False)
        w = weights.reshape(len(order), -1)[order].astype(np.float64, copy=False)
        w = np.broadcast_to(w, z.shape)
        events = np.flatnonzero(target > 0)
        is_first = np.append(True, np.diff(group[events]) > 0)[: len(events)]
        begins, event_group = np.flatnonzero(is_first), np.cumsum(is_first) - 1
        with np.errstate(divide="ignore", invalid="ignore"):
            exponent = z + np.log(w)
            last = end[group] - 1
            terms = log_sums(exponent)[last[events]]
            counts = w[events] > 0
            n_events = np.add.reduceat(counts, begins, axis=0, dtype=int)
            shares = np.zeros(terms.shape)
            if ties == "efron":
                before: np.ndarray = np.cumsum(counts, axis=0) - counts
                before -= before[begins][event_group]
                shares = counts * before / np.maximum(n_events, 1)[event_group]
                tied = np.logaddexp.reduceat(exponent[events], begins, axis=0)
                terms += np.log1p(-shares * np.exp(tied[event_group] - terms))
            event_weight = np.add.reduceat(w[events], begins, axis=0)
        return cls(
            order=order,
            first=begin[group],
            last=last,
            predictor=z,
            weights=w,
            exponent=exponent,
            events=events,
            event_group=event_group,
            begins=begins,
            terms=terms,
            shares=shares,
            n_events=n_events,
            event_weight=event_weight,
        )

    def mean_logarithms(self):
        """Means of log(S_k / D_k) over the events of each time, (n_times, n_fits)."""
        counts = self.weights[self.events] > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            least = np.log(self.event_weight)[self.event_group] + np.log1p(-self.shares)
            logarithms = np.where(counts, self.terms - least, 0.0)
        sums = np.add.reduceat(logarithms, self.begins, axis=0)
        return sums / np.maximum(self.n_events, 1)

    def log_hazards(self):
        """Logarithms of what each event adds to the cumulative hazard."""
        # Those of one time add the same with Breslow's ties.
        each = self.event_weight / np.maximum(self.n_events, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            hazards = np.log(each)[self.event_group] - self.terms
        return np.where(self.weights[self.events] > 0, hazards, -np.inf)

    def log_cumulative_hazards(self):
        """Logarithms of the cumulative hazards at the times of events, last first."""
        return log_sums(self.log_hazards()[::-1])[::-1][self.begins]

    def expected_events(self):
        """w exp(z) times the cumulative hazard of every row at its time."""
        of_events = self.log_hazards()
        hazards = np.full(self.exponent.shape, -np.inf)
        hazards[self.events] = of_events
        cumulative = log_sums(hazards[::-1])[::-1][self.first]
        expected = np.exp(self.exponent + cumulative)
        if self.shares.any():  # an event is no more at risk where it is taken out
            with np.errstate(divide="ignore"):
                taken = of_events + np.log(self.shares)
            taken = np.logaddexp.reduceat(taken, self.begins, axis=0)
            taken = self.exponent[self.events] + taken[self.event_group]
            expected[self.events] -= np.exp(taken)
        return expected

    def at_events(self, values):
        """Values of the events, and zeros of all other rows."""
        all_values = np.zeros(self.exponent.shape)
        all_values[self.events] = values
        return all_values

    def unsorted(self, values, like):
        """Values of the rows in their own order, in the shape of an array."""
        result = np.empty_like(values)
        result[self.order] = values
        return result.reshape(like.shape)


def log_sums(exponents):
    """Logarithms of the sums of exp(exponents) over all rows up to each one."""
    largest = exponents.max(axis=0)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    below = largest - exponents
    if below[np.isfinite(below)].max(initial=0.0) > WIDEST:
        return np.logaddexp.accumulate(exponents, axis=0)
    with np.errstate(divide="ignore"):
        return np.log(np.cumsum(np.exp(-below), axis=0)) + largest
