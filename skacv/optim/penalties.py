"""Penalties g, their proximal operators, and the derivatives of these.

A penalty belongs to one of three families:

:class:`Uniform`
    the prox of a coefficient depends on this coefficient alone, by one function for all
    coefficients;
:class:`~skacv.optim.families.Weighted`
    a uniform penalty with a weight for every coefficient, zero if it is not penalised,
    such as an intercept;
:class:`~skacv.optim.families.Grouped`
    the prox of a coefficient depends on the coefficients of its group.

A new penalty is a frozen dataclass deriving from :class:`Uniform` or ``Grouped`` (any
uniform penalty may be weighted), with

``strength``
    its factor, a field, which estimators set through ``with_strength`` and report for
    every iterate;
``terms(coef)``
    its terms, one for every coefficient (or group);
``prox(point, step_size)``
    argmin_b (b - point)^2 / 2 + step_size g(b); points have shape (n_columns, ...),
    step sizes are numbers or broadcast to that;
``prox_derivative(coef, step_size)``
    the derivative of the prox at the point whose prox is ``coef``; for a grouped
    penalty, ``prox_tangent`` and ``support`` instead;
``gradient(coef)``, ``hessian_diagonal(coef)``
    first and second derivatives of g for coefficients that are free to move;
``largest_strength(gradient, smoothness)``
    the strength at which a path starts.

A smooth quadratic penalty enters the update through its ``smooth_gradient``
instead: it has a ``curvature`` and the identity for prox, so that the update
stays linear (``is_linear``).

List a penalty in ``PENALTIES``, and it inherits the tests of
``tests/optim/test_penalties.py``.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from .blocks import LARGE_BYTES, blocks

__all__ = [
    "L1",
    "MCP",
    "PENALTIES",
    "SCAD",
    "ElasticNet",
    "NonnegativeElasticNet",
    "Penalty",
    "SquaredL2",
    "Uniform",
    "Zero",
]

# One number for all coefficients, or an array that broadcasts with them.
StepSize: TypeAlias = float | np.ndarray


@dataclass(frozen=True)
class Penalty:
    """Base class of all penalties, which has neither a prox nor a smooth part.

    ``is_rotation_invariant`` says whether its value, gradient, prox and
    ``largest_strength`` are the same in any orthonormal basis of the coefficients.
    """

    # Read only, as a subclass may compute them. At run time a property here would
    # become the default of a subclass's field.
    if TYPE_CHECKING:

        @property
        def strength(self) -> float: ...

        @property
        def curvature(self) -> float: ...

        @property
        def is_linear(self) -> bool: ...

        @property
        def is_rotation_invariant(self) -> bool: ...
    else:
        curvature = 0.0
        is_linear = False
        is_rotation_invariant = False

    def terms(self, coef: np.ndarray) -> np.ndarray:
        """Terms of the penalty, one for every coefficient or group."""
        return np.zeros_like(coef)

    def value(self, coef: np.ndarray) -> float:
        """g(coef), a number."""
        return float(self.terms(coef).sum())

    def values(self, coef: np.ndarray) -> np.ndarray:
        """g of many iterates, (n_iterates, n_columns, n_outputs) -> (n_iterates,)."""
        values = np.empty(len(coef))
        # The terms of all iterates would take several times the memory of the path.
        for part in blocks(len(coef), 8 * coef[:1].size, LARGE_BYTES):
            terms = self.terms(np.moveaxis(coef[part], 0, 2))
            values[part] = terms.sum(axis=(0, 1), dtype=np.float64)
        return values

    def prox(self, point: np.ndarray, step_size: StepSize) -> np.ndarray:
        return point

    def smooth_gradient(self, coef: np.ndarray) -> np.ndarray:
        """Gradient of the smooth part, whose largest curvature is ``curvature``."""
        return self.curvature * coef

    def common_curvature(self) -> float | None:
        """The curvature if it is the same in every direction, else None."""
        return self.curvature if self.is_linear else None

    def gradient(self, coef: np.ndarray) -> np.ndarray:
        """Derivatives of g for coefficients that are free, that is, off its kinks."""
        raise ValueError(f"{type(self).__name__} has no gradient to expand it by.")

    def hessian_diagonal(self, coef: np.ndarray) -> np.ndarray:
        """Second derivatives of g for coefficients that are free."""
        raise ValueError(f"{type(self).__name__} has no hessian_diagonal.")

    def with_strength(self, strength: float) -> Self:
        """The same penalty with another strength."""
        return replace(self, strength=strength)  # type: ignore[call-arg]  # a field of subclasses

    def unpenalized(self, n_columns: int) -> np.ndarray:
        """Mask of the coefficients that are not penalised at any strength."""
        return np.zeros(n_columns, dtype=bool)

    def is_free(self, coef: np.ndarray) -> np.ndarray:
        """Mask of the coefficients that move if the loss changes a little."""
        return self.support(coef, np.sqrt(np.finfo(float).eps))

    def largest_strength(self, gradient: np.ndarray, smoothness: float) -> float:
        """Smallest strength that keeps zero coefficients at zero.

        ``gradient`` is the gradient of the loss at zero, ``smoothness`` its Lipschitz
        constant.
        """
        return float(np.abs(gradient).max(initial=0))

    def check(self, n_columns: int) -> None:
        """Raise a ValueError if it does not fit this number of coefficients."""

    def on(self, index: np.ndarray) -> "Penalty":
        """The penalty of the coefficients in ``index``, an array of int."""
        raise ValueError(
            f"{type(self).__name__} does not say how the prox of some coefficients "
            "depends on the others: derive it from Uniform, of "
            "skacv.optim.penalties, or Grouped, of skacv.optim.families."
        )

    def expand_to_groups(self, mask: np.ndarray) -> np.ndarray:
        """The columns in a mask, completed by those whose prox depends on them."""
        return mask

    def prox_derivative(self, coef: np.ndarray, step_size: StepSize) -> np.ndarray:
        return np.ones_like(coef)

    def prox_tangent(
        self, coef: np.ndarray, step_size: StepSize, tangents: np.ndarray
    ) -> np.ndarray:
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

    def support(self, coef: np.ndarray, step_size: StepSize) -> np.ndarray:
        """Mask of the entries at which the derivative of the prox is not zero."""
        return self.prox_derivative(coef, step_size) != 0


class Uniform(Penalty):
    """A sum of the same function of every coefficient."""

    def on(self, index: np.ndarray) -> "Penalty":
        return self


class _Quadratic(Uniform):
    """A penalty that has a smooth part only."""

    is_linear = is_rotation_invariant = True

    def gradient(self, coef: np.ndarray) -> np.ndarray:
        return self.smooth_gradient(coef)

    def hessian_diagonal(self, coef: np.ndarray) -> np.ndarray:
        return np.full_like(coef, self.curvature)


@dataclass(frozen=True)
class Zero(_Quadratic):
    """g(b) = 0."""

    strength = 0.0

    def with_strength(self, strength: float) -> Self:
        """The penalty itself, which has no strength."""
        return self


@dataclass(frozen=True)
class SquaredL2(_Quadratic):
    """g(b) = strength ||b||^2 / 2, through its gradient."""

    strength: float

    @property
    def curvature(self) -> float:
        return self.strength

    def terms(self, coef: np.ndarray) -> np.ndarray:
        return 0.5 * self.strength * coef**2

    def largest_strength(self, gradient: np.ndarray, smoothness: float) -> float:
        """The curvature of the loss: no finite strength keeps zero at zero."""
        return float(smoothness)


def soft_threshold(point, threshold):
    """sign(point) max(|point| - threshold, 0)."""
    result = np.minimum(point, threshold)
    np.maximum(result, -threshold, out=result)
    return np.subtract(point, result, out=result)


def is_above_threshold(coef, threshold):
    """Mask of the entries of a soft threshold's result that move with its point."""
    return (coef != 0) | (threshold == 0)


