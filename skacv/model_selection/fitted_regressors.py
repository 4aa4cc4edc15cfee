"""What fitted linear regressors minimised.

Adapters ``(estimator, X, y, weights) -> FittedModel``, or functions that make one.
"""

import numpy as np

from ..optim.losses import Huber, Poisson, SquaredError
from ..risk.converged.newton import ConvergedModel
from .minimised import CURVED, FittedModel, coefficients

SQUARED = SquaredError()


def _regressor(estimator, data, l2, shares, loss=SQUARED, l1=0.0, link=np.asarray):
    """One model per target; ``data`` are X, y and weights, l2 may differ by target."""
    X, y, weights = data
    target = y.reshape(len(y), -1)
    n_targets = target.shape[1]
    coef, intercept = coefficients(estimator, n_targets)
    strengths = np.broadcast_to(np.asarray(l2, float), n_targets)
    outputs = [
        ConvergedModel(
            X=X,
            target=target[:, [k]],
            loss=loss,
            row_weights=weights[:, None],
            coef=coef[:, [k]],
            intercept=intercept[[k]],
            l1=l1,
            l2=float(strengths[k]),
            has_intercept=bool(estimator.fit_intercept),
            penalty_shares=shares,
        )
        for k in range(n_targets)
    ]
    return FittedModel(outputs, CURVED, link)


def alpha_given(estimator):
    """The parameter itself."""
    return estimator.alpha


def ridge_of(alpha):
    """||y - X b||^2 + alpha ||b||^2, ``alpha`` read from the estimator."""

    def adapter(estimator, X, y, weights):
        _refuse_positive(estimator)
        data, shares = (X, y, weights), np.zeros(len(y))
        return _regressor(estimator, data, alpha(estimator), shares)

    return adapter


def elastic_net_of(alpha, l1_ratio):
    """The mean form (1 / 2n) ||y - X b||^2 + ..., both read from the estimator."""

    def adapter(estimator, X, y, weights):
        _refuse_positive(estimator)
        data, total = (X, y, weights), weights.sum()
        strength, ratio = total * alpha(estimator), l1_ratio(estimator)
        l2, shares = strength * (1 - ratio), weights / total
        return _regressor(estimator, data, l2, shares, l1=float(strength * ratio))

    return adapter


def only_l1(estimator):
    """The l1_ratio of the lasso."""
    return 1.0


def alpha_in_force(estimator):
    """That of the iterate in use."""
    return estimator.alpha_path_[estimator.iteration_]


def multi_task(estimator, X, y, weights):
    """Not supported, though derived from the lasso."""
    raise ValueError(
        f"{type(estimator).__name__} is not supported: its penalty couples the "
        "targets. Fit Lasso or ElasticNet, which take several targets too."
    )


def huber_of(alpha):
    """In units of (2 / scale_) times the Huber loss, at the scale as it is."""

    def adapter(estimator, X, y, weights):
        loss = Huber(float(estimator.epsilon * estimator.scale_))
        l2, shares = alpha(estimator) * estimator.scale_, np.zeros(len(y))
        return _regressor(estimator, (X, y, weights), l2, shares, loss)

    return adapter


def poisson_of(alpha):
    """The mean form; predictions are the means exp(x'b)."""

    def adapter(estimator, X, y, weights):
        if (y < 0).any():
            raise ValueError(
                f"y has negative values, {type(estimator).__name__} takes none."
            )
        total = weights.sum()
        l2, shares = alpha(estimator) * total, weights / total
        data = (X, y, weights)
        return _regressor(estimator, data, l2, shares, Poisson(), link=np.exp)

    return adapter


def _refuse_positive(estimator):
    if getattr(estimator, "positive", False):
        raise ValueError(f"{type(estimator).__name__}(positive=True) is not supported.")
