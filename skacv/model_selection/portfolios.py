"""What runs where no estimator is given: members for regression, and for classes."""

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.multiclass import type_of_target

from .._estimator.collections import is_collection
from .._estimator.row_summary import RowSummary
from ..kernel import KernelEigenProClassifier, KernelEigenProRegressor
from ..linear_model import (
    IterativeRidge,
    TrajectoryElasticNet,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)

# A kernel matrix of more rows takes longer than all other members together.
MOST_KERNEL_ROWS = 5000
# Integers are labels where there are at most so many values, each so often.
MOST_LABELS = 20
FEWEST_OF_A_LABEL = 5
# At one strength of several an iterate need not be more exact than that: the next
# strength goes on from there. Where rows are many this saves updates.
SETTLED = 1e-4


def regression():
    """Members for numbers.

    Returns
    -------
    list of (str, estimator)
    """
    return [
        ("lasso", TrajectoryLasso("path", max_iter=20)),
        ("elastic net", TrajectoryElasticNet("path", l1_ratio=0.5, max_iter=20)),
        ("least squares", IterativeRidge(0.0, solver="nesterov", max_iter=300)),
        ("kernel", KernelEigenProRegressor()),
    ]


def classification():
    """Members for classes, all with probabilities.

    Returns
    -------
    list of (str, estimator)
    """
    return [
        ("logistic", TrajectoryLogisticRegression("path", max_iter=30, tol=SETTLED)),
        ("logistic, no penalty", TrajectoryLogisticRegression(np.inf, max_iter=200)),
        ("kernel", KernelEigenProClassifier()),
    ]


PORTFOLIOS = {"regression": regression, "classification": classification}


def task_of(X, y):
    """Whether targets are numbers or classes.

    Strings, booleans and any two values are classes, and so are whole numbers, as
    integers or as floats, where there are at most 20 values and each is there five
    times; all else are numbers.

    Parameters
    ----------
    X : {array-like, sparse matrix, RowSummary} of shape (n_samples, n_features)
        The targets of a summary are numbers.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), or None
        None with a summary.

    Returns
    -------
    {"regression", "classification"}
    """
    if isinstance(X, RowSummary):
        return "regression"
    if is_collection(y):
        raise ValueError(
            "task='auto' depends on y, which is not in memory with Dask input: set "
            "task='regression' or task='classification'."
        )
    if np.asarray(y).dtype.kind in "fO":
        assert_all_finite(y, input_name="y")
    kind = type_of_target(y)
    if kind not in ("binary", "multiclass"):
        return "regression"
    y = np.asarray(y)
    values, counts = np.unique(y, return_counts=True)
    if not len(values):  # what is wrong with y is said where it is validated
        return "regression"
    are_labels = len(values) <= MOST_LABELS and counts.min() >= FEWEST_OF_A_LABEL
    if kind == "binary" or y.dtype.kind not in "fiu" or are_labels:
        return "classification"
    return "regression"


def task_of_estimator(estimator):
    """The task that a fitted estimator has."""
    return "classification" if is_classifier(estimator) else "regression"


def that_take(members, X, y):
    """The members that can take such data.

    Parameters
    ----------
    members : list of (str, estimator)
    X : {array-like, sparse matrix, RowSummary} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets), or None
        None with a summary.

    Returns
    -------
    list of (str, estimator)
    """
    if isinstance(X, RowSummary):
        has_kernel_rows, is_one = False, X._n_targets == 1
    elif is_collection(X):
        has_kernel_rows, is_one = False, y.ndim == 1
    else:
        n_rows, *_ = _shape(X)
        has_kernel_rows = not sparse.issparse(X) and n_rows <= MOST_KERNEL_ROWS
        is_one = not any(n > 1 for n in _shape(y)[1:])
    return [
        (name, member)
        for name, member in members
        if (has_kernel_rows or "kernel" not in member.get_params(deep=False))
        and (is_one or get_tags(member).target_tags.multi_output)
    ]


def _shape(data):
    """The shape of an array-like, which a sparse matrix says itself."""
    return data.shape if hasattr(data, "shape") else np.asarray(data).shape