@dataclass(frozen=True)
class L1(Uniform):
    """g(b) = strength ||b||_1."""

    strength: float

    def terms(self, coef: np.ndarray) -> np.ndarray:
        return self.strength * np.abs(coef)

    def prox(self, point: np.ndarray, step_size: StepSize) -> np.ndarray:
        return soft_threshold(point, step_size * self.strength)

    def prox_derivative(self, coef: np.ndarray, step_size: StepSize) -> np.ndarray:
        return is_above_threshold(coef, step_size * self.strength).astype(coef.dtype)

    def gradient(self, coef: np.ndarray) -> np.ndarray:
        return self.strength * np.sign(coef)

    def hessian_diagonal(self, coef: np.ndarray) -> np.ndarray:
        return np.zeros_like(coef)


@dataclass(frozen=True)
class ElasticNet(Uniform):
    """g(b) = strength (l1_ratio ||b||_1 + (1 - l1_ratio) ||b||^2 / 2)."""

    strength: float
    l1_ratio: float = 0.5

    def terms(self, coef: np.ndarray) -> np.ndarray:
        ridge = (1 - self.l1_ratio) * coef**2 / 2
        return self.strength * (self.l1_ratio * np.abs(coef) + ridge)

    def _shrinkage(self, step_size):
        return 1 + step_size * self.strength * (1 - self.l1_ratio)

    def prox(self, point: np.ndarray, step_size: StepSize) -> np.ndarray:
        threshold = step_size * self.strength * self.l1_ratio
        return soft_threshold(point, threshold) / self._shrinkage(step_size)

    def prox_derivative(self, coef: np.ndarray, step_size: StepSize) -> np.ndarray:
        is_above = is_above_threshold(coef, step_size * self.strength * self.l1_ratio)
        return (is_above / self._shrinkage(step_size)).astype(coef.dtype)

    def gradient(self, coef: np.ndarray) -> np.ndarray:
        slope = self.l1_ratio * np.sign(coef) + (1 - self.l1_ratio) * coef
        return self.strength * slope

    def hessian_diagonal(self, coef: np.ndarray) -> np.ndarray:
        return np.full_like(coef, self.strength * (1 - self.l1_ratio))

    def largest_strength(self, gradient: np.ndarray, smoothness: float) -> float:
        # A pure ridge has no finite one: it takes the ratio 1e-3, as in scikit-learn.
        return super().largest_strength(gradient, smoothness) / max(self.l1_ratio, 1e-3)


