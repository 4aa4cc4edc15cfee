"""The default members of a task, and which of them can take a table."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from sklearn import ensemble
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.multiclass import type_of_target

from .._compat import is_foreign
from .._estimator.collections import is_collection
from .._estimator.data.checks import (
    check_complete,
    check_one_type,
    has_sparse_columns,
)
from .._estimator.data.row_summary import RowSummary
from .._estimator.run.source import shape_of
from .._warnings import warn
from ..kernel import KernelEigenProClassifier, KernelEigenProRegressor
from ..linear_model import IterativeRidge, TrajectoryLasso, TrajectoryLogisticRegression
from ..staged import Staged
from ..tables.cells import may_be_dense

# A kernel machine on more rows takes more than some fifteen seconds on one core, and so
# do extra trees.
MOST_KERNEL_ROWS = 10_000
MOST_FOREST_ROWS = 5000
# What lets members take a table that they cannot take as it is.
SPARSE = "X is sparse"
MISSING, CATEGORIES = "X has missing values", "X has columns of categories"
SEVERAL = "y has several targets"


@dataclass(frozen=True)
class Table:
    """Properties of a table, known before any run.

    Attributes
    ----------
    is_here : bool
        Whether its rows are in memory.
    is_foreign : bool
        Whether they are of another array library, perhaps on a device.
    has_categories : bool
        Whether columns of a DataFrame are categories.
    n_tree_columns : int or None
        Number of columns that forests see, if an encoder makes others of the table.
    """

    n_rows: int
    n_columns: int
    n_targets: int
    is_here: bool = True
    is_foreign: bool = False
    is_sparse: bool = False
    has_missing: bool = False
    has_categories: bool = False
    n_tree_columns: int | None = None

    @classmethod
    def of(cls, X, y):
        """The table of X and y, as passed to fit.

        Raises
        ------
        ValueError
            If columns of a DataFrame hold strings, dates or durations.
        """
        if isinstance(X, RowSummary):
            return cls(*X.shape, X._n_targets, is_here=False)
        if is_collection(X):  # which may not know how many rows it has
            n_targets = 1 if y.ndim == 1 else y.shape[1]
            return cls(1, X.shape[1], n_targets, is_here=False)
        n_rows, *others = shape_of(X)
        n_columns = others[0] if others else 1
        found = cls(max(1, n_rows), n_columns, max([1, *shape_of(y)[1:]]))
        if is_foreign(X):
            return replace(found, is_foreign=True)
        if sparse.issparse(X) or has_sparse_columns(X):
            return replace(found, is_sparse=not may_be_dense(X))
        return found._with_columns(X)

    def _with_columns(self, X):
        """The same with what its columns are."""
        if not hasattr(X, "iloc") or X.ndim != 2:  # no DataFrame of pandas
            array = np.asarray(X)
            is_missing = array.dtype.kind == "f" and np.isnan(array).any()
            return replace(self, has_missing=bool(is_missing))
        # By items: columns may have the same name.
        strings = [name for name, column in X.items() if _holds_strings(column)]
        if strings:
            raise ValueError(
                f"Columns {strings} of X hold strings, and encoder=None passes them on "
                "as they are: encoder='auto' makes numbers of them."
            )
        times = [name for name, dtype in X.dtypes.items() if dtype.kind in "mM"]
        if times:
            raise ValueError(
                f"Columns {times} of X hold dates or durations, and encoder=None "
                "passes them on as they are: encoder='auto' makes numbers of them."
            )
        return replace(
            self,
            has_missing=bool(X.isna().any(axis=None)),
            has_categories=any(dtype.name == "category" for dtype in X.dtypes),
        )


def _holds_strings(column):
    """Whether a column of a DataFrame has values that are strings."""
    may_hold = column.dtype.kind == "O" and column.dtype.name != "category"
    return may_hold and any(isinstance(value, str) for value in column)


def _why_not(name, member, table, estimate):
    """Why a member cannot take a table; nothing if it can."""
    if estimate is not None and not estimate.is_computed_by(member):
        return f"it has no {estimate.path}"
    tags = get_tags(member)
    if table.is_sparse and (name == "kernel" or not tags.input_tags.sparse):
        return SPARSE
    if table.n_targets > 1 and not tags.target_tags.multi_output:
        return SEVERAL
    if table.has_missing and not tags.input_tags.allow_nan:
        return MISSING
    # The one parameter by which scikit-learn's estimators take categories.
    takes_categories = any(
        name.endswith("__categorical_features") for name in member.get_params()
    )
    if table.has_categories and not takes_categories:
        return CATEGORIES
    if name == "kernel" and not table.is_here:
        return "a kernel needs rows in memory"
    is_of_arrays = table.is_here and not table.is_foreign
    if name in ("boosted trees", "extra trees") and not is_of_arrays:
        return "trees need rows in memory, of NumPy or pandas"
    most = {"kernel": MOST_KERNEL_ROWS, "extra trees": MOST_FOREST_ROWS}.get(name)
    return f"X has more than {most} rows" if most and table.n_rows > most else ""


def that_take(members, table, estimate=None):
    """The members that can take a table, and why the others cannot.

    Parameters
    ----------
    members : list of (str, estimator)
    table : Table
    estimate : Estimate, default=None
        One that they must compute.

    Returns
    -------
    taken : list of (str, estimator)
    left_out : dict of str to str
        By the names of the others, why they are none of these.
    """
    reasons = {
        name: _why_not(name, member, table, estimate) for name, member in members
    }
    taken = [(name, member) for name, member in members if not reasons[name]]
    return taken, {name: why for name, why in reasons.items() if why}


def warn_of_columns(left_out):
    """Warn of members that would take columns after an encoder.

    Parameters
    ----------
    left_out : dict of str to str
        As :func:`that_take` returns it.
    """
    for reason in (MISSING, CATEGORIES):
        names = [name for name, why in left_out.items() if why == reason]
        if names:
            warn(
                f"{', '.join(names)} cannot be compared with encoder=None, since "
                f"{reason}: encoder='auto' lets them run.",
                UserWarning,
            )


def check_some_take(members, left_out, owner):
    """Raise where no member can take a table.

    Parameters
    ----------
    members : list of (str, estimator)
    left_out : dict of str to str
        As :func:`that_take` returns them.
    owner : str
        Name of the class that has these members.
    """
    if members:
        return
    reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
    advice = "pass an estimator that takes it"
    if SEVERAL in left_out.values():
        advice = (
            "fit one for each column of y, as MultiOutputClassifier of "
            "sklearn.multioutput does"
        )
    raise ValueError(f"No model of {owner} takes these data ({reasons}): {advice}.")


SAY_WHICH = (
    "take SelfStoppingRegressor or SelfStoppingClassifier, or set task='regression' or "
    "task='classification'"
)
# At one strength of several an iterate need not be more exact than that: the next
# strength goes on from there. Where rows are many this saves updates.
TOLERANCE = 1e-4
# Boosted trees and extra trees, and what makes the first take several outputs.
REGRESSORS = (
    ensemble.HistGradientBoostingRegressor,
    ensemble.ExtraTreesRegressor,
    MultiOutputRegressor,
)
CLASSIFIERS = (
    ensemble.HistGradientBoostingClassifier,
    ensemble.ExtraTreesClassifier,
    MultiOutputClassifier,
)
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
    """Boosted trees, and extra trees, which try a share of the columns at a split.

    Extra trees take several outputs as they are, boosted trees are grown for each.
    """
    boosted, extra, per_output = classes
    is_small = table.n_rows <= MOST_FOR_SMALL
    n_trees = MOST_SMALL if is_small else MOST_USUAL
    size = {"max_iter": n_trees, **(SMALL if is_small else USUAL)}
    # They try fewer columns where rows are many.
    most = max(FEWEST_TRIED, TRIED_ENTRIES // table.n_rows)
    n_columns = table.n_tree_columns or table.n_columns
    n_tried = max(1, int(min(share * n_columns, most)))
    trees = boosted(random_state=0, **size)
    return [
        ("boosted trees", Staged(per_output(trees) if table.n_targets > 1 else trees)),
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
    check_complete(y)
    check_one_type(y, "y")
    if y.dtype.kind == "f":
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
