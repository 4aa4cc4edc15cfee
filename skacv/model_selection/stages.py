"""Running one candidate: as a whole, or in stages while it still improves."""

import sys
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np
from sklearn.utils.parallel import delayed

from .._compat import _num_samples, callback_context, has_callbacks, results_of
from .._estimator.data.row_summary import RowSummary
from .._estimator.devices import in_numpy
from .._estimator.estimates.fitted_state import running_attributes
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.run.stopping import Patience, halved
from .._warnings import warn
from ..exceptions import SeparationWarning
from .time_limit import SECONDS_TO_START_PROCESSES, CandidateRun, Deadline

# More updates than any run has.
ALL = sys.maxsize


def prepare(estimator, estimate, combination, X, y, sample_weight=None):
    """Make the estimator compute what the criterion needs, and nothing unasked.

    Parameters
    ----------
    estimator : estimator
        Its parameters are set.
    estimate : Estimate
        The estimate that the criterion uses.
    combination : dict
        That of ``param_grid``, for errors to name.

    Raises
    ------
    ValueError
        If the estimator cannot compute the estimate, or has switched it off.
    """
    asked = f"criterion={estimate.name!r}"
    estimate.check_offered(estimator, asked)
    setting = estimate.setting(estimator)
    if setting is False:
        among = f" (candidate {combination} of param_grid)" if combination else ""
        raise ValueError(
            f"{asked} needs {estimate.path}, which {type(estimator).__name__} does not "
            f"compute with {estimate.parameter}=False{among}."
        )
    if setting is None:
        default = estimate.default(estimator, sample_weight)
        estimator.set_params(**{estimate.parameter: default})
    elif isinstance(setting, str) and setting == "auto" and estimate.sample:
        n_rows = _n_rows(X, sample_weight)
        sample = estimate.sample(estimator, X, y, n_rows)
        estimator.set_params(**{estimate.parameter: sample})
    for other in ESTIMATES.values():
        setting = other.setting(estimator)
        if other != estimate and isinstance(setting, str) and setting == "auto":
            estimator.set_params(**{other.parameter: False})


def _n_rows(X, sample_weight):
    """Number of rows, or of those with a weight."""
    if sample_weight is not None:
        return np.count_nonzero(sample_weight)
    return len(X) if isinstance(X, RowSummary) else _num_samples(X)


class EvaluatedFit(NamedTuple):
    """A candidate that has been run.

    Attributes
    ----------
    estimator : fitted estimator
        With its record in NumPy.
    path : ndarray of shape (n_iter_ + 1,)
        Value of the criterion at every iterate.
    seconds : float
        Time of the run and its evaluation.
    is_cut : bool
        Whether ``time_limit`` has ended the run.
    """

    estimator: object
    path: np.ndarray
    seconds: float
    is_cut: bool = False

    def __reduce__(self):
        # A pickled estimator keeps less than what an iterate is chosen by.
        running, estimator = running_attributes(self.estimator), copy(self.estimator)
        for name in running:
            delattr(estimator, name)
        return _received, (estimator, running, *self[1:])

    def parameters_at(self, params, t):
        """A combination of parameters, with those that change along the run."""
        return {**params, **self.estimator._parameters_at(t)}


def _received(estimator, running, *others):
    """An evaluated fit from another process."""
    vars(estimator).update(running)
    return EvaluatedFit(estimator, *others)


class Choice(NamedTuple):
    """The iterate that a rule chooses, its value and its standard error."""

    iteration: int
    score: float
    standard_error: float


def choice_of(estimator, path, criterion, rule):
    """The choice of a rule from the path of a criterion, among the iterates kept."""
    rows = estimator.recorded_iterations()
    kept, error = path[rows], criterion.error_among(estimator)
    place = rule(criterion.sign * kept, error)
    return Choice(int(rows[place]), float(kept[place]), float(error(place)))