@dataclass(frozen=True)
class NonnegativeElasticNet(ElasticNet):
    """The elastic net of coefficients that are not negative.

    g(b) = strength (l1_ratio sum(b) + (1 - l1_ratio) ||b||^2 / 2) for b >= 0,
    infinite otherwise. Without a strength only the sign is restricted; in a
    ``Weighted`` penalty, coefficients of weight zero may have any sign.
    """

    def terms(self, coef: np.ndarray) -> np.ndarray:
        return np.where(coef >= 0, super().terms(coef), np.inf)

    def prox(self, point: np.ndarray, step_size: StepSize) -> np.ndarray:
        shifted = np.maximum(super().prox(point, step_size), 0)
        # A weight of zero gives a step of zero, and leaves the sign free.
        return np.where(np.equal(step_size, 0), point, shifted)

    def prox_derivative(self, coef: np.ndarray, step_size: StepSize) -> np.ndarray:
        is_above = is_above_threshold(coef, step_size)  # zero is a kink at any strength
        return (is_above / self._shrinkage(step_size)).astype(coef.dtype)

    def largest_strength(self, gradient: np.ndarray, smoothness: float) -> float:
        # A positive gradient keeps zero at zero whatever the strength is.
        return super().largest_strength(np.minimum(gradient, 0), smoothness)


