"""Running models: to their ends, in stages while they improve, or by halves."""

import sys
import warnings
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from .._estimator.devices import convert_to_numpy
from .._estimator.estimates.fitted_state import attach_record, split_record
from .._estimator.estimates.terms import terms_of
from .._estimator.parameters import is_auto
from .._estimator.run.progress import advance
from .._estimator.run.recording import evaluated_iterations
from .._estimator.run.stopping import Patience, halve_runs, later_gain
from .._warnings import warn
from ..exceptions import (
    SeparationWarning,
    SmallTrainingSetsWarning,
    UnevenColumnsWarning,
)
from ..records.run import Run
from ..staged import Staged
from .criteria import index_of_least
from .failures import Failed, attempt

# A step of several updates takes at most this share of the time left for runs.
SHARE_OF_STEP = 0.25
# The second update is expected to take this share of the first, which has also taken
# what comes before all updates; or more, by its price.
LEAST_OF_FIRST = 0.2
# Warnings of runs that are not repeated: the choice of an iterate mends separation, and
# of folds there is a warning where they are drawn, once for all runs.
SAID_OR_MENDED = SeparationWarning, SmallTrainingSetsWarning
# Nor those of rare terms of texts, which are small columns for good reason.
OF_TEXTS = (*SAID_OR_MENDED, UnevenColumnsWarning)
# Further iterates that may bring less than this many standard errors do not pay.
LEAST_GAIN = 0.1
# A run that is judged pauses after a quarter more iterates, or so many: before, its
# gains are not foretold by the last ones.
FEWEST_JUDGED = 20


class EndedRun(NamedTuple):
    """What a run has left; a process returns no more of it."""

    member: str
    # The fitted estimator, with its record in NumPy.
    estimator: Any
    # Value of the criterion at every iterate, (n_iter_ + 1,).
    path: np.ndarray
    # Time of the run and its evaluation.
    seconds: float
    # Whether ``time_limit`` has ended the run.
    is_cut: bool = False
    # Whether it may go on, so that models on all rows can reach what folds have.
    goes_on: bool = False

    def evaluate_by(self, criterion):
        """The same run, evaluated by a criterion on some of the rows."""
        return self._replace(path=criterion.path(self.estimator))

    def __reduce__(self):
        # A pickled estimator keeps less than an iterate is chosen by.
        member, estimator, *rest = self
        return whole_run, (member, *split_record(estimator), *rest)


def whole_run(member, estimator, record, *rest):
    """The EndedRun of an estimator whose record was split off."""
    return EndedRun(member, attach_record(estimator, record), *rest)


class Choice(NamedTuple):
    """The iterate that a rule chooses, its value and its standard error."""

    iteration: int
    score: float
    standard_error: float


def choice_of(run, criterion, rule):
    """The choice of a rule from the path of a run, among the iterates available."""
    if run.goes_on:
        iterations = evaluated_iterations(run.estimator)
    else:
        iterations = run.estimator.recorded_iterations()
    values = run.path[iterations]
    error = partial(criterion.error_among, run.estimator, iterations)
    index = rule(criterion.sign * values, error)
    return Choice(int(iterations[index]), float(values[index]), float(error(index)))


@dataclass
class BegunRun:
    """What a run on some of the folds has handed over, for one on others.

    It stays in its process: pickled, it has nothing, and the next run begins anew.
    """

    former: Any = None

    def take(self):
        """What has been handed over, which is not held any longer; None if nothing."""
        former, self.former = self.former, None
        return former

    def __reduce__(self):
        return BegunRun, ()


@dataclass(frozen=True, eq=False)
class Start:
    """What a run starts from, for this process or another."""

    member: str
    model: Any
    X: Any
    y: Any
    fit_params: dict
    # Further arguments of ``begin``: what runs share, and how far the model on all rows
    # grows.
    settings: dict = field(default_factory=dict)
    # A run of the model on some of its folds.
    begun: BegunRun = field(default_factory=BegunRun)
    # Whether it is fitted to the tf-idf of texts.
    is_of_texts: bool = False

    def begin(self, criterion):
        """The run of the model, which a criterion evaluates."""
        settings = self.fit_params | self.settings | criterion.settings
        if (former := self.begun.take()) is not None:
            settings["former"] = former
        return self.model.begin(self.X, self.y, **settings)


def list_starts(candidates, y, growth, n_jobs=None):
    """What the runs of candidates start from.

    ``growth`` says how far models on all rows grow where only folds have to, and
    ``n_jobs`` in how many threads beside them, where candidates do not say it.
    """
    starts = []
    for one in candidates:
        model, settings = one.model, dict(one.shared)
        if isinstance(model, Staged):
            if growth != "all":
                settings["growth"] = growth
            if model.n_jobs is None:
                model = copy(model)
                model.n_jobs = n_jobs
        what = one.member, model, one.X, y, one.fit_params, settings
        starts.append(Start(*what, one.begun, one.is_of_texts))
    return starts


