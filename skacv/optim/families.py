"""Penalties with weights for coefficients, and penalties of groups.

:class:`Weighted` gives every coefficient a weight in a uniform penalty of
:mod:`skacv.optim.penalties`; an intercept has weight zero. :class:`Grouped` is the base
class of penalties of the norms of groups, and :class:`GroupL2` the group lasso. Add a
penalty of groups here, and to ``tests/optim/test_families.py``.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from scipy import sparse

from .equality import ComparesArrays
from .penalties import Penalty, StepSize, Uniform

__all__ = ["GroupL2", "Grouped", "Weighted"]


@dataclass(frozen=True, eq=False)
class Weighted(ComparesArrays, Penalty):
    """g(b) = sum_j weights_j penalty(b_j), for a uniform penalty.

    Parameters
    ----------
    penalty : Uniform
    weights : array-like of shape (n_columns,)
        Nonnegative; a coefficient with weight zero is not penalised.
    """

    penalty: Uniform
    weights: np.ndarray

    def __post_init__(self):
        object.__setattr__(self, "weights", np.asarray(self.weights, dtype=float))

    @property
    def strength(self) -> float:
        return self.penalty.strength

    @property
    def is_linear(self) -> bool:
        return self.penalty.is_linear

    @property
    def is_rotation_invariant(self) -> bool:
        return self.penalty.is_rotation_invariant and np.ptp(self.weights) == 0

    @property
    def curvature(self) -> float:
        return self.penalty.curvature * float(self.weights.max(initial=0))

    def with_strength(self, strength: float) -> Self:
        return replace(self, penalty=self.penalty.with_strength(strength))

    def unpenalized(self, n_columns: int) -> np.ndarray:
        return self.weights == 0

    def check(self, n_columns: int) -> None:
        if not isinstance(self.penalty, Uniform):
            raise ValueError(
                f"Weights are for uniform penalties, {self.penalty} is not one."
            )
        _check_weights(self, len(self.weights), n_columns)

    def common_curvature(self) -> float | None:
        """The curvature if all weights are equal, else None."""
        is_common = self.penalty.curvature == 0 or np.ptp(self.weights) == 0
        return super().common_curvature() if is_common else None

    def _weights_for(self, coef):
        """Weights in the precision of coefficients, with which they broadcast."""
        return _as_columns(self.weights.astype(coef.dtype, copy=False), coef.ndim)

    def terms(self, coef: np.ndarray) -> np.ndarray:
        weights = self._weights_for(coef)
        # Without a weight the term may be infinite, of a negative number for instance.
        return weights * np.where(weights > 0, self.penalty.terms(coef), 0)

    def prox(self, point: np.ndarray, step_size: StepSize) -> np.ndarray:
        if self.is_linear:
            return point
        return self.penalty.prox(point, step_size * self._weights_for(point))

    def prox_derivative(self, coef: np.ndarray, step_size: StepSize) -> np.ndarray:
        return self.penalty.prox_derivative(coef, step_size * self._weights_for(coef))

    def smooth_gradient(self, coef: np.ndarray) -> np.ndarray:
        return self._weights_for(coef) * self.penalty.smooth_gradient(coef)

    def gradient(self, coef: np.ndarray) -> np.ndarray:
        return self._weights_for(coef) * self.penalty.gradient(coef)

    def hessian_diagonal(self, coef: np.ndarray) -> np.ndarray:
        return self._weights_for(coef) * self.penalty.hessian_diagonal(coef)

    def largest_strength(self, gradient: np.ndarray, smoothness: float) -> float:
        is_penalized = self.weights > 0
        relative = gradient[is_penalized] / self._weights_for(gradient)[is_penalized]
        return self.penalty.largest_strength(relative, smoothness)

    def on(self, index: np.ndarray) -> Penalty:
        return Weighted(self.penalty, self.weights[index])


class PenaltyOnColumns:
    """A function that restricts penalties to some columns, each penalty once."""

    def __init__(self, index):
        self.index = index
        self._penalty = self._restricted = None

    def __call__(self, penalty):
        if penalty is not self._penalty:
            self._penalty, self._restricted = penalty, penalty.on(self.index)
        return self._restricted


@dataclass(frozen=True, eq=False)
class Grouped(ComparesArrays, Penalty):
    """A penalty of the norms of groups of coefficients.

    A subclass with further fields is a ``dataclass(frozen=True, eq=False)``, since
    :class:`ComparesArrays` defines its equality.

    Parameters
    ----------
    strength : float
    groups : array-like of int, shape (n_columns,)
        Group of every coefficient, numbered from 0.
    weights : array-like of shape (n_groups,)
        Factor of the penalty of every group; a group with weight zero is not penalised.
    """

    strength: float
    groups: np.ndarray
    weights: np.ndarray

    def __post_init__(self):
        object.__setattr__(self, "groups", np.asarray(self.groups, dtype=int))
        object.__setattr__(self, "weights", np.asarray(self.weights, dtype=float))

    def unpenalized(self, n_columns: int) -> np.ndarray:
        return self.weights[self.groups] == 0

    @cached_property
    def _members(self):
        """The membership matrix (n_groups, n_columns), one if a group has a column."""
        n_columns = len(self.groups)
        positions = self.groups, np.arange(n_columns)
        shape = len(self.weights), n_columns
        return sparse.csr_matrix((np.ones(n_columns), positions), shape=shape)

    def check(self, n_columns: int) -> None:
        if self.groups.max(initial=-1) + 1 != len(self.weights):
            raise ValueError(
                f"{type(self).__name__} needs a weight for each of the groups, "
                f"numbered from 0: got {len(self.weights)} weights for groups up to "
                f"{self.groups.max(initial=-1)}."
            )
        _check_weights(self, len(self.groups), n_columns)

    def norms(self, coef: np.ndarray) -> np.ndarray:
        """Euclidean norm of every group, (n_groups, ...)."""
        return np.sqrt(self._sums(coef.astype(np.float64) ** 2))

    def _sums(self, array):
        """Sums over the coefficients of every group, (n_groups, ...)."""
        flat = array.reshape(len(array), int(np.prod(array.shape[1:])))
        return (self._members @ flat).reshape(len(self.weights), *array.shape[1:])

    def _threshold(self, step_size, ndim):
        return step_size * self.strength * _as_columns(self.weights, ndim)

    def on(self, index: np.ndarray) -> Penalty:
        """The penalty of the coefficients in ``index``, all of some groups."""
        group_numbers, groups = np.unique(self.groups[index], return_inverse=True)
        return replace(self, groups=groups, weights=self.weights[group_numbers])

    def gradient(self, coef: np.ndarray) -> np.ndarray:
        raise ValueError(
            f"{type(self).__name__} is not a sum over coefficients, which an expansion "
            "of a converged model asks for: leave-one-out is exact along the run "
            "(loo=True)."
        )

    def expand_to_groups(self, mask: np.ndarray) -> np.ndarray:
        has_member = np.zeros(len(self.weights), dtype=bool)
        has_member[self.groups[mask]] = True
        return has_member[self.groups]


class GroupL2(Grouped):
    """g(b) = strength sum_g weights_g ||b_g||, the group lasso (Yuan & Lin 2006)."""

    def terms(self, coef: np.ndarray) -> np.ndarray:
        return self._threshold(1.0, coef.ndim) * self.norms(coef)

    def prox(self, point: np.ndarray, step_size: StepSize) -> np.ndarray:
        norms, threshold = self.norms(point), self._threshold(step_size, point.ndim)
        threshold_share = threshold / np.where(norms > 0, norms, 1)
        factor = np.where(norms > threshold, 1 - threshold_share, threshold == 0)
        return point * factor.astype(point.dtype)[self.groups] + 0.0  # no -0

    def prox_tangent(
        self, coef: np.ndarray, step_size: StepSize, tangents: np.ndarray
    ) -> np.ndarray:
        """(||b|| d + threshold e e'd) / ||u||, with b = prox(u), e = b / ||b||."""
        norms, threshold = self.norms(coef), self._threshold(step_size, coef.ndim)
        is_nonzero = norms > 0
        length = np.where(is_nonzero, norms + threshold, 1)  # ||u||
        factor = np.where(is_nonzero, norms / length, threshold == 0)
        direction = coef / np.where(is_nonzero, norms, 1)[self.groups]
        along_direction = self._sums(direction * tangents)
        tangent = factor[self.groups] * tangents
        tangent += direction * (threshold / length * along_direction)[self.groups]
        return tangent.astype(tangents.dtype, copy=False)

    def support(self, coef: np.ndarray, step_size: StepSize) -> np.ndarray:
        is_nonzero = (self.norms(coef) > 0) | (
            self._threshold(step_size, coef.ndim) == 0
        )
        return is_nonzero[self.groups]

    def largest_strength(self, gradient: np.ndarray, smoothness: float) -> float:
        is_penalized = self.weights > 0
        weights = _as_columns(self.weights[is_penalized], gradient.ndim)
        return float((self.norms(gradient)[is_penalized] / weights).max(initial=0))


def _as_columns(weights, ndim):
    return weights.reshape(-1, *(1,) * (ndim - 1))


def _check_weights(penalty, n_expected, n_columns):
    name, weights = type(penalty).__name__, penalty.weights
    if n_expected != n_columns:
        raise ValueError(
            f"{name} is for {n_expected} coefficients, but there are {n_columns}."
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"The weights of {name} must be finite and not negative.")


def except_last(penalty, n_columns):
    """A penalty on all coefficients but the last, an intercept."""
    if isinstance(penalty, Uniform):
        return Weighted(penalty, np.append(np.ones(n_columns - 1), 0.0))
    if isinstance(penalty, Weighted):
        return replace(penalty, weights=np.append(penalty.weights, 0.0))
    if isinstance(penalty, Grouped):
        groups = np.append(penalty.groups, len(penalty.weights))
        return replace(penalty, groups=groups, weights=np.append(penalty.weights, 0.0))
    raise TypeError(f"{type(penalty).__name__} belongs to no family of penalties.")
