"""Losses of a row, as functions of its target and linear predictor.

A loss is a frozen dataclass deriving from :class:`Loss`, with

``value(target, predictor)``
    the loss of every entry, or of every row, (n_rows, 1, ...), if the outputs of a row
    are coupled;
``derivative(target, predictor)``
    its derivative with respect to the linear predictor, of the predictor's shape;
``curvature(target, predictor)``
    its second derivative, (n_rows, n_outputs), or if outputs are coupled a matrix per
    row, (n_rows, n_outputs, n_outputs);
``curvature_bound(target)``
    an upper bound of the curvature (of its largest eigenvalue), which sets the
    step size.

Predictors have shape (n_rows, n_outputs), and may have further axes for
replicas; targets broadcast against them. Add a loss here, list it in
``LOSSES``, and it inherits the tests of ``tests/optim/test_losses.py``.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import xlogy

__all__ = [
    "LOSSES",
    "Huber",
    "Logistic",
    "Loss",
    "Multinomial",
    "Poisson",
    "PseudoHuber",
    "SmoothedHinge",
    "SquaredError",
    "SquaredHinge",
]


@dataclass(frozen=True)
class Loss:
    """A smooth convex loss whose outputs do not depend on each other.

    Attributes
    ----------
    is_quadratic : bool
        Whether it is half the squared error, whose derivative is the residual.
    is_coupled : bool
        Whether the outputs of a row enter one loss together.
    is_of_residual : bool
        Whether it depends only on the target minus the predictor.
    name : str
        Name of the loss in figures.
    scale : float
        Length over which a change of the predictor changes the derivative much.
    labels : tuple of float
        Codes of the two classes, for classification.
    reported_factor : float
        Ratio of the loss that paths report to ``value``.
    target_range : tuple of float
        The smallest and the largest value of a regression target.
    """

    name = "loss"
    labels = -1.0, 1.0
    is_quadratic = False
    is_coupled = False
    is_of_residual = False
    reported_factor = 1.0
    target_range = -np.inf, np.inf

    # Read only, as a subclass may compute it. At run time a property here would become
    # the default of a subclass's field.
    if TYPE_CHECKING:

        @property
        def scale(self) -> float: ...
    else:
        scale = 1.0

    def value(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        """The loss of every entry, or of every row if outputs are coupled."""
        raise ValueError(f"{type(self).__name__} has no value.")

    def derivative(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        """Derivative of :meth:`value` in the linear predictor, of the same shape."""
        raise ValueError(f"{type(self).__name__} has no derivative.")

    def curvature(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        """The second derivative; if outputs are coupled, a matrix per row."""
        raise ValueError(f"{type(self).__name__} has no curvature.")

    def curvature_bound(self, target: np.ndarray) -> float:
        """An upper bound of the curvature, which sets the step size."""
        raise ValueError(f"{type(self).__name__} has no curvature_bound.")

    def reported(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        """The loss of a row as paths report it: ``reported_factor`` times the value."""
        return self.reported_factor * self.value(target, predictor)

    def mean(self, predictor: np.ndarray) -> np.ndarray:
        """The prediction of a regressor with this linear predictor."""
        return predictor

    def predictor(self, mean: np.ndarray) -> np.ndarray:
        """The linear predictor of a prediction, the inverse of :meth:`mean`."""
        return mean

    def spread(self, mean: np.ndarray) -> np.ndarray:
        """The standard deviation of targets around a mean, up to a factor."""
        return np.ones_like(mean)

    def check_target(self, target: np.ndarray) -> None:
        """Raise a ValueError for invalid targets of this loss."""

    def curvature_matrix(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        """The curvature of one output or of coupled outputs as one matrix per row.

        Returns
        -------
        ndarray of shape (n_rows, n_outputs, n_outputs)
        """
        curvature = self.curvature(target, predictor)
        return curvature if self.is_coupled else curvature[:, :, None]


@dataclass(frozen=True)
class SquaredError(Loss):
    """Half the squared error, l(y, z) = (y - z)^2 / 2."""

    name = "squared error"
    is_quadratic = True
    is_of_residual = True
    reported_factor = 2.0  # the squared error itself

    def value(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        return 0.5 * (target - predictor) ** 2

    def derivative(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        return predictor - target

    def curvature(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        return np.ones_like(predictor)

    def curvature_bound(self, target: np.ndarray) -> float:
        return 1.0


@dataclass(frozen=True)
class Logistic(Loss):
    """Log loss of a label 0 or 1, l(y, z) = log(1 + exp(z)) - y z."""

    name = "log loss"
    labels = 0.0, 1.0

    def value(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        return _softplus(predictor) - target * predictor

    def derivative(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        return _sigmoid(predictor) - target

    def curvature(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        return _sigmoid(predictor) * _sigmoid(-predictor)

    def curvature_bound(self, target: np.ndarray) -> float:
        return 0.25


def _softplus(predictor):
    """log(1 + exp(z)), more than twice as fast as NumPy's logaddexp."""
    value = np.exp(-np.abs(predictor))
    np.log1p(value, out=value)
    value += np.maximum(predictor, 0)
    return value


def _sigmoid(predictor):
    """1 / (1 + exp(-z)), several times as fast as SciPy's expit."""
    with np.errstate(over="ignore"):  # 1 / inf is right
        result = np.exp(-predictor)
    result += 1
    return np.reciprocal(result, out=result)


