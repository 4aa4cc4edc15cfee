"""From what a user passes to what the algorithm runs on, and the way back."""

from copy import copy
from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import validate_data

from ._compat import _check_sample_weight
from .optim.design import Design
from .optim.trajectory import Problem

NAMES = ("n_features_in_", "feature_names_in_")


class TrainingData(NamedTuple):
    """What validated data become for the algorithm, and the way back."""

    problem: Problem
    center: np.ndarray  # (n_features, 1): means of X, or zeros
    offset: np.ndarray  # (1, n_targets): means of y, or zeros
    total_weight: float
    rows: np.ndarray  # which samples the problem's rows are
    n_samples: int
    fit_intercept: bool
    is_flat: bool  # whether y was one-dimensional
    names: dict  # n_features_in_ and feature_names_in_

    def coefficients(self, coef):
        """Iterates (T + 1, n_features, n_targets) in scikit-learn's shapes.

        Returns
        -------
        coef : (T + 1, n_features) or (T + 1, n_targets, n_features)
        intercept : (T + 1,) or (T + 1, n_targets)
        """
        intercept = self.offset - (self.center * coef).sum(axis=1)
        if self.is_flat:
            return coef[:, :, 0], intercept[:, 0]
        return np.moveaxis(coef, 2, 1), intercept

    def iterates(self, coef_path):
        """Iterates (T + 1, n_features, n_targets) from scikit-learn's shapes."""
        if coef_path.ndim == 2:
            return coef_path[:, :, None]
        return np.moveaxis(coef_path, 1, 2)


def training_data(estimator, X, y, sample_weight, *, multi_output):
    """Validate, leave out rows of zero weight, centre lazily.

    Nothing is marked on ``estimator``, whose ``fit_intercept`` is read.

    Returns
    -------
    TrainingData
    """
    shell = copy(estimator)
    X, y = validate_data(
        shell,
        X,
        y,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        multi_output=multi_output,
        y_numeric=True,
        ensure_min_samples=2,
    )
    target = y.reshape(len(y), -1).astype(X.dtype, copy=False)
    weights = np.ones(len(y))
    if sample_weight is not None:
        weights = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
    rows = _rows_of_positive_weight(weights)
    if len(rows) < len(weights):
        X, target, weights = X[rows], target[rows], weights[rows]
    row_weights = (weights / weights.sum())[:, None]
    if estimator.fit_intercept:
        design = Design.centered(X, row_weights)
        center = design.center
        offset = (row_weights.T @ target).astype(X.dtype)
        target = target - offset
    else:
        design = Design(X)
        center = np.zeros((X.shape[1], 1), X.dtype)
        offset = np.zeros((1, target.shape[1]), X.dtype)
    return TrainingData(
        problem=Problem(design, target, row_weights.astype(X.dtype)),
        center=center,
        offset=offset,
        total_weight=weights.sum(),
        rows=rows,
        n_samples=len(y),
        fit_intercept=estimator.fit_intercept,
        is_flat=y.ndim == 1,
        names={key: getattr(shell, key) for key in NAMES if hasattr(shell, key)},
    )


def _rows_of_positive_weight(weights):
    rows = np.flatnonzero(weights > 0)
    if len(rows) < 2:
        raise ValueError(
            "sample_weight must be positive on at least two rows, it is on "
            f"{len(rows)}."
        )
    return rows
