"""Penalties g, each with its proximal operator and the derivative of it.

A penalty is a frozen dataclass deriving from :class:`Penalty`, with

``strength``
    what it is multiplied by, which estimators report for every iterate;
``value(coef)``
    g(coef), a number;
``prox(point, step_size)``
    argmin_b (b - point)^2 / 2 + step_size g(b), coordinate by coordinate;
``prox_derivative(coef, step_size)``
    the derivative of the prox at the point whose prox is ``coef``;
``gradient(coef)``, ``hessian_diagonal(coef)``
    first and second derivatives of g where the coefficients are free to move;
``largest_strength(gradient, smoothness)``
    where a path of strengths starts.

A smooth quadratic penalty enters the update through its ``smooth_gradient``
instead: it has a ``curvature`` and the identity for prox, so that the update
stays linear (``is_linear``). :class:`ExceptLast` spares an intercept.

Add a penalty here, list it in ``PENALTIES``, and it inherits the tests of
``tests/optim/test_penalties.py``. No estimator has :class:`MCP` or :class:`SCAD`:
they are for runs by hand, and hold what reads a run to penalties that are not
convex, whose prox may stretch (a derivative above 1).
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Penalty:
    """No proximal part, no smooth part: what every penalty starts from."""

    curvature = 0.0
    is_linear = False

    def value(self, coef):
        return 0.0

    def prox(self, point, step_size):
        return point

    def prox_derivative(self, coef, step_size):
        return np.ones_like(coef)

    def smooth_gradient(self, coef):
        """Gradient of the smooth part, of which ``curvature`` is the largest."""
        return self.curvature * coef

    def gradient(self, coef):
        """Derivatives of g where the coefficients are free, that is, off its kinks."""
        raise NotImplementedError(f"{type(self).__name__} has no gradient.")

    def hessian_diagonal(self, coef):
        """Second derivatives of g where the coefficients are free."""
        raise NotImplementedError(f"{type(self).__name__} has no hessian_diagonal.")

    def is_free(self, coef):
        """Which coefficients a small change of the rest of an objective moves."""
        return self.prox_derivative(coef, 0.0) != 0

    def largest_strength(self, gradient, smoothness):
        """Smallest strength that keeps zero coefficients at zero.

        ``gradient`` is the gradient of the loss at zero, ``smoothness`` its
        Lipschitz constant.
        """
        return float(np.abs(gradient).max())


@dataclass(frozen=True)
class Zero(Penalty):
    """g(b) = 0."""

    strength = 0.0
    is_linear = True

    def gradient(self, coef):
        return np.zeros_like(coef)

    def hessian_diagonal(self, coef):
        return np.zeros_like(coef)


@dataclass(frozen=True)
class SquaredL2(Penalty):
    """g(b) = strength ||b||^2 / 2, through its gradient."""

    strength: float

    is_linear = True

    @property
    def curvature(self):
        return self.strength

    def value(self, coef):
        return 0.5 * self.strength * float(np.vdot(coef, coef))

    def gradient(self, coef):
        return self.strength * coef

    def hessian_diagonal(self, coef):
        return np.full_like(coef, self.strength)

    def largest_strength(self, gradient, smoothness):
        """The curvature of the loss: no finite strength keeps zero at zero."""
        return float(smoothness)


def soft_threshold(point, threshold):
    """sign(point) max(|point| - threshold, 0)."""
    return point - np.clip(point, -threshold, threshold)


@dataclass(frozen=True)
class L1(Penalty):
    """g(b) = strength ||b||_1."""

    strength: float

    def value(self, coef):
        return self.strength * float(np.abs(coef).sum())

    def prox(self, point, step_size):
        return soft_threshold(point, step_size * self.strength)

    def prox_derivative(self, coef, step_size):
        # With strength zero the prox is the identity, at zero too.
        return ((coef != 0) | (self.strength == 0)).astype(coef.dtype)

    def gradient(self, coef):
        return self.strength * np.sign(coef)

    def hessian_diagonal(self, coef):
        return np.zeros_like(coef)


@dataclass(frozen=True)
class ElasticNet(Penalty):
    """g(b) = strength (l1_ratio ||b||_1 + (1 - l1_ratio) ||b||^2 / 2)."""

    strength: float
    l1_ratio: float = 0.5

    def value(self, coef):
        squares = 0.5 * float(np.vdot(coef, coef))
        absolute = float(np.abs(coef).sum())
        return self.strength * (
            self.l1_ratio * absolute + (1 - self.l1_ratio) * squares
        )

    def _shrinkage(self, step_size):
        return 1 + step_size * self.strength * (1 - self.l1_ratio)

    def prox(self, point, step_size):
        threshold = step_size * self.strength * self.l1_ratio
        return soft_threshold(point, threshold) / self._shrinkage(step_size)

    def prox_derivative(self, coef, step_size):
        moves = (coef != 0) | (self.strength * self.l1_ratio == 0)
        return moves.astype(coef.dtype) / self._shrinkage(step_size)

    def gradient(self, coef):
        slope = self.l1_ratio * np.sign(coef) + (1 - self.l1_ratio) * coef
        return self.strength * slope

    def hessian_diagonal(self, coef):
        return np.full_like(coef, self.strength * (1 - self.l1_ratio))

    def largest_strength(self, gradient, smoothness):
        # A pure ridge has no finite one; 1e-3 is what scikit-learn takes there.
        return super().largest_strength(gradient, smoothness) / max(self.l1_ratio, 1e-3)


@dataclass(frozen=True)
class MCP(Penalty):
    """Minimax concave penalty (Zhang 2010), with gamma > step_size.

    g(b) = strength |b| - b^2 / (2 gamma) up to |b| = gamma strength, constant
    from there.
    """

    strength: float
    gamma: float = 3.0

    def value(self, coef):
        size = np.minimum(np.abs(coef), self.gamma * self.strength)
        return float((self.strength * size - size**2 / (2 * self.gamma)).sum())

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
        moves = (coef != 0) | (self.strength == 0)
        return (slope * moves).astype(coef.dtype)

    def gradient(self, coef):
        slope = np.maximum(self.strength - np.abs(coef) / self.gamma, 0)
        return slope * np.sign(coef)

    def hessian_diagonal(self, coef):
        falls = np.abs(coef) < self.gamma * self.strength
        return -falls.astype(coef.dtype) / self.gamma


@dataclass(frozen=True)
class SCAD(Penalty):
    """Smoothly clipped absolute deviation (Fan & Li 2001), with a > 1 + step_size.

    The derivative of g in |b| is strength up to strength, falls linearly to
    zero at a strength, and is zero from there.
    """

    strength: float
    a: float = 3.7

    def value(self, coef):
        size, strength, a = np.abs(coef), self.strength, self.a
        middle = (2 * a * strength * size - size**2 - strength**2) / (2 * (a - 1))
        outer = strength**2 * (a + 1) / 2
        return float(
            np.where(
                size <= strength,
                strength * size,
                np.where(size <= a * strength, middle, outer),
            ).sum()
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
        moves = (coef != 0) | (strength == 0)
        return (slope * moves).astype(coef.dtype)

    def gradient(self, coef):
        falling = (self.a * self.strength - np.abs(coef)) / (self.a - 1)
        return np.clip(falling, 0, self.strength) * np.sign(coef)

    def hessian_diagonal(self, coef):
        size = np.abs(coef)
        falls = (size > self.strength) & (size < self.a * self.strength)
        return -falls.astype(coef.dtype) / (self.a - 1)


PENALTIES = (
    Zero(),
    SquaredL2(0.3),
    L1(0.3),
    ElasticNet(0.3, 0.6),
    MCP(0.3, 3.0),
    SCAD(0.3, 3.7),
)


@dataclass(frozen=True)
class ExceptLast(Penalty):
    """Another penalty on all rows of the coefficients but the last, an intercept."""

    penalty: Penalty

    @property
    def strength(self):
        return self.penalty.strength

    @property
    def curvature(self):
        return self.penalty.curvature

    @property
    def is_linear(self):
        return self.penalty.is_linear

    def value(self, coef):
        return self.penalty.value(coef[:-1])

    def prox(self, point, step_size):
        result = self.penalty.prox(point, step_size)
        if result is point:
            return point
        result[-1] = point[-1]
        return result

    def prox_derivative(self, coef, step_size):
        derivative = self.penalty.prox_derivative(coef, step_size)
        derivative[-1] = 1
        return derivative

    def smooth_gradient(self, coef):
        gradient = self.penalty.smooth_gradient(coef)
        gradient[-1] = 0
        return gradient

    def gradient(self, coef):
        gradient = self.penalty.gradient(coef)
        gradient[-1] = 0
        return gradient

    def hessian_diagonal(self, coef):
        diagonal = self.penalty.hessian_diagonal(coef)
        diagonal[-1] = 0
        return diagonal

    def largest_strength(self, gradient, smoothness):
        return self.penalty.largest_strength(gradient[:-1], smoothness)
