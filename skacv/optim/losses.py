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
    step size;
``curvature_bounds(target)``
    such a bound for every target, if they differ;
``null_predictor(target, weights)``
    the predictor without columns, at which a run with an intercept begins; zero where
    a loss does not say more.

Predictors have shape (n_rows, n_outputs), and may have further axes for
replicas; targets broadcast against them. Add a loss here, list it in
``LOSSES``, and it inherits the tests of ``tests/optim/test_losses.py``.
"""

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import xlogy

__all__ = [
    "LOSSES",
    "Expectile",
    "Gamma",
    "Huber",
    "LogLink",
    "Logistic",
    "Loss",
    "Multinomial",
    "NegativeBinomial",
    "Pinball",
    "Poisson",
    "PseudoHuber",
    "SmoothedHinge",
    "SmoothedQuantile",
    "SquaredError",
    "SquaredHinge",
    "Tweedie",
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
    couples_rows : bool
        Whether rows enter one loss together, which then depends on all their weights:
        :meth:`slopes` and :meth:`weighted_values` are its own.
    has_bounded_curvature : bool
        Whether no curvature exceeds ``curvature_bounds``. Otherwise these are the
        curvatures at predictions that equal the targets.
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
    couples_rows = False
    has_bounded_curvature = True
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

    def curvature_bounds(self, target: np.ndarray) -> np.ndarray:
        """An upper bound of the curvature for every target, of the target's shape."""
        return np.full_like(target, self.curvature_bound(target))

    def weighted_values(
        self, target: np.ndarray, predictor: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """Weights of the rows times :meth:`value`: what the objective sums up."""
        return weights * self.value(target, predictor)

    def slopes(
        self, target: np.ndarray, predictor: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """Derivatives of the sum of :meth:`weighted_values` in the predictors."""
        return weights * self.derivative(target, predictor)

    def largest_curvature(
        self, target: np.ndarray, predictor: np.ndarray, weights: np.ndarray
    ) -> float:
        """The largest curvature of coupled rows at these predictors."""
        raise ValueError(f"{type(self).__name__} has no largest_curvature.")

    def null_predictor(self, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The predictor without columns, at which a run with an intercept begins.

        Estimates leave rows out of the run, not of its start: it should be rounded so
        coarsely that a row hardly ever changes it.

        Parameters
        ----------
        target : ndarray of shape (n_rows, n_outputs)
        weights : ndarray of shape (n_rows, 1)
            With a sum of one.

        Returns
        -------
        ndarray of shape (n_outputs,)
        """
        return np.zeros(target.shape[1])

    def reported(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        """The loss of a row as paths report it: ``reported_factor`` times the value.

        The value is that of :attr:`judge`.
        """
        return self.reported_factor * self.judge.value(target, predictor)

    @property
    def judge(self) -> "Loss":
        """The loss that paths report, of training and of held-out rows.

        It is this one, unless this one is smooth in the place of another.
        """
        return self

    def mean(self, predictor: np.ndarray) -> np.ndarray:
        """The prediction of a regressor with this linear predictor."""
        return predictor

    def predictor(self, mean: np.ndarray) -> np.ndarray:
        """The linear predictor of a prediction, the inverse of :meth:`mean`."""
        return mean

    def spread(self, mean: np.ndarray) -> np.ndarray:
        """The standard deviation of targets around a mean, up to a factor."""
        return np.ones_like(mean)

    def without_offset(
        self, target: np.ndarray, weights: np.ndarray, offset: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Targets and weights that stand for an offset of the linear predictors.

        Weight times loss of a target at z + offset are those of the changed weight and
        the changed target at z, for all z.

        Parameters
        ----------
        target : ndarray of shape (n_rows,) or (n_rows, n_outputs)
        weights : ndarray of shape (n_rows,)
        offset : ndarray of shape (n_rows,)

        Returns
        -------
        target : ndarray of the shape of target
        weights : ndarray of shape (n_rows,)

        Raises
        ------
        ValueError
            If the loss has no such form.
        """
        if not self.is_of_residual:
            raise ValueError(
                f"offset is not available for the {self.name}: it stands for other "
                "targets and weights only where a loss depends on y minus the "
                "prediction, and for Poisson, gamma and Tweedie deviances under a log "
                "link. Use sample_weight, or a booster with its own base margin."
            )
        return target - _by_row(offset, target), weights

    def with_offset(self, prediction: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """Predictions with offsets, from those without.

        Parameters
        ----------
        prediction : ndarray
        offset : ndarray
            It broadcasts against the predictions.

        Returns
        -------
        ndarray of the shape of prediction
        """
        return prediction + offset.astype(prediction.dtype, copy=False)

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


def _by_row(values, target):
    """Values of rows (n_rows,), with the further axes of targets (n_rows, ...)."""
    return values.reshape(-1, *[1] * (target.ndim - 1))


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
            np.eye(probability.shape[1], dtype=probability.dtype)
            - probability[:, None, :]
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
class Expectile(Loss):
    """The squared error, weighed by ``level`` above the prediction, 1 - level below.

    l(y, z) = |level - 1(y < z)| (y - z)^2 (Newey & Powell 1987, "Asymmetric least
    squares estimation and testing").
    """

    name = "expectile loss"
    is_of_residual = True
    level: float = 0.5

    def __post_init__(self):
        _check_level(self.level)

    def _weight(self, residual):
        return np.where(residual > 0, self.level, 1 - self.level).astype(residual.dtype)

    def value(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        residual = target - predictor
        return self._weight(residual) * residual**2

    def derivative(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        residual = target - predictor
        return -2 * self._weight(residual) * residual

    def curvature(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        return 2 * self._weight(target - predictor)

    def curvature_bound(self, target: np.ndarray) -> float:
        return 2 * max(self.level, 1 - self.level)

    def null_predictor(self, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return _rounded_quantiles(target, weights, self.level)


@dataclass(frozen=True)
class Pinball(Loss):
    """The pinball loss of a quantile, max(level r, (level - 1) r) with r = y - z.

    Its mean is least at the quantile (Koenker & Bassett 1978, "Regression quantiles").
    It judges, and cannot be fitted by gradient steps: it has a kink.
    """

    name = "pinball loss"
    is_of_residual = True
    level: float = 0.5

    def value(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        residual = target - predictor
        return np.maximum(self.level * residual, (self.level - 1) * residual)


@dataclass(frozen=True)
class SmoothedQuantile(Loss):
    """The pinball loss of a quantile, rounded over residuals up to ``smoothing``.

    With r = y - z: (level - 1/2) r + |r| / 2 where |r| >= smoothing, and (level - 1/2)
    r + (r^2 / smoothing + smoothing) / 4 below: the mean of the pinball loss over
    uniform shifts of r by at most ``smoothing`` (Fernandes, Guerre & Horta 2021,
    "Smoothing quantile regressions"). Paths report the pinball loss itself.
    """

    name = "smoothed pinball loss"
    is_of_residual = True
    level: float = 0.5
    smoothing: float = 1.0

    def __post_init__(self):
        _check_level(self.level)
        if not 0 < self.smoothing < np.inf:
            raise ValueError(f"smoothing must be positive, got {self.smoothing}.")

    @property
    def scale(self) -> float:
        """The length on which the derivative rises."""
        return self.smoothing

    @property
    def judge(self) -> Loss:
        """The pinball loss of the level."""
        return Pinball(self.level)

    def value(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        residual = target - predictor
        size = np.abs(residual)
        rounded = 0.5 * (size**2 / self.smoothing + self.smoothing)
        size = np.where(size < self.smoothing, rounded, size)
        return (self.level - 0.5) * residual + 0.5 * size

    def derivative(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        share = np.clip((predictor - target) / self.smoothing, -1, 1)
        return 0.5 * share - (self.level - 0.5)

    def curvature(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        inside = np.abs(target - predictor) < self.smoothing
        return inside.astype(predictor.dtype) / (2 * self.smoothing)

    def curvature_bound(self, target: np.ndarray) -> float:
        return 1 / (2 * self.smoothing)

    def null_predictor(self, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return _rounded_quantiles(target, weights, self.level)


def _check_level(level):
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}.")


def _rounded_quantiles(values, weights, level):
    """A quantile of every column, in whole multiples of about its quartiles' distance.

    Shapes: values (n_rows, n_outputs), weights (n_rows, 1); returned (n_outputs,).
    """
    quantiles = np.zeros(values.shape[1])
    for k, column in enumerate(values.T):
        order = np.argsort(column)
        below = np.cumsum(weights[order, 0])
        # Less some roundings: a row that has been repeated is one with more weight.
        shares = np.array([0.25, level, 0.75]) - len(order) * np.finfo(float).eps
        places = np.searchsorted(below, below[-1] * shares)
        lower, quantile, upper = column[order[np.minimum(places, len(order) - 1)]]
        # A power of two, which dropping some rows hardly ever moves.
        unit = np.exp2(np.ceil(np.log2(upper - lower))) if upper > lower else 0
        quantiles[k] = unit * np.round(quantile / unit) if unit else quantile
    return quantiles


@dataclass(frozen=True)
class LogLink(Loss):
    """Half the unit deviance of a mean exp(z), by a subclass for each variance.

    A subclass has the ``variance`` of targets around a mean and ``curvature_bounds``,
    beside the functions of every loss, and the ``power`` of the mean that the variance
    is, or None if it is no power.
    """

    target_range = 0.0, np.inf

    # Read only, as ``scale``.
    if TYPE_CHECKING:

        @property
        def power(self) -> float | None: ...
    else:
        power = None

    def mean(self, predictor: np.ndarray) -> np.ndarray:
        return np.exp(predictor)

    def predictor(self, mean: np.ndarray) -> np.ndarray:
        # Trees may predict zero, whose loss is that of the smallest positive number.
        return np.log(np.maximum(mean, np.finfo(mean.dtype).tiny))

    def curvature_bound(self, target: np.ndarray) -> float:
        return float(np.max(self.curvature_bounds(target)))

    def curvature_bounds(self, target: np.ndarray) -> np.ndarray:
        raise ValueError(f"{type(self).__name__} has no curvature_bounds.")

    def variance(self, mean: np.ndarray) -> np.ndarray:
        """The variance of targets around a mean, up to a factor."""
        raise ValueError(f"{type(self).__name__} has no variance.")

    def spread(self, mean: np.ndarray) -> np.ndarray:
        return np.sqrt(self.variance(np.maximum(mean, np.finfo(mean.dtype).tiny)))

    def null_predictor(self, target: np.ndarray, weights: np.ndarray) -> np.ndarray:
        # The mean, as a power of sixteen: dropping some rows hardly ever moves it. Of a
        # sample of the rows it may be zero.
        mean = (weights * target).sum(axis=0) / weights.sum()
        mean = np.maximum(mean, np.finfo(float).tiny)
        return np.log(16) * self._rounded(np.log(mean) / np.log(16))

    def _rounded(self, exponent: np.ndarray) -> np.ndarray:
        """The exponent of the mean at which a run starts: a whole number."""
        return np.round(exponent)

    def without_offset(
        self, target: np.ndarray, weights: np.ndarray, offset: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        # With p the power, l(y, z + o) = exp((2 - p) o) l(y exp(-o), z).
        if self.power is None:
            return super().without_offset(target, weights, offset)
        exposure = np.exp(_by_row(offset, target))
        return target / exposure, weights * np.exp((2 - self.power) * offset)

    def with_offset(self, prediction: np.ndarray, offset: np.ndarray) -> np.ndarray:
        return prediction * np.exp(offset).astype(prediction.dtype, copy=False)

    def check_target(self, target: np.ndarray) -> None:
        if (target < 0).any():
            raise ValueError(
                f"Some values of y are negative: targets of the {self.name} are counts "
                "or amounts."
            )
        if not target.any(axis=0).all():
            raise ValueError(
                f"All of y is zero: the {self.name} then has no finite minimum."
            )


@dataclass(frozen=True)
class Poisson(LogLink):
    """Half the Poisson deviance under a log link, exp(z) - y z + y log y - y."""

    name = "half Poisson deviance"
    power = 1.0
    has_bounded_curvature = False

    def variance(self, mean: np.ndarray) -> np.ndarray:
        return mean

    def value(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        constant = xlogy(target, target) - target
        return np.exp(predictor) - target * predictor + constant

    def derivative(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        return np.exp(predictor) - target

    def curvature(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        return np.exp(predictor)

    def curvature_bounds(self, target: np.ndarray) -> np.ndarray:
        return target


@dataclass(frozen=True)
class Gamma(LogLink):
    """Half the gamma deviance under a log link, y exp(-z) + z - log y - 1."""

    name = "half gamma deviance"
    power = 2.0
    has_bounded_curvature = False

    def variance(self, mean: np.ndarray) -> np.ndarray:
        return mean**2

    def check_target(self, target: np.ndarray) -> None:
        if (target <= 0).any():
            raise ValueError(
                f"Some values of y are zero or negative: the {self.name} needs "
                "positive targets."
            )

    def value(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        return target * np.exp(-predictor) + predictor - np.log(target) - 1

    def derivative(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        return 1 - target * np.exp(-predictor)

    def curvature(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        return target * np.exp(-predictor)

    def curvature_bounds(self, target: np.ndarray) -> np.ndarray:
        return np.ones_like(target)

    def _rounded(self, exponent: np.ndarray) -> np.ndarray:
        # Below the mean the curvature is larger than anywhere on the way, and far above
        # it there is next to none: powers of four.
        return np.ceil(2 * exponent) / 2


@dataclass(frozen=True)
class Tweedie(LogLink):
    """Half the Tweedie deviance of a power between 1 and 2, under a log link.

    With p = power: y^(2-p) / ((1-p)(2-p)) - y exp((1-p) z) / (1-p) + exp((2-p) z) /
    (2-p). Powers above 2 are not convex in z; 1 is :class:`Poisson`, and 2
    :class:`Gamma`.
    """

    name = "half Tweedie deviance"
    has_bounded_curvature = False
    power: float = 1.5

    def __post_init__(self):
        if not 1 < self.power < 2:
            raise ValueError(
                f"power must be between 1 and 2, got {self.power}: Poisson() is of "
                "power 1, Gamma() of power 2, and others are not convex in the linear "
                "predictor."
            )

    def variance(self, mean: np.ndarray) -> np.ndarray:
        return mean**self.power

    def value(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        p, q = 1 - self.power, 2 - self.power
        of_mean = np.exp(q * predictor) / q - target * np.exp(p * predictor) / p
        return target**q / (p * q) + of_mean

    def derivative(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        p, q = 1 - self.power, 2 - self.power
        return np.exp(q * predictor) - target * np.exp(p * predictor)

    def curvature(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        p, q = 1 - self.power, 2 - self.power
        return q * np.exp(q * predictor) - p * target * np.exp(p * predictor)

    def curvature_bounds(self, target: np.ndarray) -> np.ndarray:
        return target ** (2 - self.power)


def tweedie(power: float) -> LogLink:
    """The loss of a Tweedie power from 1 to 2."""
    if power in (1, 2):
        return Poisson() if power == 1 else Gamma()
    return Tweedie(float(power))


@dataclass(frozen=True)
class NegativeBinomial(LogLink):
    """Half the deviance of counts with variance m + theta m^2, under a log link.

    With m = exp(z): y log(y / m) - (y + 1 / theta) log((1 + theta y) / (1 + theta m)).
    """

    name = "half negative binomial deviance"
    theta: float = 1.0

    def __post_init__(self):
        if not 0 < self.theta < np.inf:
            raise ValueError(
                f"theta must be positive, got {self.theta}: Poisson() is the limit of "
                "small ones."
            )

    def variance(self, mean: np.ndarray) -> np.ndarray:
        return mean + self.theta * mean**2

    def _shifted(self, predictor):
        """log(theta m)."""
        return predictor + log(self.theta)

    def value(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        n = target + 1 / self.theta
        constant = xlogy(target, target) - n * np.log1p(self.theta * target)
        return constant - target * predictor + n * _softplus(self._shifted(predictor))

    def derivative(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        n = target + 1 / self.theta
        return n * _sigmoid(self._shifted(predictor)) - target

    def curvature(self, target: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        shifted = self._shifted(predictor)
        return (target + 1 / self.theta) * _sigmoid(shifted) * _sigmoid(-shifted)

    def curvature_bounds(self, target: np.ndarray) -> np.ndarray:
        return 0.25 * (target + 1 / self.theta)


LOSSES = (
    SquaredError(),
    Logistic(),
    Multinomial(),
    Huber(),
    PseudoHuber(),
    SquaredHinge(),
    SmoothedHinge(),
    Expectile(0.8),
    SmoothedQuantile(0.2),
    Poisson(),
    Gamma(),
    Tweedie(1.4),
    NegativeBinomial(0.5),
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
