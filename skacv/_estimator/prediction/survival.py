"""Survival functions from log hazard ratios, and how well these order the times."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..data.checks import validate_weights
from ..data.survival import ranked_times, survival_array
from ..data.training_data import check_usable
from ..estimates.fitted_state import MOST_KEPT
from .baseline_hazards import BaselineHazards
from .survival_scores import concordance


@dataclass(eq=False)
class StepFunction:
    """A step function of time, as those of ``sksurv.functions``.

    Parameters
    ----------
    x : ndarray of shape (n_times,)
        The times at which it may step, in ascending order.
    y : ndarray of shape (n_times,)
        Its value from each of them on.
    start : float
        Its value before the first.
    """

    x: np.ndarray
    y: np.ndarray
    start: float = 0.0

    @property
    def domain(self) -> tuple[float, float]:
        """The times at which it is known: from zero to the last time of a row."""
        return 0.0, float(self.x[-1])

    def __call__(self, x: ArrayLike) -> Any:
        """Values at these times.

        Parameters
        ----------
        x : float or array-like of shape (n_values,)

        Returns
        -------
        float or ndarray of shape (n_values,)

        Raises
        ------
        ValueError
            If a time is negative, or later than the last one.
        """
        times = np.asarray(x, dtype=np.float64)
        first, last = self.domain
        if not ((times >= first) & (times <= last)).all():
            raise ValueError(f"Times must be between {first:g} and {last:g}.")
        values = np.append(self.start, self.y)
        found = values[np.searchsorted(self.x, times, side="right")]
        return found if np.ndim(x) else float(found)


def step_functions(times, values, start=0.0):
    """A StepFunction for each row of values (n_samples, n_times)."""
    functions = np.empty(len(values), dtype=object)
    for i, row in enumerate(values):
        functions[i] = StepFunction(times, row, start)
    return functions


class PredictsSurvival:
    """Survival functions of proportional hazards, and the concordance as a score.

    ``predict`` has the logarithms of the hazard ratios, and the record the
    BaselineHazards of the iterates as ``baseline``.
    """

    _takes_survival = "events and times"

    @property
    def unique_times_(self) -> np.ndarray:
        """Times of the training rows, in ascending order."""
        return self._baseline().times

    @property
    def cum_baseline_hazard_(self) -> StepFunction:
        """Cumulative hazard at a log hazard ratio of zero, by Breslow's estimate."""
        baseline = self._baseline()
        hazards = baseline.at(np.zeros(1), self._number_of_baseline())
        return StepFunction(baseline.times, hazards[0])

    @property
    def baseline_survival_(self) -> StepFunction:
        """Survival function at a log hazard ratio of zero."""
        hazard = self.cum_baseline_hazard_
        return StepFunction(hazard.x, np.exp(-hazard.y), 1.0)

    def _baseline(self):
        check_usable(self)
        baseline = self.record_.more.get("baseline")
        if baseline is None:
            raise AttributeError(
                "There are too many iterates and times of events to keep the baseline "
                f"hazards of all, more than {MOST_KEPT} numbers: use fewer updates."
            )
        return baseline

    def _number_of_baseline(self):
        """The row of the baseline hazards that the iterate in use has."""
        return 0 if self.record_.dropped is not None else self.iteration_

    def _light_record(self, in_use):
        small, baseline = super()._light_record(in_use), None
        if self.record_.more.get("baseline") is not None:
            baseline = self._baseline().of_iterate(self._number_of_baseline())
        return replace(small, more={**small.more, "baseline": baseline})

    def _hazards(self, X):
        """Cumulative hazards of rows, (n_samples, n_times)."""
        return self._baseline().at(self.predict(X), self._number_of_baseline())

    def predict_cumulative_hazard_function(
        self, X: Any, return_array: bool = False
    ) -> np.ndarray:
        """Cumulative hazards of the iterate in use, by Breslow's estimate.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        return_array : bool, default=False
            Whether to return values at ``unique_times_``, not functions.

        Returns
        -------
        ndarray of StepFunction, shape (n_samples,), or (n_samples, n_times)
            Functions of time with the attributes ``x``, ``y`` and ``domain``.
        """
        hazards = self._hazards(X)
        return hazards if return_array else step_functions(self.unique_times_, hazards)

    def predict_survival_function(
        self, X: Any, return_array: bool = False
    ) -> np.ndarray:
        """Probabilities of no event until a time, by the iterate in use.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        return_array : bool, default=False
            Whether to return values at ``unique_times_``, not functions.

        Returns
        -------
        ndarray of StepFunction, shape (n_samples,), or (n_samples, n_times)
            Functions of time with the attributes ``x``, ``y`` and ``domain``.
        """
        shares = np.exp(-self._hazards(X))
        if return_array:
            return shares
        return step_functions(self.unique_times_, shares, start=1.0)

    def score(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Harrell's concordance of the predictions.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : structured array of shape (n_samples,), or (n_samples, 2)
            Events and times, as in ``fit``.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights of the rows: a pair has their product.

        Returns
        -------
        float
            The share of pairs of rows that can be compared of which the riskier one
            has the event first; equal risks count half.
        """
        y = survival_array(y)
        return concordance(y, self.predict(X), validate_weights(sample_weight, len(y)))

    def _validate_target(self, y):
        return survival_array(y)

    def _target(self, y):
        return ranked_times(y)


def baseline_hazards_of(run):
    """The BaselineHazards of all iterates of a finished run; None if they are many."""
    y, predictor = run.data.y, run.trajectory.predictor
    if len(predictor) * len(np.unique(y["time"][y["event"]])) > MOST_KEPT:
        return None
    return BaselineHazards.of(y, run.data.problem.row_weights[:, 0], predictor)