@dataclass(frozen=True)
class MCP(Uniform):
    """Minimax concave penalty (Zhang 2010), with gamma > step_size.

    g(b) = strength |b| - b^2 / (2 gamma) up to |b| = gamma strength, constant
    from there.
    """

    strength: float
    gamma: float = 3.0

    def terms(self, coef: np.ndarray) -> np.ndarray:
        size = np.minimum(np.abs(coef), self.gamma * self.strength)
        return self.strength * size - size**2 / (2 * self.gamma)

    def _slope(self, step_size):
        if np.max(step_size, initial=0) >= self.gamma:
            raise ValueError(
                f"MCP needs gamma > step_size for a single-valued prox, got "
                f"gamma={self.gamma} and step_size={step_size}."
            )
        return 1 / (1 - step_size / self.gamma)

    def prox(self, point: np.ndarray, step_size: StepSize) -> np.ndarray:
        inner = soft_threshold(point, step_size * self.strength)
        return np.where(
            np.abs(point) <= self.gamma * self.strength,
            inner * self._slope(step_size),
            point,
        )

    def prox_derivative(self, coef: np.ndarray, step_size: StepSize) -> np.ndarray:
        size = np.abs(coef)
        slope = np.where(size < self.gamma * self.strength, self._slope(step_size), 1)
        is_above = is_above_threshold(coef, step_size * self.strength)
        return (slope * is_above).astype(coef.dtype)

    def gradient(self, coef: np.ndarray) -> np.ndarray:
        slope = np.maximum(self.strength - np.abs(coef) / self.gamma, 0)
        return slope * np.sign(coef)

    def hessian_diagonal(self, coef: np.ndarray) -> np.ndarray:
        is_concave = np.abs(coef) < self.gamma * self.strength
        return -is_concave.astype(coef.dtype) / self.gamma


@dataclass(frozen=True)
class SCAD(Uniform):
    """Smoothly clipped absolute deviation (Fan & Li 2001), with a > 1 + step_size.

    The derivative of g in |b| is strength up to |b| = strength, falls linearly to zero
    at |b| = a strength, and is zero from there.
    """

    strength: float
    a: float = 3.7

    def terms(self, coef: np.ndarray) -> np.ndarray:
        size, strength, a = np.abs(coef), self.strength, self.a
        middle = (2 * a * strength * size - size**2 - strength**2) / (2 * (a - 1))
        outer = strength**2 * (a + 1) / 2
        return np.where(
            size <= strength,
            strength * size,
            np.where(size <= a * strength, middle, outer),
        )

    def _slope(self, step_size):
        if np.max(step_size, initial=0) >= self.a - 1:
            raise ValueError(
                f"SCAD needs a > 1 + step_size for a single-valued prox, got "
                f"a={self.a} and step_size={step_size}."
            )
        return (self.a - 1) / (self.a - 1 - step_size)

    def prox(self, point: np.ndarray, step_size: StepSize) -> np.ndarray:
        size, strength = np.abs(point), self.strength
        inner = soft_threshold(point, step_size * strength)
        threshold = step_size * strength * self.a / (self.a - 1)
        middle = soft_threshold(point, threshold) * self._slope(step_size)
        return np.where(
            size <= strength * (1 + step_size),
            inner,
            np.where(size <= self.a * strength, middle, point),
        )

    def prox_derivative(self, coef: np.ndarray, step_size: StepSize) -> np.ndarray:
        size, strength = np.abs(coef), self.strength
        in_middle = (size > strength) & (size <= self.a * strength)
        slope = np.where(in_middle, self._slope(step_size), 1.0)
        is_above = is_above_threshold(coef, step_size * strength)
        return (slope * is_above).astype(coef.dtype)

    def gradient(self, coef: np.ndarray) -> np.ndarray:
        falling = (self.a * self.strength - np.abs(coef)) / (self.a - 1)
        return np.clip(falling, 0, self.strength) * np.sign(coef)

    def hessian_diagonal(self, coef: np.ndarray) -> np.ndarray:
        size = np.abs(coef)
        is_concave = (size > self.strength) & (size < self.a * self.strength)
        return -is_concave.astype(coef.dtype) / (self.a - 1)


PENALTIES = (
    Zero(),
    SquaredL2(0.3),
    L1(0.3),
    ElasticNet(0.3, 0.6),
    NonnegativeElasticNet(0.3, 0.6),
    MCP(0.3, 3.0),
    SCAD(0.3, 3.7),
)
