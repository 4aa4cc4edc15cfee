"""Running one candidate: as a whole, or in stages while it still improves."""

import warnings
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from .._parameters import plain
from ..exceptions import SeparationWarning
from .criteria import CRITERIA


def prepare(estimator, computed):
    """Have the estimator compute what the criterion needs, and nothing unasked."""
    parameters = estimator.get_params(deep=False)
    for name, criterion in CRITERIA.items():
        value = plain(parameters.get(criterion.parameter, False))
        if name == computed and criterion.parameter not in parameters:
            raise ValueError(
                f"criterion={name!r} needs {criterion.path}, which "
                f"{type(estimator).__name__} does not have: the memory matrix is of "
                "the squared error and linear models."
            )
        if name == computed and value is False:
            raise ValueError(
                f"criterion={name!r} needs {criterion.path}, which "
                f"{type(estimator).__name__} does not compute with "
                f"{criterion.parameter}={value!r}."
            )
        if name == computed and value is None:
            estimator.set_params(**{criterion.parameter: criterion.default})
        if name != computed and value == "auto":
            estimator.set_params(**{criterion.parameter: False})


def choice_of(estimator, judge, rule):
    """Row, value and standard error that the rule picks, of the rows that are kept."""
    rows = estimator.recorded_iterations()
    path = judge.path(estimator)[rows]

    def error(place):
        return judge.standard_error(estimator, rows[place])

    place = rule(judge.sign * path, error)
    return int(rows[place]), float(path[place]), error(place)


@dataclass(frozen=True)
class Stages:
    """A run that goes on while its best iterate is less than ``patience`` old."""

    judge: object
    patience: int | None

    def timed_fit(self, estimator, X, y, fit_params):
        begun = perf_counter()
        with warnings.catch_warnings():
            # What it warns of is mended by the choice of an iterate.
            warnings.simplefilter("ignore", SeparationWarning)
            if self.patience is None:
                estimator.fit(X, y, **fit_params)
            else:
                self._extend(estimator, X, y, fit_params)
        estimator.release()
        return estimator, perf_counter() - begun

    def _extend(self, estimator, X, y, fit_params):
        n_updates, is_whole, age = self.patience, False, -1
        while not is_whole and age < self.patience:
            is_whole = estimator._fit_up_to(n_updates, X, y, **fit_params)
            best = np.argmin(self.judge.sign * self.judge.path(estimator))
            age = estimator.n_iter_ - best
            n_updates *= 2


def fit_with_callbacks(owner, stages, estimator, task, data, fit_params):
    with task.propagate_callback_context(estimator):
        task.call_on_fit_task_begin(estimator=owner, **data)
        found = stages.timed_fit(estimator, data["X"], data["y"], fit_params)
    task.call_on_fit_task_end(estimator=owner, **data)
    return found
