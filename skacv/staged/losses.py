"""Losses of rows as functions of predictions, which estimators minimise.

Deviances are halved, as the losses of scikit-learn's estimators and of our linear
models are. Predictors are predictions on the scale of y, or for classes their
probabilities; losses with a log link, of ``skacv.optim``, have the logarithm of the
mean.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..optim.losses import Loss, SquaredError, tweedie


@dataclass(frozen=True)
class JudgedBy:
    """A loss whose numbers are parameters of an estimator.

    ``fields`` are these numbers: for each the name of the parameter with it, and its
    default in the library.
    """

    loss: Callable
    fields: dict

    def __call__(self, params):
        """The loss for the parameters of an estimator."""
        numbers = {}
        for field, (name, default) in self.fields.items():
            value = params.get(name)
            value = default if value is None else value
            if field == "level" and (levels := several_numbers(value)):
                return OfSeveralLevels(tuple(map(self.loss, levels)))
            try:
                numbers[field] = float(value)
            except (TypeError, ValueError):
                raise ValueError(
                    f"Stages are evaluated by one loss, and {name}={value!r} "
                    "specifies several, or is not a number: fit a model for each."
                ) from None
        return self.loss(**numbers)


def several_numbers(value):
    """The numbers of a list, or of a text with commas; none if it is a single one."""
    parts = value.split(",") if isinstance(value, str) else value
    try:
        numbers = tuple(map(float, parts))
    except (TypeError, ValueError):  # a number cannot be iterated over
        return ()
    return numbers if len(numbers) > 1 else ()


def judged_by(loss, **fields):
    """A JudgedBy; ``fields`` are the numbers of the loss."""
    return JudgedBy(loss, fields)


@dataclass(frozen=True)
class OfSeveralLevels(Loss):
    """The mean of the losses of several levels, of which each has a prediction.

    Shapes: target and predictor (n_samples, n_levels, ...), the former of equal
    columns.
    """

    losses: tuple
    is_of_residual = True

    @property
    def name(self):
        """Its name in figures."""
        return f"mean {self.losses[0].name}"

    @property
    def levels(self):
        """The levels, in the order of the predictions."""
        return tuple(loss.level for loss in self.losses)

    def value(self, target, predictor):
        columns = [
            loss.value(target[:, k], predictor[:, k])
            for k, loss in enumerate(self.losses)
        ]
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class AbsoluteError(Loss):
    """The absolute error."""

    name = "absolute error"
    is_of_residual = True

    def value(self, target, predictor):
        return np.abs(target - predictor)


@dataclass(frozen=True)
class AbsolutePower(Loss):
    """A power of the absolute error, |y - p|^exponent."""

    exponent: float
    name = "power of the absolute error"
    is_of_residual = True

    def value(self, target, predictor):
        return np.abs(target - predictor) ** self.exponent


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """How far the absolute error exceeds ``epsilon``, to the first or second power."""

    epsilon: float
    exponent: float = 1.0
    is_of_residual = True

    @property
    def name(self):
        """Its name in figures."""
        return f"{'squared ' * (self.exponent == 2)}epsilon-insensitive loss"

    def value(self, target, predictor):
        excess = np.maximum(np.abs(target - predictor) - self.epsilon, 0)
        return excess**self.exponent


@dataclass(frozen=True)
class Fair(Loss):
    """The fair loss, c |r| - c^2 log(1 + |r| / c), with r = y - p."""

    c: float = 1.0
    name = "fair loss"
    is_of_residual = True

    def value(self, target, predictor):
        size = np.abs(target - predictor) / self.c
        return self.c**2 * (size - np.log1p(size))


@dataclass(frozen=True)
class LogCosh(Loss):
    """log(cosh(y - p))."""

    name = "log-cosh loss"
    is_of_residual = True

    def value(self, target, predictor):
        size = np.abs(target - predictor)
        return size + np.log1p(np.exp(-2 * size)) - np.log(2)


@dataclass(frozen=True)
class RelativeError(Loss):
    """A power of the absolute error in units of |y|, or of 1 where that is larger."""

    exponent: float = 1.0

    @property
    def name(self):
        """Its name in figures."""
        return f"{'squared ' * (self.exponent == 2)}relative error"

    def value(self, target, predictor):
        size = np.abs(target - predictor) / np.maximum(np.abs(target), 1)
        return size**self.exponent


@dataclass(frozen=True)
class SquaredLogError(Loss):
    """Half the squared difference of log(1 + y) and log(1 + p)."""

    name = "squared logarithmic error"
    target_range = -1.0, np.inf

    def check_target(self, target):
        if (target <= -1).any():
            raise ValueError(
                "Some values of y are -1 or less: the squared logarithmic error needs "
                "log(1 + y)."
            )

    def value(self, target, predictor):
        least = np.finfo(predictor.dtype).eps
        logarithm = np.log(np.maximum(1 + predictor, least))
        return 0.5 * (np.log1p(target) - logarithm) ** 2


@dataclass(frozen=True)
class OfSignedRoots(Loss):
    """Another loss, of the roots of targets and predictions, with their signs."""

    loss: Loss

    @property
    def name(self):
        """Its name in figures."""
        return f"{self.loss.name} of square roots"

    def value(self, target, predictor):
        roots = (np.sign(x) * np.sqrt(np.abs(x)) for x in (target, predictor))
        return self.loss.reported(*roots)


@dataclass(frozen=True)
class HalfDeviance(Loss):
    """Half the Tweedie deviance of a power above 2, which no linear model here has."""

    power: float
    name = "half Tweedie deviance"
    target_range = 0.0, np.inf

    def check_target(self, target):
        if (target <= 0).any():
            raise ValueError(
                "Some values of y are zero or negative: the Tweedie deviance from "
                "power 2 on needs positive targets."
            )

    def value(self, target, predictor):
        p, q = 1 - self.power, 2 - self.power
        constant = np.power(target, q) / (p * q)
        return constant + predictor**q / q - target * predictor**p / p

    def spread(self, mean):
        return np.maximum(mean, np.finfo(mean.dtype).tiny) ** (self.power / 2)


def deviance(power):
    """The loss of a Tweedie power; 0 is that of the normal distribution."""
    if power < 0 or 0 < power < 1:
        raise ValueError(
            f"Stages cannot be evaluated by the Tweedie deviance of power {power:g}: "
            "use power 0, or 1 and above."
        )
    if power == 0:
        return SquaredError()
    return tweedie(power) if power <= 2 else HalfDeviance(power)


@dataclass(frozen=True)
class LogLoss(Loss):
    """Minus the logarithm of the probability of a row's class, clipped.

    Shapes: target and predictor (n_samples, n_classes, ...).
    """

    name = "log loss"
    labels = 0.0, 1.0
    is_coupled = True

    def value(self, target, predictor):
        return -np.log(probability_of_class(target, predictor))[:, None]


@dataclass(frozen=True)
class Focal(LogLoss):
    """The log loss, weighed by ``gamma`` powers of the probability of other classes.

    Rows of the second class weigh ``alpha``, those of the first 1 - alpha.
    """

    alpha: float
    gamma: float
    name = "focal loss"

    def value(self, target, predictor):
        chosen = probability_of_class(target, predictor)
        weight = np.where(target[:, 1] > 0, self.alpha, 1 - self.alpha)
        return -(weight * (1 - chosen) ** self.gamma * np.log(chosen))[:, None]


@dataclass(frozen=True)
class Exponential(LogLoss):
    """exp(-m), where the probability of the row's class is 1 / (1 + exp(-2 m))."""

    name = "exponential loss"

    def value(self, target, predictor):
        chosen = probability_of_class(target, predictor)
        return np.sqrt((1 - chosen) / chosen)[:, None]


