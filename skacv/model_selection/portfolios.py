"""The default members for regression and for classification."""

import numpy as np
from sklearn import ensemble
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import type_of_target

from .._estimator.collections import is_collection
from .._estimator.data.row_summary import RowSummary
from ..kernel import KernelEigenProClassifier, KernelEigenProRegressor
from ..linear_model import (
    IterativeRidge,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)
from ..staged import Staged
from .tables import Table

SAY_WHICH = (
    "take SelfStoppingRegressor or SelfStoppingClassifier, or set task='regression' or "
    "task='classification'"
)
# At one strength of several an iterate need not be more exact than that: the next
# strength goes on from there. Where rows are many this saves updates.
TOLERANCE = 1e-4
# Boosted trees and extra trees.
REGRESSORS = ensemble.HistGradientBoostingRegressor, ensemble.ExtraTreesRegressor
CLASSIFIERS = ensemble.HistGradientBoostingClassifier, ensemble.ExtraTreesClassifier
# Members of the user's own choice take the columns as they are.
COLUMNS = {"standardize": True}
# Small trees of few columns for tables of some hundred rows: the best of eight forms on
# the half of the tables that defaults are tuned to (benchmarks). More rows bear trees
# of the usual size, and fewer of them.
SMALL = {"max_leaf_nodes": 6, "min_samples_leaf": 5, "max_features": 0.3}
USUAL = {"max_leaf_nodes": 31, "min_samples_leaf": 20, "max_features": 1.0}
EXTRA = {"n_estimators": 100, "random_state": 0}
MOST_FOR_SMALL, MOST_SMALL, MOST_USUAL = 2000, 1000, 300
# Columns that extra trees try at a split: all of a small table, or a share of them for
# classes, and fewer of a large one, where more would take longer than they are worth.
FEWEST_TRIED, TRIED_ENTRIES, SHARE_TRIED = 10, 20_000, 0.4
# An eigendecomposition of more columns takes more than a few seconds.
MOST_DECOMPOSED = 1000
# Before a table is known.
SOME = Table(n_rows=1, n_columns=1, n_targets=1)


def regression(table=SOME):
    """Members for numbers.

    Parameters
    ----------
    table : Table, default=SOME
        What they are to be fitted to, if it is known.

    Returns
    -------
    list of (str, estimator)
    """
    return [
        ("lasso", TrajectoryLasso("path", max_iter=20, **COLUMNS)),
        _dense(table),
        ("kernel", KernelEigenProRegressor(**COLUMNS)),
        *_trees(table, REGRESSORS, 1.0),
    ]


def classification(table=SOME):
    """Members for classes, all with probabilities.

    Parameters
    ----------
    table : Table, default=SOME
        What they are to be fitted to, if it is known.

    Returns
    -------
    list of (str, estimator)
    """
    settings = {"max_iter": 30, "tol": TOLERANCE, **COLUMNS}
    return [
        ("logistic", TrajectoryLogisticRegression("path", **settings)),
        ("kernel", KernelEigenProClassifier(**COLUMNS)),
        *_trees(table, CLASSIFIERS, SHARE_TRIED),
    ]


def _dense(table):
    """The linear member whose coefficients are not sparse: exact, where that is cheap.

    Columns that are nearly dependent, as in spectra, need many gradient steps.
    """
    if table.is_here and table.n_columns <= MOST_DECOMPOSED:
        return "ridge", IterativeRidge("path", solver="newton", max_iter=1, **COLUMNS)
    steps = IterativeRidge(0.0, solver="nesterov", max_iter=300, **COLUMNS)
    return "least squares", steps


def _trees(table, classes, share):
    """Boosted trees, and extra trees, which try a share of the columns at a split."""
    boosted, extra = classes
    is_small = table.n_rows <= MOST_FOR_SMALL
    n_trees = MOST_SMALL if is_small else MOST_USUAL
    size = {"max_iter": n_trees, **(SMALL if is_small else USUAL)}
    # They try fewer columns where rows are many.
    most = max(FEWEST_TRIED, TRIED_ENTRIES // table.n_rows)
    n_tried = max(1, int(min(share * table.n_columns, most)))
    return [
        ("boosted trees", Staged(boosted(random_state=0, **size))),
        ("extra trees", Staged(extra(max_features=n_tried, **EXTRA))),
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