@dataclass
class ModelRun:
    """A run of a model that can go on, evaluated as it does."""

    start: Start
    criterion: Any
    # The end of a fit with ``time_limit``, and what the run is expected to take.
    deadline: Any = None
    price: Any = None
    # The run, once it has begun, and the estimator with the record so far.
    run: Run | None = None
    model: Any = None
    # Value of the criterion at every iterate; None before the run has begun.
    path: np.ndarray | None = None
    n_updates: int = 0
    seconds: float = 0.0
    # Updates of the last step, and the seconds that it has taken.
    last_step: tuple[int, float] | None = None
    # Warnings of the last step: those of earlier ones do not count.
    warned: Any = ()
    is_cut: bool = False
    # The error that has ended the run.
    failed: Failed | None = None

    def go_on(self, n_updates):
        """Continue up to a total number of updates; return whether the run is over.

        A run that has failed is. Before a deadline it goes on in steps that are
        expected to end in time. A step is expected to take as long as the one before,
        by update, and no less than that one if it is shorter. So no step takes more
        than a share of the time that is left, unless it is of one update.
        """
        if self.deadline is None:
            return self._attempt(self._update, n_updates) is not False
        while (n_next := self._next(n_updates)) > self.n_updates:
            before = self.seconds
            is_complete = self._attempt(self._update, n_next) is not False
            if self.failed is not None:
                return True
            seconds = self.seconds - before
            if self.last_step is None:
                self.deadline.learn(self.price, seconds)
                seconds *= max(LEAST_OF_FIRST, self.price.update / self.price.first)
            self.last_step = n_next - self.n_updates, seconds
            self.n_updates = n_next
            if is_complete:
                return True
        self.is_cut = self.n_updates < n_updates
        return self.is_cut

    def release(self):
        """Free the run, of which no more is read."""
        self._take_last_record()
        self.run = None

    def _take_last_record(self):
        if self.run is not None:
            self.model = attach_record(self.start.model, self.run.end())

    def end(self):
        """End the run, and give its warnings."""
        if self.failed is None:
            self._attempt(self._take_last_record)
        if self.failed is not None:
            return
        if self.path is not None:  # the model may have ended before its folds
            self.path = self.path[: self.model.n_iter_ + 1]
        left_out = OF_TEXTS if self.start.is_of_texts else SAID_OR_MENDED
        for warning in self.warned:
            if not issubclass(warning.category, left_out):
                warn(str(warning.message), warning.category)

    def result(self):
        """An EndedRun, or Failed; None if there was no time to begin."""
        if self.failed is not None:
            return self.failed
        return None if self.path is None else self.so_far()

    def so_far(self):
        """An EndedRun of the iterates so far."""
        estimator, member = convert_to_numpy(self.model), self.start.member
        return EndedRun(member, estimator, self.path, self.seconds, self.is_cut)

    def _attempt(self, step, *args):
        begun = perf_counter()
        result = attempt(step, *args)
        self.seconds += perf_counter() - begun
        if isinstance(result, Failed):
            self.failed = replace(result, seconds=self.seconds)
        return result

    def _update(self, n_updates):
        """Begin or continue the run, and evaluate its iterates so far."""
        start = self.start
        with warnings.catch_warnings(record=True) as self.warned:
            warnings.simplefilter("always")
            if self.run is None:
                self.run = start.begin(self.criterion)
            is_over = advance(start.model, self.run, n_updates)
            self.model = attach_record(start.model, self.run.record())
            self.path = self.criterion.path(convert_to_numpy(self.model))
        return bool(is_over)

    def _next(self, n_updates):
        """Number of updates after the next step; no more than now if it is cut."""
        if self.last_step is None:
            return min(n_updates, int(self.deadline.admits(self.price)))
        size, seconds = self.last_step
        left = self.deadline.left()
        if seconds > left:
            return self.n_updates
        # The first two steps are of one update: only the second shows what one takes.
        if self.n_updates > 1:
            # More than any run has, if the clock has not moved.
            factor = SHARE_OF_STEP * left / seconds if seconds else np.inf
            size = max(size, int(min(size * factor, n_updates)))
        return min(n_updates, self.n_updates + size)