def probability_of_class(target, predictor):
    """The probability of every row's class, clipped, (n_samples, ...)."""
    least = np.finfo(predictor.dtype).eps
    chosen = np.einsum("nk...,nk...->n...", target, predictor)
    return np.clip(chosen, least, 1 - least)


@dataclass(frozen=True)
class LogLossOfLabels(Loss):
    """The log loss of the probability of a label, or of a share between 0 and 1.

    Shapes: target and predictor (n_samples, n_labels, ...).
    """

    name = LogLoss.name
    target_range = 0.0, 1.0

    def check_target(self, target):
        if (target < 0).any() or (target > 1).any():
            raise ValueError(
                "Some values of y are not between 0 and 1, but this objective needs "
                "shares, or labels 0 and 1."
            )

    def value(self, target, predictor):
        least = np.finfo(predictor.dtype).eps
        logarithms = (
            np.log(np.clip(probability, least, 1 - least))
            for probability in (predictor, 1 - predictor)
        )
        of_label, of_absence = logarithms
        return -(target * of_label + (1 - target) * of_absence)


@dataclass(frozen=True)
class LogLossOfIntensities(LogLossOfLabels):
    """The log loss of shares, where an intensity p gives the probability 1 - e^-p."""

    target_range = 0.0, np.inf

    def value(self, target, predictor):
        return super().value(target, -np.expm1(-predictor))


@dataclass(frozen=True)
class OneVersusRest(LogLossOfLabels):
    """The mean of the log losses of each class against all others.

    Shapes: target and predictor (n_samples, n_classes, ...).
    """

    name = "log loss of each class against the rest"


@dataclass(frozen=True)
class WrongLabel(Loss):
    """One if the label of the largest decision is wrong, else zero."""

    name = "share of wrong labels"
    is_coupled = True

    def value(self, target, predictor):
        if target.shape[1] == 1:
            return ((predictor > 0) != (target > 0)).astype(np.float64)
        chosen = np.argmax(np.broadcast_to(target, predictor.shape), axis=1)
        return (predictor.argmax(axis=1) != chosen)[:, None].astype(np.float64)
