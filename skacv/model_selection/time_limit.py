"""``time_limit``: which runs begin, how far they go on, and what is said of the others.

Runs begin in the order of their expected price. The first always takes a step. Another
one begins if its first update is expected to end in time, and goes on in steps that are
expected to. What a step takes is expected from the one before, so that no step is
longer than a share of the time that is left, unless it is of one update.
"""

from time import perf_counter

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

from .._estimator.collections import is_collection
from .._estimator.data.row_summary import RowSummary
from .._estimator.devices import in_numpy
from .._estimator.run.source import shape_of
from .._warnings import collected_warnings, warn

# The second update is expected to take at least this share of the first, which has also
# taken what comes before all updates; or more, if prices say so.
LEAST_OF_FIRST = 0.2
# Runs that a warning names; of more it says how many.
MOST_NAMED = 5
# Runs end after this share of the limit: the rest is for comparing and blending them.
SHARE_OF_RUNS = 0.9
# A step of several updates takes at most this share of what is left for runs.
SHARE_OF_STEP = 0.25
# An update that is expected to take less says nothing of how slow the machine is.
SHORTEST = 0.1
# Processes that have not been started take about as long to import what they need.
SECONDS_TO_START_PROCESSES = 3.0


def clock():
    """Seconds, in all processes of a machine since the same moment."""
    return perf_counter()


class Deadline:
    """When a fit with ``time_limit`` must be over, counted from now.

    Attributes
    ----------
    limit : float
        In seconds.
    has_begun : bool
        Whether a run has begun: the first may begin whatever it takes.
    slowness : float
        Seconds that first updates have taken over those that were expected, at most.
    """

    def __init__(self, limit):
        self.limit = limit
        self.has_begun = False
        self.slowness = 1.0
        self._begun = clock()

    def left(self):
        """Seconds that runs may still take."""
        return self._begun + SHARE_OF_RUNS * self.limit - clock()

    def is_over(self):
        """Whether the whole limit has been used up."""
        return clock() - self._begun > self.limit

    def admits(self, price):
        """Whether a run of this price may begin."""
        if not self.has_begun:
            return True
        return price.first * self.slowness <= max(self.left(), 0.0)

    def learn(self, price, seconds):
        """Take note of what the first update of a run has taken."""
        self.has_begun = True
        # Short updates mostly take what has nothing to do with their price.
        expected = max(price.first, SHORTEST)
        self.slowness = max(self.slowness, seconds / expected)


def is_over(deadline):
    """Whether a deadline has passed, if there is one."""
    return deadline is not None and deadline.is_over()


class CandidateRun:
    """The run of one candidate, evaluated as it goes on, and cut at a deadline.

    Parameters
    ----------
    estimator : estimator
    data : tuple
        X, y, and a dict of what else ``fit_up_to`` is passed.
    criterion : PathCriterion or ScorerCriterion
    deadline : Deadline or None
    price : Price or None
        None without a deadline.

    Attributes
    ----------
    path : ndarray of shape (n_iter_ + 1,) or None
        Value of the criterion at every iterate; None before the run has begun.
    seconds : float
        Time of the run and its evaluation.
    warned : list
        Warnings of the last step.
    is_cut : bool
        Whether the deadline has ended the run.
    """

    def __init__(self, estimator, data, criterion, deadline, price):
        self.estimator, self.criterion = estimator, criterion
        self.deadline, self.price = deadline, price
        self._X, self._y, self._fit_params = data
        self.path, self.seconds, self.warned = None, 0.0, []
        self.is_cut = False
        self._n_updates, self._last_step = 0, None

    def go_on(self, n_updates):
        """Continue up to a total number of updates, or as far as time allows.

        Returns
        -------
        bool
            Whether the run is over: complete, or cut.
        """
        while (n_next := self._next(n_updates)) > self._n_updates:
            begun = clock()
            # Only what the last of several steps warns of counts.
            with collected_warnings() as self.warned:
                is_complete = self.estimator.fit_up_to(
                    n_next, self._X, self._y, **self._fit_params
                )
            self.path = self.criterion.path(in_numpy(self.estimator))
            seconds = clock() - begun
            self.seconds += seconds
            if self.deadline is not None and self._last_step is None:
                self.deadline.learn(self.price, seconds)
                seconds *= max(LEAST_OF_FIRST, self.price.update / self.price.first)
            self._last_step = n_next - self._n_updates, seconds
            self._n_updates = n_next
            if is_complete:
                return True
        self.is_cut = self._n_updates < n_updates
        return self.is_cut

    def _next(self, n_updates):
        """Total number of updates after the next step; no more than now if it is cut.

        A step is expected to take as long as the one before, by update, and no less
        than that one if it is shorter. The first two steps are of one update: only the
        second shows what an update takes.
        """
        if self.deadline is None:
            return n_updates
        if self._last_step is None:
            return min(n_updates, int(self.deadline.admits(self.price)))
        size, seconds = self._last_step
        left = self.deadline.left()
        if seconds > left:
            return self._n_updates
        if self._n_updates > 1:
            # More than any run has, if the clock has not moved.
            most = SHARE_OF_STEP * left / seconds if seconds else np.inf
            size = max(size, int(min(size * most, n_updates)))
        return min(n_updates, self._n_updates + size)


