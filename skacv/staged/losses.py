"""Losses of rows as a function of predictions: those that estimators minimise.

Stages are evaluated by the loss that their trees or passes reduce, if the parameters of
the estimator name one, otherwise by the squared error for a regressor. Deviances are
halved, as the losses of scikit-learn's estimators and of our Poisson regression are.
"""

from dataclasses import dataclass

import numpy as np

from ..optim.losses import Logistic, Loss, Multinomial, Poisson, SquaredError


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


def compared_as(loss, n_classes):
    """The equivalent loss of other estimators, for comparisons."""
    if loss == LogLoss():
        return Logistic() if n_classes == 2 else Multinomial()
    return loss


def _pinball(params):
    """The pinball loss of the quantile in use; CatBoost and LightGBM have defaults."""
    values = (params.get(name) for name in ("quantile", "quantile_alpha", "alpha"))
    default = 0.5 if "loss_function" in params else 0.9
    quantile = next((value for value in values if value is not None), default)
    try:
        return Pinball(float(quantile))
    except (TypeError, ValueError):
        raise ValueError(
            f"Stages are evaluated by one quantile, not by {quantile}."
        ) from None


def _tweedie(params):
    """Half the deviance of a power, 1.5 by default; that of Poisson for 1."""
    names = "tweedie_variance_power", "variance_power"
    powers = [params[name] for name in names if params.get(name) is not None]
    power = float(powers[0] if powers else 0) or 1.5
    return Poisson() if power == 1 else HalfDeviance(power)


# By what scikit-learn, XGBoost, LightGBM and CatBoost call the losses of regression.
# Robust losses are evaluated as absolute errors.
ABSOLUTE_ERRORS = (
    "absolute_error",
    "huber",
    "epsilon_insensitive",
    "reg:absoluteerror",
    "reg:pseudohubererror",
    "mae",
    "l1",
    "mean_absolute_error",
    "regression_l1",
    "fair",
    "logcosh",
    "mape",
    "mean_absolute_percentage_error",
)
LOSSES = {
    **dict.fromkeys(ABSOLUTE_ERRORS, lambda params: AbsoluteError()),
    **dict.fromkeys(("poisson", "count:poisson"), lambda params: Poisson()),
    **dict.fromkeys(("gamma", "reg:gamma"), lambda params: HalfDeviance(2.0)),
    **dict.fromkeys(("tweedie", "reg:tweedie"), _tweedie),
    **dict.fromkeys(("quantile", "multiquantile", "reg:quantileerror"), _pinball),
}
# The parameters that name it. The last three are aliases of LightGBM.
LOSS_PARAMETERS = (
    "loss",
    "objective",
    "loss_function",
    "criterion",
    "objective_type",
    "application",
    "app",
)


def regression_loss(estimator):
    """The loss that a regressor's parameters name, otherwise the squared error."""
    params = estimator.get_params(deep=False)
    for parameter in LOSS_PARAMETERS:
        name = params.get(parameter)
        if not isinstance(name, str):
            continue
        name, settings = name.lower(), ""
        if name not in LOSSES:  # such as CatBoost's "Quantile:alpha=0.9"
            name, _, settings = name.partition(":")
        if name in LOSSES:
            pairs = [pair.split("=") for pair in settings.split(";") if "=" in pair]
            return LOSSES[name](params | dict(pairs))
    return SquaredError()
