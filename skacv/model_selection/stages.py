"""Running one candidate: as a whole, or in stages while it still improves."""

from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np

from .._estimator.stopping import Patience
from .._warnings import collected_warnings, warn
from ..exceptions import SeparationWarning
from .criteria import CRITERIA, setting


def prepare(estimator, computed, combination):
    """Have the estimator compute what the criterion needs, and nothing unasked.

    Parameters
    ----------
    estimator : estimator
        Its parameters are set.
    computed : str
        Name of the criterion.
    combination : dict
        Of ``param_grid``, for errors to name.

    Raises
    ------
    ValueError
        If the estimator cannot compute the criterion, or is told not to.
    """
    if setting(estimator, computed) is False:
        raise ValueError(_refusal(estimator, CRITERIA[computed], computed, combination))
    for name, criterion in CRITERIA.items():
        value = setting(estimator, name)
        if name == computed and value is None:
            estimator.set_params(**{criterion.parameter: criterion.default})
        if name != computed and isinstance(value, str) and value == "auto":
            estimator.set_params(**{criterion.parameter: False})


def _refusal(estimator, criterion, computed, combination):
    """Why the estimator does not compute the criterion."""
    needed = f"criterion={computed!r} needs {criterion.path}, which "
    needed += type(estimator).__name__
    if criterion.parameter not in estimator.get_params(deep=False):
        return f"{needed} does not have{criterion.limits}."
    among = f" (candidate {combination} of param_grid)" if combination else ""
    return f"{needed} does not compute with {criterion.parameter}=False{among}."


class Run(NamedTuple):
    """A candidate that has been run.

    Attributes
    ----------
    estimator : fitted estimator
    path : ndarray of shape (n_iter_ + 1,)
        What every iterate is judged by.
    seconds : float
        What running and judging took.
    """

    estimator: object
    path: np.ndarray
    seconds: float


class Choice(NamedTuple):
    """The iterate that a rule picks, its value and the standard error of that."""

    iteration: int
    score: float
    standard_error: float


def choice_of(estimator, path, judge, rule):
    """What the rule picks from a judge's path, of the rows that are kept."""
    rows = estimator.recorded_iterations()
    kept = path[rows]

    def error(place):
        return judge.standard_error(estimator, rows[place])

    place = rule(judge.sign * kept, error)
    return Choice(int(rows[place]), float(kept[place]), error(place))


@dataclass(frozen=True)
class Stages:
    """A run that goes on while its best iterate is less than ``patience`` old."""

    judge: object
    patience: int | None

    def run(self, estimator, X, y, fit_params):
        """Fit the estimator, and judge its iterates.

        Returns
        -------
        Run
        """
        begun = perf_counter()
        path, warned = self._judged_path(estimator, X, y, fit_params)
        estimator.release()
        for found in warned:
            # Separation is mended by the choice of an iterate.
            if not issubclass(found.category, SeparationWarning):
                warn(str(found.message), found.category)
        return Run(estimator, path, perf_counter() - begun)

    def _judged_path(self, estimator, X, y, fit_params):
        """The path of the whole run, and what it has warned of where it ended."""
        if self.patience is None:
            with collected_warnings() as warned:
                estimator.fit(X, y, **fit_params)
            return self.judge.path(estimator), warned
        n_updates, has_ended = self.patience, False
        while not has_ended:
            with collected_warnings() as warned:
                is_whole = estimator.fit_up_to(n_updates, X, y, **fit_params)
            path = self.judge.path(estimator)
            # The whole path: a longer run may estimate its beginning otherwise.
            patience = Patience(self.patience).follow(self.judge.sign * path)
            has_ended = is_whole or patience.has_ended
            n_updates *= 2
        return path, warned


def fit_with_callbacks(owner, stages, estimator, task, data, fit_params):
    with task.propagate_callback_context(estimator):
        task.call_on_fit_task_begin(estimator=owner, **data)
        found = stages.run(estimator, data["X"], data["y"], fit_params)
    task.call_on_fit_task_end(estimator=owner, **data)
    return found
