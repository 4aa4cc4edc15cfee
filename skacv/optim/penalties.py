"""Penalties g, each with its proximal operator and the derivative of it.

A penalty belongs to one of three families, which say on what a coefficient's prox
depends:

:class:`Uniform`
    on the coefficient alone, the same function for all;
:class:`Weighted`
    the same with a weight for every coefficient, zero for one that is not penalised,
    such as an intercept;
:class:`Grouped`
    on the coefficients of its group.

A new penalty is a frozen dataclass deriving from :class:`Uniform` or :class:`Grouped`
(any uniform penalty may be weighted), with

``strength``
    what it is multiplied by, which estimators report for every iterate;
``cost(coef)``
    its summands, one for every coefficient (or group);
``prox(point, step_size)``
    argmin_b (b - point)^2 / 2 + step_size g(b); points have shape (n_columns, ...),
    step sizes are numbers or broadcast to that;
``prox_derivative(coef, step_size)``
    the derivative of the prox at the point whose prox is ``coef``; of a grouped penalty
    ``prox_tangent`` and ``support`` instead;
``largest_strength(gradient, smoothness)``
    where a path of strengths starts.

A smooth quadratic penalty enters the update through its ``smooth_gradient``
instead: it has a ``curvature`` and the identity for prox, so that the update
stays linear (``is_linear``).

List a penalty in ``PENALTIES``, and it inherits the tests of
``tests/optim/test_penalties.py``.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class Penalty:
    """No proximal part, no smooth part: what every penalty starts from."""

    curvature = 0.0
    is_linear = False

    def cost(self, coef):
        """Summands of the penalty."""
        return np.zeros_like(coef)

    def value(self, coef):
        """g(coef), a number."""
        return float(self.cost(coef).sum())

    def prox(self, point, step_size):
        return point

    def smooth_gradient(self, coef):
        """Gradient of the smooth part, of which ``curvature`` is the largest."""
        return self.curvature * coef

    def common_curvature(self):
        """The curvature, where it is that of every direction; else None."""
        return self.curvature if self.is_linear else None

    def largest_strength(self, gradient, smoothness):
        """Smallest strength that keeps zero coefficients at zero.

        ``gradient`` is the gradient of the loss at zero, ``smoothness`` its
        Lipschitz constant.
        """
        return float(np.abs(gradient).max())

    def check(self, n_columns):
        """Raise a ValueError where the penalty is not for so many coefficients."""

    def on(self, index):
        """The penalty of the coefficients in ``index``, an array of int."""
        raise ValueError(
            f"{type(self).__name__} does not say how the prox of some coefficients "
            "depends on the others: derive it from Uniform or Grouped, of "
            "skacv.optim.penalties."
        )

    def whole(self, mask):
        """The columns in a mask, and those whose prox depends on theirs."""
        return mask

    def prox_derivative(self, coef, step_size):
        return np.ones_like(coef)

    def prox_tangent(self, coef, step_size, tangents):
        """The derivative of the prox, times tangents of its point.

        Parameters
        ----------
        coef : ndarray of shape (n_columns, 1)
            The prox of the point.
        step_size : float
        tangents : ndarray of shape (n_columns, n_tangents)
            They may be overwritten.
        """
        if not self.is_linear:
            derivative = self.prox_derivative(coef, step_size)
            tangents *= derivative.astype(tangents.dtype, copy=False)
        return tangents

    def support(self, coef, step_size):
        """Where the derivative of the prox is not zero, in the shape of ``coef``."""
        return self.prox_derivative(coef, step_size) != 0


class Uniform(Penalty):
    """The same function of every coefficient."""

    def on(self, index):
        return self


@dataclass(frozen=True)
class Zero(Uniform):
    """g(b) = 0."""

    strength = 0.0
    is_linear = True


@dataclass(frozen=True)
class SquaredL2(Uniform):
    """g(b) = strength ||b||^2 / 2, through its gradient."""

    strength: float

    is_linear = True

    @property
    def curvature(self):
        return self.strength

    def cost(self, coef):
        return 0.5 * self.strength * coef**2

    def largest_strength(self, gradient, smoothness):
        """The curvature of the loss: no finite strength keeps zero at zero."""
        return float(smoothness)


def soft_threshold(point, threshold):
    """sign(point) max(|point| - threshold, 0)."""
    return point - np.clip(point, -threshold, threshold)


@dataclass(frozen=True)
class L1(Uniform):
    """g(b) = strength ||b||_1."""

    strength: float

    def cost(self, coef):
        return self.strength * np.abs(coef)

    def prox(self, point, step_size):
        return soft_threshold(point, step_size * self.strength)

    def prox_derivative(self, coef, step_size):
        # Without a threshold the prox is the identity, at zero too.
        return ((coef != 0) | (step_size * self.strength == 0)).astype(coef.dtype)


@dataclass(frozen=True)
class ElasticNet(Uniform):
    """g(b) = strength (l1_ratio ||b||_1 + (1 - l1_ratio) ||b||^2 / 2)."""

    strength: float
    l1_ratio: float = 0.5

    def cost(self, coef):
        ridge = (1 - self.l1_ratio) * coef**2 / 2
        return self.strength * (self.l1_ratio * np.abs(coef) + ridge)

    def _shrinkage(self, step_size):
        return 1 + step_size * self.strength * (1 - self.l1_ratio)

    def prox(self, point, step_size):
        threshold = step_size * self.strength * self.l1_ratio
        return soft_threshold(point, threshold) / self._shrinkage(step_size)

    def prox_derivative(self, coef, step_size):
        moves = (coef != 0) | (step_size * self.strength * self.l1_ratio == 0)
        return (moves / self._shrinkage(step_size)).astype(coef.dtype)

    def largest_strength(self, gradient, smoothness):
        # A pure ridge has no finite one; 1e-3 is what scikit-learn takes there.
        return super().largest_strength(gradient, smoothness) / max(self.l1_ratio, 1e-3)


@dataclass(frozen=True)
class MCP(Uniform):
    """Minimax concave penalty (Zhang 2010), with gamma > step_size.

    g(b) = strength |b| - b^2 / (2 gamma) up to |b| = gamma strength, constant
    from there.
    """

    strength: float
    gamma: float = 3.0

    def cost(self, coef):
        size = np.minimum(np.abs(coef), self.gamma * self.strength)
        return self.strength * size - size**2 / (2 * self.gamma)

    def _slope(self, step_size):
        if np.max(step_size) >= self.gamma:
            raise ValueError(
                f"MCP needs gamma > step_size for a single-valued prox, got "
                f"gamma={self.gamma} and step_size={step_size}."
            )
        return 1 / (1 - step_size / self.gamma)

    def prox(self, point, step_size):
        inner = soft_threshold(point, step_size * self.strength)
        return np.where(
            np.abs(point) <= self.gamma * self.strength,
            inner * self._slope(step_size),
            point,
        )

    def prox_derivative(self, coef, step_size):
        size = np.abs(coef)
        slope = np.where(size < self.gamma * self.strength, self._slope(step_size), 1)
        moves = (coef != 0) | (step_size * self.strength == 0)
        return (slope * moves).astype(coef.dtype)


@dataclass(frozen=True)
class SCAD(Uniform):
    """Smoothly clipped absolute deviation (Fan & Li 2001), with a > 1 + step_size.

    The derivative of g in |b| is strength up to strength, falls linearly to
    zero at a strength, and is zero from there.
    """

    strength: float
    a: float = 3.7

    def cost(self, coef):
        size, strength, a = np.abs(coef), self.strength, self.a
        middle = (2 * a * strength * size - size**2 - strength**2) / (2 * (a - 1))
        outer = strength**2 * (a + 1) / 2
        return np.where(
            size <= strength,
            strength * size,
            np.where(size <= a * strength, middle, outer),
        )

    def _slope(self, step_size):
        if np.max(step_size) >= self.a - 1:
            raise ValueError(
                f"SCAD needs a > 1 + step_size for a single-valued prox, got "
                f"a={self.a} and step_size={step_size}."
            )
        return (self.a - 1) / (self.a - 1 - step_size)

    def prox(self, point, step_size):
        size, strength = np.abs(point), self.strength
        inner = soft_threshold(point, step_size * strength)
        threshold = step_size * strength * self.a / (self.a - 1)
        middle = soft_threshold(point, threshold) * self._slope(step_size)
        return np.where(
            size <= strength * (1 + step_size),
            inner,
            np.where(size <= self.a * strength, middle, point),
        )

    def prox_derivative(self, coef, step_size):
        size, strength = np.abs(coef), self.strength
        in_middle = (size > strength) & (size <= self.a * strength)
        slope = np.where(in_middle, self._slope(step_size), 1.0)
        moves = (coef != 0) | (step_size * strength == 0)
        return (slope * moves).astype(coef.dtype)


@dataclass(frozen=True, eq=False)
class Weighted(Penalty):
    """g(b) = sum_j weights_j penalty(b_j), of a uniform penalty.

    Parameters
    ----------
    penalty : Uniform
    weights : ndarray of shape (n_columns,)
        Not negative; a coefficient of weight zero is not penalised.
    """

    penalty: Uniform
    weights: np.ndarray

    @property
    def strength(self):
        return self.penalty.strength

    @property
    def is_linear(self):
        return self.penalty.is_linear

    @property
    def curvature(self):
        return self.penalty.curvature * float(self.weights.max(initial=0))

    def __eq__(self, other):
        if not isinstance(other, Weighted):
            return NotImplemented
        same = self.penalty == other.penalty
        return same and np.array_equal(self.weights, other.weights)

    def check(self, n_columns):
        if not isinstance(self.penalty, Uniform):
            raise ValueError(
                f"Weights are for uniform penalties, {self.penalty} is not one."
            )
        _check_weights(self, len(self.weights), n_columns)

    def common_curvature(self):
        """The curvature, where all weights are alike; else None."""
        is_common = self.penalty.curvature == 0 or np.ptp(self.weights) == 0
        return super().common_curvature() if is_common else None

    def _beside(self, coef):
        """The weights, to be multiplied with coefficients of that shape."""
        weights = self.weights.astype(coef.dtype, copy=False)
        return weights.reshape(-1, *(1,) * (coef.ndim - 1))

    def cost(self, coef):
        return self._beside(coef) * self.penalty.cost(coef)

    def prox(self, point, step_size):
        if self.is_linear:
            return point
        return self.penalty.prox(point, step_size * self._beside(point))

    def prox_derivative(self, coef, step_size):
        return self.penalty.prox_derivative(coef, step_size * self._beside(coef))

    def smooth_gradient(self, coef):
        return self._beside(coef) * self.penalty.smooth_gradient(coef)

    def largest_strength(self, gradient, smoothness):
        held = self.weights > 0
        relative = gradient[held] / self._beside(gradient)[held]
        return self.penalty.largest_strength(relative, smoothness)

    def on(self, index):
        return Weighted(self.penalty, self.weights[index])


class OnColumns:
    """Penalties on some columns, each made once.

    Parameters
    ----------
    index : ndarray of int
    """

    def __init__(self, index):
        self.index = index
        self._whole = self._part = None

    def __call__(self, penalty):
        """The penalty on these columns."""
        if penalty is not self._whole:
            self._whole, self._part = penalty, penalty.on(self.index)
        return self._part


def except_last(penalty, n_columns):
    """A uniform penalty on all coefficients but the last, an intercept.

    Parameters
    ----------
    penalty : Uniform
    n_columns : int

    Returns
    -------
    Weighted
    """
    weights = np.ones(n_columns)
    weights[-1] = 0
    return Weighted(penalty, weights)


@dataclass(frozen=True, eq=False)
class Grouped(Penalty):
    """A penalty of the norms of groups of coefficients.

    Parameters
    ----------
    strength : float
    groups : ndarray of int, shape (n_columns,)
        Which group every coefficient is in, numbered from 0.
    weights : ndarray of shape (n_groups,)
        What multiplies the penalty of every group; zero leaves it alone.
    """

    strength: float
    groups: np.ndarray
    weights: np.ndarray

    def __eq__(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return self.strength == other.strength and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("groups", "weights")
        )

    @cached_property
    def _members(self):
        """One for every coefficient in its group, (n_groups, n_columns)."""
        n_columns = len(self.groups)
        places = self.groups, np.arange(n_columns)
        shape = len(self.weights), n_columns
        return sparse.csr_matrix((np.ones(n_columns), places), shape=shape)

    def check(self, n_columns):
        if self.groups.max(initial=-1) + 1 != len(self.weights):
            raise ValueError(
                f"{type(self).__name__} needs a weight for each of the groups, "
                f"numbered from 0: got {len(self.weights)} weights for groups up to "
                f"{self.groups.max(initial=-1)}."
            )
        _check_weights(self, len(self.groups), n_columns)

    def norms(self, coef):
        """Euclidean norm of every group, (n_groups, ...)."""
        n_others = int(np.prod(coef.shape[1:]))
        squares = coef.astype(np.float64).reshape(len(coef), n_others) ** 2
        norms = np.sqrt(self._members @ squares)
        return norms.reshape(len(norms), *coef.shape[1:])

    def _threshold(self, step_size, ndim):
        """What the prox takes from the norm of every group."""
        weights = self.weights.reshape(-1, *(1,) * (ndim - 1))
        return step_size * self.strength * weights

    def on(self, index):
        """The penalty of the coefficients in ``index``, which has whole groups."""
        kept, groups = np.unique(self.groups[index], return_inverse=True)
        return type(self)(self.strength, groups, self.weights[kept])

    def whole(self, mask):
        touched = np.zeros(len(self.weights), dtype=bool)
        touched[self.groups[mask]] = True
        return touched[self.groups]


class GroupL2(Grouped):
    """g(b) = strength sum_g weights_g ||b_g||, the group lasso (Yuan & Lin 2006)."""

    def cost(self, coef):
        return self._threshold(1.0, coef.ndim) * self.norms(coef)

    def prox(self, point, step_size):
        norms = self.norms(point)
        threshold = np.broadcast_to(self._threshold(step_size, point.ndim), norms.shape)
        share = np.zeros_like(norms)
        np.divide(threshold, norms, out=share, where=norms > 0)
        kept = np.where(norms > threshold, 1 - share, threshold == 0)
        return point * kept.astype(point.dtype)[self.groups]

    def prox_tangent(self, coef, step_size, tangents):
        """With b = prox(u) and e = b / ||b||: (||b|| d + threshold e e'd) / ||u||."""
        norms = self.norms(coef)
        threshold = np.broadcast_to(self._threshold(step_size, coef.ndim), norms.shape)
        ahead = norms + threshold
        kept = np.where(norms > 0, norms, threshold == 0)
        kept = kept / np.where((norms > 0) & (ahead > 0), ahead, 1)
        direction = coef / np.where(norms > 0, norms, 1)[self.groups]
        along = self._members @ (direction * tangents)
        turned = np.where(norms > 0, threshold / np.where(ahead > 0, ahead, 1), 0)
        found = kept[self.groups] * tangents
        found += direction * (turned * along)[self.groups]
        return found.astype(tangents.dtype, copy=False)

    def support(self, coef, step_size):
        moves = (self.norms(coef) > 0) | (self._threshold(step_size, coef.ndim) == 0)
        return moves[self.groups]

    def largest_strength(self, gradient, smoothness):
        held = self.weights > 0
        norms = self.norms(gradient)[held]
        return float(
            (norms / self._threshold(1 / self.strength, gradient.ndim)[held]).max()
        )


def _check_weights(penalty, n_own, n_columns):
    name, weights = type(penalty).__name__, penalty.weights
    if n_own != n_columns:
        raise ValueError(
            f"{name} is for {n_own} coefficients, and there are {n_columns}."
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"The weights of {name} must be finite and not negative.")


PENALTIES = (
    Zero(),
    SquaredL2(0.3),
    L1(0.3),
    ElasticNet(0.3, 0.6),
    MCP(0.3, 3.0),
    SCAD(0.3, 3.7),
)