def prices_of(groups, y):
    """The expected price of every group of candidates.

    Parameters
    ----------
    groups : list of list of Candidate
    y : as passed to fit

    Returns
    -------
    list of Price
        That of one candidate of each group: all of a group cost the same.
    """
    n_outputs = 1
    if not (y is None or is_collection(y)):
        n_outputs = max([1, *shape_of(y)[1:]])
        if is_classifier(groups[0][0].estimator):
            n_classes = len(np.unique(np.asarray(y)))
            n_outputs = n_classes if n_classes > 2 else 1
    prices = []
    for (_, _, estimator, X, *_), *_ in groups:
        shape = X.shape if isinstance(X, RowSummary) else shape_of(X)
        # A collection may not know how many rows it has.
        n_rows = 1 if is_collection(X) else max(1, shape[0])
        n_columns = shape[1] if len(shape) > 1 else 1
        prices.append(estimator._price(n_rows, n_columns, n_outputs))
    return prices


def in_time(candidates, runs, deadline):
    """Candidates that have been run, their runs, and why others have not.

    Parameters
    ----------
    candidates : list of Candidate
    runs : list of EvaluatedFit or None
        None for candidates that there was no time for.
    deadline : Deadline or None

    Returns
    -------
    candidates : list of Candidate
    runs : list of EvaluatedFit
    late : list of (str, dict, str)
        Members, combinations of their parameters, and why they were not run.
    """
    pairs = list(zip(candidates, runs, strict=True))
    late = [
        (candidate.member, candidate.params, too_short(deadline.limit))
        for candidate, run in pairs
        if run is None
    ]
    begun = [(candidate, run) for candidate, run in pairs if run is not None]
    return *map(list, zip(*begun)), late


def warn_of_time(limit, candidates, runs, late):
    """Say in one warning which runs a limit has cut, and which it has left out.

    Parameters
    ----------
    limit : float or None
    candidates, runs, late
        As :func:`in_time` returns them.
    """
    cut = [
        f"{candidate.member!r}{_with(candidate.params)} at iteration "
        f"{run.estimator.n_iter_}"
        for candidate, run in zip(candidates, runs)
        if run.is_cut
    ]
    left_out = [f"{member!r}{_with(params)}" for member, params, _ in late]
    said = [
        f"{verb} {_listed(names)}"
        for verb, names in (("cut", cut), ("left out", left_out))
        if names
    ]
    if said:
        warn(f"{too_short(limit)}: it has {' and '.join(said)}.", ConvergenceWarning)


def _with(params):
    return f" with {params}" if params else ""


def _listed(names):
    """The first of some names, and how many others there are."""
    n_more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {n_more} more" if n_more > 0 else "")


def too_short(limit):
    """That a limit left no time, for messages."""
    return f"time_limit={limit:g} s was too short"
