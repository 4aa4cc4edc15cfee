"""Scores of predictions, by the loss that has been minimised."""

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils import check_consistent_length

from ..._compat import on_host
from ...optim.losses import LogLink
from ..collections import is_collection
from ..data.checks import validate_target, validate_weights


def score_of(loss, y, prediction, sample_weight=None):
    """R^2 of predictions; of a loss with a log link, the D^2 by that loss.

    Shapes: y, prediction (n_samples,) or (n_samples, n_targets).
    """
    if not isinstance(loss, LogLink):
        return r2_score(y, prediction, sample_weight=sample_weight)
    y, prediction = (
        np.asarray(part) if is_collection(part) else on_host(part)
        for part in (y, prediction)
    )
    y = validate_target(y, of_classes=False)
    check_consistent_length(prediction, y)
    target, weights = (
        y.astype(np.float64, copy=False).reshape(len(y), -1),
        validate_weights(sample_weight, len(y)),
    )
    loss.check_target(target)
    mean = np.average(target, axis=0, weights=weights)
    error, of_mean = (
        np.average(loss.value(target, loss.predictor(each))[:, 0], weights=weights)
        for each in (prediction.reshape(target.shape), mean)
    )
    return float(1 - error / of_mean)