@dataclass(frozen=True)
class Multinomial(Loss):
    """Log loss of one-hot labels, l(y, z) = log sum_k exp(z_k) - y'z."""

    name = "log loss"
    labels = 0.0, 1.0
    is_coupled = True

    def value(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        target_predictor = np.einsum("nk...,nk...->n...", target, predictor)
        largest, _, total = _exponentials(predictor)
        return (largest + np.log(total) - target_predictor)[:, None]

    def derivative(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        derivative = _softmax(predictor)
        derivative -= target
        return derivative

    def curvature(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        probability = _softmax(predictor)
        return probability[:, :, None] * (
            np.eye(probability.shape[1]) - probability[:, None, :]
        )

    def curvature_bound(self, target: np.ndarray) -> float:
        return 0.5


@dataclass(frozen=True)
class Huber(Loss):
    """Half the squared error up to ``threshold``, linear beyond.

    l(y, z) = r^2 / 2 where |r| <= threshold, else threshold |r| - threshold^2 / 2,
    with r = y - z.
    """

    name = "Huber loss"
    is_of_residual = True
    threshold: float = 1.35

    @property
    def scale(self) -> float:
        """The length on which the derivative rises."""
        return self.threshold

    def value(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        residual = target - predictor
        clipped = np.clip(residual, -self.threshold, self.threshold)
        return clipped * (residual - 0.5 * clipped)

    def derivative(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        return np.clip(predictor - target, -self.threshold, self.threshold)

    def curvature(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        inside = np.abs(target - predictor) <= self.threshold
        return inside.astype(predictor.dtype)

    def curvature_bound(self, target: np.ndarray) -> float:
        return 1.0


@dataclass(frozen=True)
class PseudoHuber(Huber):
    """The Huber loss without a corner in its slope.

    l(y, z) = threshold^2 (sqrt(1 + (r / threshold)^2) - 1), with r = y - z.
    """

    name = "pseudo-Huber loss"
    threshold: float = 1.0

    def value(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        residual = (target - predictor) / self.threshold
        # r^2 / (1 + sqrt(1 + r^2)): small residuals keep their digits.
        return self.threshold**2 * residual**2 / (1 + np.hypot(1, residual))

    def derivative(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        residual = predictor - target
        return residual / np.hypot(1, residual / self.threshold)

    def curvature(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        return np.hypot(1, (target - predictor) / self.threshold) ** -3.0


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """Squared hinge of a label -1 or 1, l(y, z) = max(0, 1 - y z)^2."""

    name = "squared hinge loss"

    def value(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        return np.maximum(0, 1 - target * predictor) ** 2

    def derivative(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        return -2 * target * np.maximum(0, 1 - target * predictor)

    def curvature(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        return 2 * (target * predictor < 1).astype(predictor.dtype)

    def curvature_bound(self, target: np.ndarray) -> float:
        return 2.0


@dataclass(frozen=True)
class SmoothedHinge(Loss):
    """Hinge of a label -1 or 1, rounded over a length ``smoothing``.

    With m = 1 - y z: 0 for m <= 0, m^2 / (2 smoothing) up to smoothing, and
    m - smoothing / 2 beyond.
    """

    name = "smoothed hinge loss"
    smoothing: float = 0.5

    @property
    def scale(self) -> float:
        """The length on which the derivative rises."""
        return self.smoothing

    def value(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        margin = 1 - target * predictor
        clipped = np.clip(margin, 0, self.smoothing)
        return clipped / self.smoothing * (margin - 0.5 * clipped)

    def derivative(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        margin = 1 - target * predictor
        return -target * np.clip(margin / self.smoothing, 0, 1)

    def curvature(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        margin = 1 - target * predictor
        inside = (margin > 0) & (margin < self.smoothing)
        return inside.astype(predictor.dtype) / self.smoothing

    def curvature_bound(self, target: np.ndarray) -> float:
        return 1 / self.smoothing


@dataclass(frozen=True)
class Poisson(Loss):
    """Half the Poisson deviance under a log link, exp(z) - y z + y log y - y."""

    name = "half Poisson deviance"
    target_range = 0.0, np.inf

    def mean(self, predictor: np.ndarray) -> np.ndarray:
        return np.exp(predictor)

    def predictor(self, mean: np.ndarray) -> np.ndarray:
        return np.log(mean)

    def spread(self, mean: np.ndarray) -> np.ndarray:
        return np.sqrt(np.maximum(mean, np.finfo(mean.dtype).tiny))

    def check_target(self, target: np.ndarray) -> None:
        if (target < 0).any():
            raise ValueError(
                "Some values of y are negative: Poisson targets are counts or "
                "nonnegative rates."
            )
        if not target.any():
            raise ValueError(
                "All of y is zero: the Poisson model then has no finite minimum."
            )

    def value(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        constant = xlogy(target, target) - target
        return np.exp(predictor) - target * predictor + constant

    def derivative(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        return np.exp(predictor) - target

    def curvature(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        return np.exp(predictor)

    def curvature_bound(self, target: np.ndarray) -> float:
        return max(1.0, float(np.max(target)))


LOSSES = (
    SquaredError(),
    Logistic(),
    Multinomial(),
    Huber(),
    PseudoHuber(),
    SquaredHinge(),
    SmoothedHinge(),
    Poisson(),
)


def _exponentials(predictor):
    """The largest z of every row, exp(z - largest), and the row sums of the latter.

    Shapes: predictor z (n_rows, n_outputs, ...)."""
    largest = predictor[:, 0].copy(order="K")
    for k in range(1, predictor.shape[1]):
        np.maximum(largest, predictor[:, k], out=largest)
    exponentials = predictor - largest[:, None]
    np.exp(exponentials, out=exponentials)
    return largest, exponentials, np.einsum("nk...->n...", exponentials)


def _softmax(predictor):
    """Probabilities of the classes, of the predictor's shape."""
    _, exponentials, total = _exponentials(predictor)
    exponentials /= total[:, None]
    return exponentials