@dataclass(frozen=True)
class Stages:
    """Runs in stages, until ``patience`` updates have followed the best iterate.

    Attributes
    ----------
    criterion : PathCriterion or ScorerCriterion
    patience : "auto", int or None
        "auto" is the :meth:`~RecordsTrajectory._default_patience` of every estimator.
    deadline : Deadline or None
    """

    criterion: object
    patience: object
    deadline: Deadline | None = None

    def run_group(self, estimators, X, y, fit_params, price=None):
        """Fit several estimators and keep one, by successive halving.

        With a patience, each is run until its patience ends it.

        Returns
        -------
        list of EvaluatedFit or None
            None for those that time did not allow to begin.
        """
        data = X, y, fit_params
        runs = [
            CandidateRun(estimator, data, self.criterion, self.deadline, price)
            for estimator in estimators
        ]
        if len(runs) == 1 or self._wanted(estimators[0]) is not None:
            for run in runs:
                self._run_to_its_end(run)
        else:
            self._halve(runs)
        return [_evaluated(run) for run in runs]

    def _wanted(self, estimator):
        """Updates without improvement after which a run ends, or None."""
        if self.patience == "auto":
            return estimator._default_patience()
        return self.patience

    def _run_to_its_end(self, run):
        """Continue a run while it improves, in stages; give its warnings."""
        n_wanted = self._wanted(run.estimator)
        n_updates = n_wanted or ALL
        is_over = run.go_on(n_updates) or n_wanted is None
        while not is_over:
            # The run may have chosen its solver by the data.
            n_wanted = self._wanted(run.estimator)
            # The whole path: a longer run may estimate its beginning otherwise. But for
            # the start, such as a mean, than which a network is worse for long.
            patience = Patience(n_wanted).follow(self.criterion.sign * run.path[1:])
            # As far as it takes to end, if nothing improves.
            n_more = patience.n_left if np.isfinite(patience.n_left) else 0
            n_updates = max(n_updates + n_more, ceil(self.criterion.stage * n_updates))
            is_over = patience.has_ended or run.go_on(n_updates)
        run.estimator._release()
        _warn_again(run.warned)

    def _halve(self, runs):
        """Continue the better half of some runs until one is left."""

        def go_on(number, n_updates):
            is_over = runs[number].go_on(n_updates)
            path = runs[number].path
            if path is None:  # no time to begin
                return np.inf, True
            return np.nanmin(self.criterion.sign * path), is_over

        best, _, is_over = halved(
            len(runs), go_on, lambda number: runs[number].estimator._release()
        )
        if not is_over:
            go_on(best, ALL)
        runs[best].estimator._release()
        _warn_again(runs[best].warned)


def _evaluated(run):
    """A run that is over, as an EvaluatedFit; None if it has not begun."""
    if run.path is None:
        return None
    return EvaluatedFit(in_numpy(run.estimator), run.path, run.seconds, run.is_cut)


def _warn_again(warned):
    """Give the warnings of a run that is kept."""
    for found in warned:
        # Separation is mended by the choice of an iterate.
        if not issubclass(found.category, SeparationWarning):
            warn(str(found.message), found.category)


def run_side_by_side(owner, run, groups, data, n_jobs, deadline=None):
    """Run groups of estimators in parallel, each as a task of the owner's callbacks.

    Before a deadline the first group is run alone: there is a model then, and a measure
    of what runs take.

    Parameters
    ----------
    run : callable
        :meth:`Stages.run_group`.
    groups : list of tuple
        The arguments of ``run``, estimators first.
    data : dict
        X, y and metadata, for callbacks.
    n_jobs : int or None
    deadline : Deadline or None

    Yields
    ------
    list of EvaluatedFit or None
        What ``run`` returns of each group, in order, as soon as it is there.
    """
    tasks = [delayed(run)(*group) for group in groups]
    has_tasks = has_callbacks(owner)
    if has_tasks:
        context = callback_context(owner, len(groups))
        context.call_on_fit_task_begin(estimator=owner, **data)
        tasks = [
            delayed(_run_task)(
                owner, context.subcontext(task_name="trajectory"), data, run, group
            )
            for group in groups
        ]
    if deadline is not None:
        yield from results_of(tasks[:1], n_jobs=1)
        tasks = tasks[1:]
        if deadline.left() < deadline.slowness * SECONDS_TO_START_PROCESSES:
            n_jobs = 1
    yield from results_of(tasks, n_jobs)
    if has_tasks:
        context.call_on_fit_task_end(estimator=owner, **data)


def _run_task(owner, task, data, run, group):
    """Run a group of estimators as one task of the callbacks."""
    with ExitStack() as contexts:
        for estimator in group[0]:
            contexts.enter_context(task.propagate_callback_context(estimator))
        task.call_on_fit_task_begin(estimator=owner, **data)
        found = run(*group)
    task.call_on_fit_task_end(estimator=owner, **data)
    return found