@dataclass(frozen=True)
class Stages:
    """Runs in stages, until ``patience`` updates have followed the best iterate.

    A run ends before if its further iterates may gain less than ``min_delta``: by
    itself, or beside other runs.
    """

    criterion: object
    # "auto" is that of every estimator; None means no patience.
    patience: object
    # In units of the criterion; "auto" is a share of its standard error, for runs whose
    # gains are steady.
    min_delta: object = 0
    deadline: object = None

    def run_group(self, starts, price=None, ended_runs=None):
        """Run several models and keep one, by successive halving.

        With a patience, each is run until its patience ends it, or, with ``ended_runs``
        (EndedRuns), as long as that may improve what is kept. Returned is a list of
        EndedRun, with Failed for runs that have raised an error, and None for those
        that time did not allow to begin.
        """
        return [run.result() for run in self.run_models(starts, price, ended_runs)]

    def run_models(self, starts, price=None, ended_runs=None):
        """As :meth:`run_group`, but for what is returned: every ModelRun."""
        runs = [
            ModelRun(start, self.criterion, self.deadline, price) for start in starts
        ]
        if len(runs) == 1 or self._patience_of(starts[0].model) is not None:
            for run in runs:
                self._run_to_its_end(run, ended_runs)
        else:
            self._halve(runs)
        return runs

    def _patience_of(self, estimator, record=None):
        """Updates without improvement after which a run ends, or None."""
        if is_auto(self.patience):
            return terms_of(estimator).patience(record)
        return self.patience

    def _is_judged(self, estimator):
        """Whether a run of the estimator ends where it may gain too little."""
        if is_auto(self.min_delta):
            return terms_of(estimator).has_steady_gains
        return self.min_delta > 0

    def _run_to_its_end(self, run, ended_runs):
        """Continue a run while it improves, in stages."""
        patience = self._patience_of(run.start.model)
        is_judged = self._is_judged(run.start.model)
        growth = self.criterion.growth_of(run.start.model)
        n_updates = patience or sys.maxsize
        is_over = run.go_on(n_updates) or patience is None
        while not is_over:
            # The run may have chosen its solver by the data.
            patience = self._patience_of(run.start.model, run.model.record_)
            # The path anew: a longer run may estimate its beginning otherwise. Without
            # the start, such as a mean: a network is worse than that for long.
            values = self.criterion.sign * run.path[1:]
            stopping = Patience(patience).follow(values)
            # As far as it takes to end, if nothing improves.
            n_more = stopping.n_left if np.isfinite(stopping.n_left) else 0
            if is_judged:
                n_more = min(n_more, max(n_updates // 4, FEWEST_JUDGED))
            n_updates = max(n_updates + n_more, ceil(growth * n_updates))
            pays = not is_judged or self._may_pay(run, ended_runs)
            is_over = stopping.has_ended or not pays or run.go_on(n_updates)
        run.end()

    def _may_pay(self, run, ended_runs):
        """Whether further iterates may gain as much as ``min_delta``.

        The run may improve as in its last iterates. Beside other runs what is kept
        gains no more than that: as much if the run may come within a standard error of
        what is kept, or else what its own last gains show.
        """
        n_iterates, values = len(run.path) - 1, self.criterion.sign * run.path[1:]
        counts = [n_iterates // 4, n_iterates // 2, n_iterates]
        if n_iterates < FEWEST_JUDGED or np.isnan(values[: counts[0]]).all():
            return True
        least = [np.nanmin(values[:n]) for n in counts]
        gain = later_gain(*least)
        so_far = run.so_far()._replace(goes_on=True)
        if ended_runs is None:
            best = choice_of(so_far, self.criterion, index_of_least)
            error = best.standard_error
        else:
            losses, (*_, error) = zip(*ended_runs.evaluate_with(so_far, counts))
            if not least[-1] - gain < losses[-1] + error:
                gain = min(gain, later_gain(*losses))
            if losses[-1] >= 0:  # a loss that is positive falls to zero at most
                gain = min(gain, losses[-1])
        least_gain = self.min_delta
        if is_auto(least_gain):
            least_gain = LEAST_GAIN * error
            held_out = self.criterion.estimate.of(run.model)
            if is_classifier(run.model) and held_out.indices is not None:
                # Losses are small but for rows that are wrong. Where none is, the error
                # does not show what one would cost: about the loss of the start.
                n_rows = len(np.unique(np.hstack(held_out.indices)))
                least_gain = np.fmax(least_gain, abs(run.path[0]) / n_rows)
        return not gain < least_gain  # an undefined error ends no run

    def _halve(self, runs):
        """Continue the better half of several runs until one is left."""

        def go_on(number, n_updates):
            is_over = runs[number].go_on(n_updates)
            path = runs[number].path
            if path is None or runs[number].failed is not None:
                return np.inf, True
            return np.nanmin(self.criterion.sign * path), is_over

        best, _, is_over = halve_runs(
            len(runs), go_on, lambda number: runs[number].release()
        )
        if not is_over:
            go_on(best, sys.maxsize)
        runs[best].end()
