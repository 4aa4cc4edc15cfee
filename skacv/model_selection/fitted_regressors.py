"""The objectives of fitted linear regressors of scikit-learn.

Adapters ``(estimator, X, y, weights) -> list of ConvergedModel``.
"""

from dataclasses import replace

import numpy as np

from ..optim.losses import Huber, Poisson, SquaredError
from ..optim.penalties import ElasticNet, SquaredL2
from .minimised import chosen, line_of, output_by_output


def ridge(estimator, X, y, weights):
    """||y - X b||^2 + alpha ||b||^2, a penalty for every target."""
    _refuse_positive(estimator)
    target = y.reshape(len(y), -1)
    line = line_of(estimator, X, target.shape[1])
    strengths = np.asarray(chosen(estimator, "alpha"), float) / weights.sum()
    strengths = np.broadcast_to(strengths, target.shape[1]).tolist()
    penalties = [line.spared(SquaredL2(strength)) for strength in strengths]
    model = line.converged(target, weights, SquaredError(), penalties[0])
    return [replace(model.output(k), penalty=own) for k, own in enumerate(penalties)]


def elastic_net(estimator, X, y, weights):
    """The mean form (1 / 2n) ||y - X b||^2 + ...; the lasso has no l1_ratio."""
    _refuse_positive(estimator)
    target, shares = y.reshape(len(y), -1), weights / weights.sum()
    line = line_of(estimator, X, target.shape[1])
    alpha, l1_ratio = chosen(estimator, "alpha"), chosen(estimator, "l1_ratio", 1.0)
    penalty = line.spared(ElasticNet(float(alpha), float(l1_ratio)))
    model = line.converged(target, weights, SquaredError(), penalty, shares)
    return output_by_output(model)


def multi_task(estimator, X, y, weights):
    """Not supported, though derived from the lasso."""
    raise ValueError(
        f"{type(estimator).__name__} is not supported: its penalty couples the "
        "targets. Fit Lasso or ElasticNet, which take several targets too."
    )


def huber(estimator, X, y, weights):
    """In units of (2 / scale_) times the Huber loss, at the scale as it is."""
    line = line_of(estimator, X, 1)
    loss = Huber(float(estimator.epsilon * estimator.scale_))
    strength = float(estimator.alpha * estimator.scale_ / weights.sum())
    penalty = line.spared(SquaredL2(strength))
    return [line.converged(y[:, None], weights, loss, penalty)]


def poisson(estimator, X, y, weights):
    """The mean form; predictions are the means exp(x'b)."""
    if (y < 0).any():
        raise ValueError(
            f"y has negative values, {type(estimator).__name__} takes none."
        )
    line, shares = line_of(estimator, X, 1), weights / weights.sum()
    penalty = line.spared(SquaredL2(float(estimator.alpha)))
    return [line.converged(y[:, None], weights, Poisson(), penalty, shares)]


def _refuse_positive(estimator):
    if getattr(estimator, "positive", False):
        raise ValueError(f"{type(estimator).__name__}(positive=True) is not supported.")
