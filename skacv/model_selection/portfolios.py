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

# A kernel machine on more rows takes more than some fifteen seconds on one core.
MOST_KERNEL_ROWS = 10_000
TOO_MANY = f"X has more than {MOST_KERNEL_ROWS} rows"
SAY_WHICH = (
    "take SelfStoppingRegressor or SelfStoppingClassifier, or set task='regression' or "
    "task='classification'"
)
# At one strength of several an iterate need not be more exact than that: the next
# strength goes on from there. Where rows are many this saves updates.
SETTLED = 1e-4
# Members of the user's own choice take the columns as they are.
COLUMNS = {"standardize": True}


def regression():
    """Members for numbers.

    Returns
    -------
    list of (str, estimator)
    """
    return [
        ("lasso", TrajectoryLasso("path", max_iter=20, **COLUMNS)),
        (
            "elastic net",
            TrajectoryElasticNet("path", l1_ratio=0.5, max_iter=20, **COLUMNS),
        ),
        (
            "least squares",
            IterativeRidge(0.0, solver="nesterov", max_iter=300, **COLUMNS),
        ),
        ("kernel", KernelEigenProRegressor(**COLUMNS)),
    ]


def classification():
    """Members for classes, all with probabilities.

    Returns
    -------
    list of (str, estimator)
    """
    return [
        (
            "logistic",
            TrajectoryLogisticRegression("path", max_iter=30, tol=SETTLED, **COLUMNS),
        ),
        (
            "logistic, no penalty",
            TrajectoryLogisticRegression(np.inf, max_iter=200, **COLUMNS),
        ),
        ("kernel", KernelEigenProClassifier(**COLUMNS)),
    ]


PORTFOLIOS = {"regression": regression, "classification": classification}


def task_of(X, y):
    """Whether targets are numbers or classes, where they leave no doubt.

    Strings and booleans are classes, and what is not whole is numbers.

    Parameters
    ----------
    X : {array-like, sparse matrix, RowSummary} of shape (n_samples, n_features)
        The targets of a summary are numbers.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), or None
        None with a summary.

    Returns
    -------
    {"regression", "classification"}

    Raises
    ------
    ValueError
        If y has whole numbers, which may be either, or is not in memory.
    """
    if isinstance(X, RowSummary):
        return "regression"
    if is_collection(y):
        raise ValueError(f"y is not in memory with Dask input: {SAY_WHICH}.")
    y = np.asarray(y)
    if y.dtype.kind in "fO":
        assert_all_finite(y, input_name="y")
    kind = type_of_target(y)
    if y.dtype.kind in "bUS" or (y.dtype.kind == "O" and _are_labels(y)):
        return "classification"
    if kind.startswith("continuous") or not y.size:  # of none, fit says what is wrong
        return "regression"
    raise ValueError(
        f"y has whole numbers, which may be numbers or labels of classes: {SAY_WHICH}."
    )


def _are_labels(y):
    """Whether objects are strings or booleans, not numbers."""
    return all(isinstance(value, str | bool | np.bool_) for value in y.flat)


def task_of_estimator(estimator):
    """The task that a fitted estimator has."""
    return "classification" if is_classifier(estimator) else "regression"


def that_take(members, X, y):
    """The members that can take such data, and why the others cannot.

    Parameters
    ----------
    members : list of (str, estimator)
    X : {array-like, sparse matrix, RowSummary} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets), or None
        None with a summary.

    Returns
    -------
    taken : list of (str, estimator)
    left_out : dict of str to str
        By the names of the others, why they are none of these.
    """
    if isinstance(X, RowSummary):
        no_kernel, is_one = "a kernel needs rows in memory", X._n_targets == 1
    elif is_collection(X):
        no_kernel, is_one = "a kernel needs rows in memory", y.ndim == 1
    else:
        n_rows, *_ = _shape(X)
        no_kernel = "X is sparse" if sparse.issparse(X) else None
        if n_rows > MOST_KERNEL_ROWS:
            no_kernel = TOO_MANY
        is_one = not any(n > 1 for n in _shape(y)[1:])
    taken, left_out = [], {}
    for name, member in members:
        if no_kernel and "kernel" in member.get_params(deep=False):
            left_out[name] = no_kernel
        elif not (is_one or get_tags(member).target_tags.multi_output):
            left_out[name] = "y has several targets"
        else:
            taken.append((name, member))
    return taken, left_out


def members_without_room(left_out, X, task):
    """Members that were left out for the number of rows, of which some can be tried.

    Parameters
    ----------
    left_out : dict of str to str
    X : array-like of shape (n_samples, n_features)
    task : {"regression", "classification"}

    Returns
    -------
    list of (str, estimator)
    """
    return [
        (name, member)
        for name, member in PORTFOLIOS[task]()
        if left_out.get(name) == TOO_MANY and not sparse.issparse(X)
    ]


def _shape(data):
    """The shape of an array-like, which a sparse matrix says itself."""
    return data.shape if hasattr(data, "shape") else np.asarray(data).shape
