"""Fits with weights, and labels that follow scores."""

import numpy as np


def fit(estimator, X, y, sample_weight=None):
    kwargs = {} if sample_weight is None else {"sample_weight": sample_weight}
    return estimator.fit(X, y, **kwargs)


def labels_of(scores, rng):
    return (rng.random(len(scores)) < 1 / (1 + np.exp(-scores))).astype(int)
