"""Strengths of the penalty of a fit, and the order in which they are used."""

from abc import ABC, abstractmethod

import numpy as np

from ..optim.families import except_last
from .following import of_record

# Strengths of a "path" along which coefficients become nonzero one after the other; and
# of one whose penalty is smooth: its iterates on the way from one strength to the next
# are as good, and more updates at each bring them closer to their ends.
N_STRENGTHS = 30
N_SMOOTH_STRENGTHS = 10


class PenaltyStrengths(ABC):
    """The parameter that sets how strong a penalty is: a number, or several in turn.

    A subclass says

    ``_penalty(strength, n_features)``
        the penalty of a strength on so many coefficients, none of them an intercept,
        in the mean form (1/n) sum_i (...) + g(b);
    ``_strength_name``
        the parameter that sets the penalty's strength: a number, a sequence or
        "path", which ends at ``_strength_ratio`` times where it begins;
    ``_strength_of(value, data)``, ``_value_of(strength, data)``
        what ``_strength_name`` means, where it is not a factor of the penalty in the
        objective, or ``_unit(data)``;
    ``_check_strengths(values)``
        raises on values that it does not take;
    ``_is_smooth``
        whether the penalty makes no coefficient zero, with fewer strengths on a "path";
    ``_is_sum``
        whether the objective is a sum over the rows and a penalty, which then weighs
        more where rows are left out; else a mean over the rows;
    ``_is_quadratic``
        whether the loss is the squared error, for which an intercept centres the
        data; else it is the last coefficient.
    """

    _strength_name = "alpha"
    # Where a "path" of strengths ends, beside where it begins.
    _strength_ratio = 1e-3
    _is_smooth = False
    _is_sum = False
    _is_quadratic = False

    @abstractmethod
    def _penalty(self, strength, n_features):
        """The penalty of one strength, in the mean form."""

    @property
    def _has_constant(self):
        """Whether the last coefficient is an intercept: if nothing is centred."""
        return bool(self.fit_intercept and not self._is_quadratic)

    def _penalty_on(self, n_columns, strength):
        """The penalty of all coefficients, of which it spares an intercept."""
        if not self._has_constant:
            return self._penalty(strength, n_columns)
        return except_last(self._penalty(strength, n_columns - 1), n_columns)

    def _n_strengths(self):
        """Number of strengths along the run."""
        values = getattr(self, self._strength_name)
        if isinstance(values, str):
            return N_SMOOTH_STRENGTHS if self._is_smooth else N_STRENGTHS
        return np.size(values)

    def _unit(self, data):
        """The parameter's value at which the strength, in the mean form, is one."""
        return data.total_weight if self._is_sum else 1.0

    def _strength_of(self, value, data):
        return float(value / self._unit(data))

    def _value_of(self, strength, data):
        return float(strength * self._unit(data))

    def _strengths(self, data):
        """Strengths of the penalty in the order in which they are used."""
        name, values = self._strength_name, getattr(self, self._strength_name)
        if isinstance(values, str):
            problem = data.problem
            n_columns = problem.design.shape[1]
            penalty = self._penalty_on(n_columns, 1.0)
            # What is not penalised moves before all others.
            free = np.flatnonzero(penalty.unpenalized(n_columns))
            gradient = problem.gradient(problem.fitted_on(free))
            largest = penalty.largest_strength(gradient, problem.smoothness)
            # All coefficients are zero there, however gradients are rounded: beside
            # large means no more than half of their digits are left.
            largest *= 1 + np.sqrt(np.finfo(problem.design.dtype).eps)
            largest = max(largest, np.finfo(float).eps)
            least = self._strength_ratio * largest
            return list(np.geomspace(largest, least, self._n_strengths()))
        values = np.atleast_1d(np.asarray(values, dtype=np.float64))
        if values.ndim > 1 or not values.size:
            raise ValueError(
                f"{name} must be a number, a sequence of numbers or 'path', got an "
                f"array of shape {values.shape}."
            )
        self._check_strengths(values)
        return [self._strength_of(value, data) for value in values]

    def _check_strengths(self, values):
        if not np.isfinite(values).all() or (values < 0).any():
            raise ValueError(
                f"{self._strength_name} must be finite and not negative, got "
                f"{values.tolist()}."
            )

    def _changes_strength(self):
        """Whether the record has iterates of several strengths of the penalty.

        Returns
        -------
        bool
        """
        path = getattr(self, f"{self._strength_name}_path_")
        return bool((path != path[0]).any())  # they may be infinite

    @of_record
    def _parameters_at(self, t):
        """The strength of the penalty at iterate ``t``, if the run has several.

        Parameters
        ----------
        t : int

        Returns
        -------
        dict
            The name of its parameter and its value, or nothing.
        """
        values = getattr(self, self._strength_name)
        if np.ndim(values) == 0 and not isinstance(values, str):
            return {}
        path = getattr(self, f"{self._strength_name}_path_")
        return {self._strength_name: float(path[t])}
