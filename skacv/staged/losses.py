"""Losses of rows as functions of predictions, which estimators minimise.

Deviances are halved, as the losses of scikit-learn's estimators and of our Poisson
regression are.
"""

from dataclasses import dataclass

import numpy as np

from ..optim.losses import Loss


@dataclass(frozen=True)
class AbsoluteError(Loss):
    """The absolute error."""

    name = "absolute error"

    def value(self, target, predictor):
        return np.abs(target - predictor)


@dataclass(frozen=True)
class Pinball(Loss):
    """The pinball loss of a quantile."""

    quantile: float = 0.5
    name = "pinball loss"

    def value(self, target, predictor):
        error = target - predictor
        return np.maximum(self.quantile * error, (self.quantile - 1) * error)


@dataclass(frozen=True)
class HalfDeviance(Loss):
    """Half the Tweedie deviance of power 1 to 2; 2 is the gamma deviance."""

    power: float = 2.0
    target_range = 0.0, np.inf

    @property
    def name(self):
        """Its name in figures."""
        return f"half {'gamma' if self.power == 2 else 'Tweedie'} deviance"

    def check_target(self, target):
        if self.power == 2 and (target <= 0).any():
            raise ValueError(
                "Some values of y are zero or negative: the gamma deviance is of "
                "positive targets."
            )
        if (target < 0).any():
            raise ValueError(
                "Some values of y are negative: the Tweedie deviance is of targets "
                "that are not."
            )

    def value(self, target, predictor):
        p = self.power
        if p == 2:
            return target / predictor - np.log(target / predictor) - 1
        constant = np.power(target, 2 - p) / ((1 - p) * (2 - p))
        of_mean = predictor ** (2 - p) / (2 - p) - target * predictor ** (1 - p) / (
            1 - p
        )
        return constant + of_mean

    def spread(self, mean):
        return np.maximum(mean, np.finfo(mean.dtype).tiny) ** (self.power / 2)


@dataclass(frozen=True)
class LogLoss(Loss):
    """Minus the logarithm of the probability of a row's class, clipped.

    Shapes: target and predictor (n_samples, n_classes, ...).
    """

    name = "log loss"
    labels = 0.0, 1.0
    is_coupled = True

    def value(self, target, predictor):
        least = np.finfo(predictor.dtype).eps
        chosen = np.einsum("nk...,nk...->n...", target, predictor)
        return -np.log(np.clip(chosen, least, 1 - least))[:, None]


@dataclass(frozen=True)
class LogLossOfLabels(Loss):
    """Minus the logarithm of the probability of a label, or of its absence.

    Shapes: target and predictor (n_samples, n_labels, ...).
    """

    name = LogLoss.name

    def value(self, target, predictor):
        least = np.finfo(predictor.dtype).eps
        observed = np.where(target > 0, predictor, 1 - predictor)
        return -np.log(np.clip(observed, least, 1 - least))


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
