"""Running one candidate: as a whole, or in stages while it still improves."""

import sys
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass
from itertools import chain
from math import ceil
from time import perf_counter
from typing import NamedTuple

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from .._compat import _num_samples, callback_context, has_callbacks
from .._estimator.data.row_summary import RowSummary
from .._estimator.devices import in_numpy
from .._estimator.estimates.fitted_state import running_attributes
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.run.stopping import Patience, halved
from .._warnings import collected_warnings, warn
from ..exceptions import SeparationWarning

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
    """

    estimator: object
    path: np.ndarray
    seconds: float

    def __reduce__(self):
        # A pickled estimator keeps less than what an iterate is chosen by.
        running, estimator = running_attributes(self.estimator), copy(self.estimator)
        for name in running:
            delattr(estimator, name)
        return _received, (estimator, running, self.path, self.seconds)

    def parameters_at(self, params, t):
        """A combination of parameters, with those that change along the run."""
        return {**params, **self.estimator._parameters_at(t)}


def _received(estimator, running, path, seconds):
    """An evaluated fit from another process."""
    vars(estimator).update(running)
    return EvaluatedFit(estimator, path, seconds)


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
    """

    criterion: object
    patience: object

    def run(self, estimator, X, y, fit_params):
        """Fit the estimator, and evaluate its iterates.

        Returns
        -------
        EvaluatedFit
        """
        begun = perf_counter()
        path, warned = self._evaluated_path(estimator, X, y, fit_params)
        estimator._release()
        _warn_again(warned)
        return EvaluatedFit(in_numpy(estimator), path, perf_counter() - begun)

    def run_group(self, estimators, X, y, fit_params):
        """Fit several estimators and keep one, by successive halving.

        With a patience, each is run until its patience ends it.

        Returns
        -------
        list of EvaluatedFit
        """
        if len(estimators) == 1 or self._wanted(estimators[0]) is not None:
            return [self.run(each, X, y, fit_params) for each in estimators]
        paths, warned, seconds = {}, {}, np.zeros(len(estimators))

        def go_on(number, n_updates):
            begun, estimator = perf_counter(), estimators[number]
            with collected_warnings() as warned[number]:
                is_over = estimator.fit_up_to(n_updates, X, y, **fit_params)
            paths[number] = self.criterion.path(in_numpy(estimator))
            seconds[number] += perf_counter() - begun
            return np.nanmin(self.criterion.sign * paths[number]), is_over

        best, _, is_over = halved(
            len(estimators), go_on, lambda number: estimators[number]._release()
        )
        if not is_over:
            go_on(best, ALL)
        estimators[best]._release()
        _warn_again(warned[best])
        return [
            EvaluatedFit(in_numpy(each), paths[number], float(seconds[number]))
            for number, each in enumerate(estimators)
        ]

    def _wanted(self, estimator):
        """Updates without improvement after which a run ends, or None."""
        if self.patience == "auto":
            return estimator._default_patience()
        return self.patience

    def _evaluated_path(self, estimator, X, y, fit_params):
        """The path of the whole run, and the warnings of its last stage."""
        n_wanted = self._wanted(estimator)
        if n_wanted is None:
            with collected_warnings() as warned:
                estimator.fit_up_to(ALL, X, y, **fit_params)
            return self.criterion.path(in_numpy(estimator)), warned
        n_updates, has_ended = n_wanted, False
        while not has_ended:
            with collected_warnings() as warned:
                is_whole = estimator.fit_up_to(n_updates, X, y, **fit_params)
            # The run may have chosen its solver by the data.
            n_wanted = self._wanted(estimator)
            path = self.criterion.path(in_numpy(estimator))
            # The whole path: a longer run may estimate its beginning otherwise. But for
            # the start, such as a mean, than which a network is worse for long.
            patience = Patience(n_wanted).follow(self.criterion.sign * path[1:])
            has_ended = is_whole or patience.has_ended
            # As far as it takes to end, if nothing improves.
            n_more = patience.n_left if np.isfinite(patience.n_left) else 0
            n_updates = max(n_updates + n_more, ceil(self.criterion.stage * n_updates))
        return path, warned


def _warn_again(warned):
    """Give the warnings of a run that is kept."""
    for found in warned:
        # Separation is mended by the choice of an iterate.
        if not issubclass(found.category, SeparationWarning):
            warn(str(found.message), found.category)


def run_side_by_side(owner, run, groups, data, n_jobs):
    """Run groups of estimators in parallel, each as a task of the owner's callbacks.

    Parameters
    ----------
    run : callable
        :meth:`Stages.run_group`.
    groups : list of tuple
        The arguments of ``run``, estimators first.
    data : dict
        X, y and metadata, for callbacks.
    n_jobs : int or None

    Returns
    -------
    list of EvaluatedFit
    """
    parallel = Parallel(n_jobs=n_jobs)
    if not has_callbacks(owner):
        found = parallel(delayed(run)(*group) for group in groups)
        return list(chain.from_iterable(found))
    context = callback_context(owner, len(groups))
    context.call_on_fit_task_begin(estimator=owner, **data)
    tasks = [context.subcontext(task_name="trajectory") for _ in groups]
    found = parallel(
        delayed(_run_task)(owner, task, data, run, group)
        for task, group in zip(tasks, groups)
    )
    context.call_on_fit_task_end(estimator=owner, **data)
    return list(chain.from_iterable(found))


def _run_task(owner, task, data, run, group):
    """Run a group of estimators as one task of the callbacks."""
    with ExitStack() as contexts:
        for estimator in group[0]:
            contexts.enter_context(task.propagate_callback_context(estimator))
        task.call_on_fit_task_begin(estimator=owner, **data)
        found = run(*group)
    task.call_on_fit_task_end(estimator=owner, **data)
    return found
