"""``time_limit``: the prices of runs, the deadline, and a warning of what it has cut.

First is the run whose first update is expected to end first. The others follow in the
order of their expected price; with many rows boosted trees, which gain most from these,
are the second, and forests always come after them. The first run always takes a step.
Another one begins if its first update is expected to end in time, and goes on in steps
that are expected to (``ModelRun``).
"""

from contextlib import suppress
from threading import TIMEOUT_MAX, Event, Thread
from time import perf_counter

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from sklearn.utils.parallel import Parallel, delayed

from .._compat import results_of
from .._estimator.collections import is_collection
from .._estimator.data.checks import shape_of
from .._estimator.data.row_summary import RowSummary
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.estimates.terms import Price, terms_of
from .._warnings import warn
from ..staged import Staged
from .shared import DrawnSplits

# Runs end after this share of the limit: the rest is for comparing and blending them.
SHARE_OF_RUNS = 0.9
# An update that is expected to take less does not show how slow the machine is.
SHORTEST = 0.1
# Processes take about as long to start, and to import what they need, and more on a
# busy machine: less time is not worth it. They are waited for during a share of what is
# left.
SECONDS_TO_START_PROCESSES, SHARE_OF_START = 3.0, 0.1


class Deadline:
    """The end of a fit with ``time_limit``, in seconds from now."""

    def __init__(self, limit):
        self.limit = limit
        # Whether a run has begun: the first may begin whatever it takes.
        self.has_begun = False
        # Seconds that first updates have taken over their expected seconds, at most.
        self.slowness = 1.0
        # All processes of a machine read the same clock.
        self._begun = perf_counter()

    def left(self):
        """Seconds that runs may still take."""
        return self._begun + SHARE_OF_RUNS * self.limit - perf_counter()

    def is_over(self):
        """Whether the limit has passed, not only the share of runs."""
        return perf_counter() - self._begun > self.limit

    def admits(self, price):
        """Whether a run of this price may begin."""
        if not self.has_begun:
            return True
        return price.first * self.slowness <= max(self.left(), 0.0)

    def learn(self, price, seconds):
        """Compare what the first update of a run has taken with its price."""
        self.has_begun = True
        # Short updates mostly take what has nothing to do with their price.
        expected = max(price.first, SHORTEST)
        self.slowness = max(self.slowness, seconds / expected)


def call_all(tasks, n_jobs, deadline=None):
    """Yield results of delayed calls in order, each as soon as it is there.

    Before a deadline the first is called alone: there is a model then, and a measure of
    what runs take. Then processes start; the others are called in this one until they
    have.
    """
    if deadline is None:
        yield from results_of(tasks, n_jobs)
        return
    yield from results_of(tasks[:1], n_jobs=1)
    left, processes = deadline.left(), None
    takes_processes = len(tasks) > 1 and effective_n_jobs(n_jobs) > 1
    if takes_processes and deadline.slowness * SECONDS_TO_START_PROCESSES < left:
        processes = StartingProcesses(n_jobs)
        processes.have_started(SHARE_OF_START * left)
    for number in range(1, len(tasks)):
        if processes is not None and processes.have_started():
            yield from results_of(tasks[number:], n_jobs)
            return
        yield from results_of(tasks[number : number + 1], n_jobs=1)


class StartingProcesses:
    """Processes for parallel runs, which start while this one goes on."""

    def __init__(self, n_jobs):
        # Made here, it has the backend that parallel_config has set in this thread.
        parallel, self._asked, self._answered = Parallel(n_jobs=n_jobs), Event(), False
        n_calls = effective_n_jobs(n_jobs)
        Thread(target=self._ask, args=(parallel, n_calls), daemon=True).start()

    def _ask(self, parallel, n_calls):
        # To call a function of this module they import the package. If they cannot
        # start, this process goes on alone.
        with suppress(Exception):
            parallel(delayed(answer)() for _ in range(n_calls))
            self._answered = True
        self._asked.set()

    def have_started(self, seconds=0.0):
        """Whether they have answered, or do so within some seconds."""
        return self._asked.wait(min(seconds, TIMEOUT_MAX)) and self._answered


def answer():
    """What processes that have started are asked to call."""


def prices_of(groups, y):
    """The expected price of every group: all candidates of a group cost the same."""
    n_outputs = 1
    if not (y is None or is_collection(y)):
        n_outputs = max([1, *np.shape(y)[1:]])
        if is_classifier(groups[0][0].model):
            n_classes = len(np.unique(np.asarray(y)))
            n_outputs = n_classes if n_classes > 2 else 1
    prices = []
    for first, *_ in groups:
        X = first.X
        shape = X.shape if isinstance(X, RowSummary) else shape_of(X)
        # A collection may not know how many rows it has.
        n_rows = 1 if is_collection(X) else max(1, shape[0])
        n_columns = shape[1] if len(shape) > 1 else 1
        price = terms_of(first.model).price(n_rows, n_columns, n_outputs)
        drawn = ESTIMATES["cv"].setting(first.model)
        if isinstance(drawn, DrawnSplits):  # the price is that of five folds
            share = (1 + len(drawn.splits)) / (1 + KFold().n_splits)
            start, update, n_updates = price
            price = Price(share * start, share * update, n_updates)
        prices.append(price)
    return prices


def order_by_time(groups, prices, essential):
    """Indices of groups as they run: ``essential`` members come after the first.

    Forests wait for boosted trees.
    """
    totals, forests, boosted = [], [], []
    for number, ((first, *_), price) in enumerate(zip(groups, prices)):
        totals.append(price.total)
        adapter = None
        if isinstance(first.model, Staged):
            adapter = terms_of(first.model).adapter
        if adapter is not None and adapter.unit == "trees":
            (forests if adapter.patience is None else boosted).append(number)
    waiting = forests if boosted else []
    for number in waiting:
        totals[number] = max(totals[number], *(totals[other] for other in boosted))

    def first_update(number):
        return number in waiting, prices[number].first, totals[number]

    numbers = range(len(groups))
    first = min(numbers, key=first_update)

    def key(number):
        is_essential = groups[number][0].member in essential
        return number != first, not is_essential, totals[number], number in waiting

    return sorted(numbers, key=key)


def warn_of_time(limit, candidates):
    """Warn of the runs that a limit has cut, or left out."""
    cut = [
        f"{one.name} at iteration {one.run.estimator.n_iter_}"
        for one in candidates
        if one.run is not None and one.run.is_cut
    ]
    late = [one.name for one in candidates if one.is_late]
    parts, most = [], 5
    for verb, names in (("cut", cut), ("left out", late)):
        n_more = len(names) - most
        more = f" and {n_more} more" if n_more > 0 else ""
        if names:
            parts.append(f"{verb} {', '.join(names[:most])}{more}")
    if parts:
        warn(f"{too_short(limit)}: it has {' and '.join(parts)}.", ConvergenceWarning)


def too_short(limit):
    """The message about a limit that left no time."""
    return f"time_limit={limit:g} s was too short"
