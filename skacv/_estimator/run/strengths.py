"""Strengths of the penalty of a fit, and the order in which they are used."""

from dataclasses import dataclass
from typing import Any

import numpy as np

# Strengths of a "path" along which coefficients become nonzero one after the other; and
# of one whose penalty is smooth: its iterates on the way from one strength to the next
# are as good, and more updates at each bring them closer to their ends.
N_STRENGTHS = 30
N_SMOOTH_STRENGTHS = 10


@dataclass(frozen=True)
class Strengths:
    """The parameter that sets how strong a penalty is: a number, or several in turn.

    The strength itself is that of the mean form (1/n) sum_i (...) + g(b).

    Attributes
    ----------
    values : float, array-like or "path"
        The value of the parameter.
    name : str
        Its name.
    is_sum : bool
        Whether the objective is a sum over the rows and a penalty, which then weighs
        more where rows are left out; else a mean over the rows.
    n_path : int
        Number of strengths of a "path".
    ratio : float
        Where a "path" ends, relative to where it begins.
    """

    values: Any
    name: str = "alpha"
    is_sum: bool = False
    n_path: int = N_STRENGTHS
    ratio: float = 1e-3

    @property
    def is_path(self):
        return isinstance(self.values, str)

    def __len__(self):
        return self.n_path if self.is_path else np.size(self.values)

    def unit(self, data):
        """The parameter's value at which the strength is one."""
        return data.total_weight if self.is_sum else 1.0

    def strength_of(self, value, data):
        """The strength that a value of the parameter means."""
        return float(value / self.unit(data))

    def value_of(self, strength, data):
        """The parameter's value of a strength."""
        return float(strength * self.unit(data))

    def check(self, values):
        """Raise on values that the parameter does not take."""
        if not np.isfinite(values).all() or (values < 0).any():
            raise ValueError(
                f"{self.name} must be finite and not negative, got {values.tolist()}."
            )

    def on(self, data, penalty):
        """All strengths in the order in which they are used.

        Parameters
        ----------
        data : TrainingData
        penalty : Penalty
            The penalty of strength one, on all coefficients.

        Returns
        -------
        list of float
        """
        if self.is_path:
            return self._path(data.problem, penalty)
        values = np.atleast_1d(np.asarray(self.values, dtype=np.float64))
        if values.ndim > 1 or not values.size:
            raise ValueError(
                f"{self.name} must be a number, a sequence of numbers or 'path', got "
                f"an array of shape {values.shape}."
            )
        self.check(values)
        return [self.strength_of(value, data) for value in values]

    def _path(self, problem, penalty):
        n_columns = problem.design.shape[1]
        # What is not penalised moves before all others.
        free = np.flatnonzero(penalty.unpenalized(n_columns))
        gradient = problem.gradient(problem.fitted_on(free))
        largest = penalty.largest_strength(gradient, problem.smoothness)
        # All coefficients are zero there, however gradients are rounded: beside
        # large means no more than half of their digits are left.
        largest *= 1 + np.sqrt(np.finfo(problem.design.dtype).eps)
        largest = max(largest, np.finfo(float).eps)
        # Numbers of Python: those of NumPy would make single precision double.
        return np.geomspace(largest, self.ratio * largest, len(self)).tolist()


@dataclass(frozen=True)
class InverseStrengths(Strengths):
    """C, which multiplies the sum over the rows instead of the penalty."""

    name: str = "C"
    is_sum: bool = True

    def check(self, values):
        if np.isnan(values).any() or (values <= 0).any():
            raise ValueError(f"C must be positive, got {values.tolist()}.")

    def strength_of(self, value, data):
        return float(1 / (value * self.unit(data)))

    def value_of(self, strength, data):
        return 1 / (strength * self.unit(data)) if strength else np.inf
