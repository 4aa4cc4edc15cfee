"""Refits of scikit-learn's models without single rows, and what these would cost."""

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

# From scikit-learn 1.8 on, l1_ratio and C say what penalty did.
PENALTY_IS_DEPRECATED = LogisticRegression().penalty == "deprecated"
NAMED = {0.0: "l2", 1.0: "l1"}


def logistic(C=1.0, l1_ratio=0.0, **settings):
    """Logistic regression to many digits, whatever the version calls its penalty."""
    settings = {"tol": 1e-8, "max_iter": 20_000, **settings}
    if PENALTY_IS_DEPRECATED:
        return LogisticRegression(C=C, l1_ratio=l1_ratio, **settings)
    if np.isinf(C):
        return LogisticRegression(penalty=None, **settings)
    if l1_ratio in NAMED:
        return LogisticRegression(penalty=NAMED[l1_ratio], C=C, **settings)
    return LogisticRegression(penalty="elasticnet", C=C, l1_ratio=l1_ratio, **settings)


def log_loss(y, z):
    return np.logaddexp(0, z) - y * z


def multinomial_loss(y, z):
    z = z - z.max(axis=1, keepdims=True)
    return np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(y)), y.astype(int)]


def poisson_deviance(y, mean):
    y = y[:, None] if mean.ndim > y.ndim else y
    return mean - y + np.where(y > 0, y * np.log(np.where(y > 0, y / mean, 1)), 0)


def squared_hinge(y, z):
    return np.maximum(0, 1 - (2 * y - 1) * z) ** 2


def hinge(y, z):
    return np.maximum(0, 1 - (2 * y - 1) * z)


def squared_error(y, z):
    return (y - z) ** 2


def outcome(estimator, X):
    return getattr(estimator, "decision_function", estimator.predict)(X)


def refitted(estimator, X, y, rows, sample_weight=None):
    """What refits without each of these rows say about it."""
    result = []
    for i in rows:
        stay = np.arange(len(y)) != i
        weights = None if sample_weight is None else sample_weight[stay]
        kwargs = {} if weights is None else {"sample_weight": weights}
        model = clone(estimator).fit(X[stay], y[stay], **kwargs)
        result.append(outcome(model, X[[i]])[0])
    return np.array(result)
