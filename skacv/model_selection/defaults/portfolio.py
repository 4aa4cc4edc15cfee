"""The default members of a task, and which of them can take a table."""

from dataclasses import dataclass, replace
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn import ensemble
from sklearn.base import clone, is_classifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.multiclass import type_of_target

from ..._compat import is_foreign, on_host
from ..._estimator.collections import is_collection
from ..._estimator.data.checks import (
    check_complete,
    check_one_type,
    has_sparse_columns,
    shape_of,
)
from ..._estimator.data.row_summary import RowSummary
from ..._estimator.estimates.readers import ESTIMATES
from ..._warnings import warn
from ...kernel import (
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    RecursiveFeatureMachineClassifier,
    RecursiveFeatureMachineRegressor,
)
from ...linear_model import (
    IterativeRidge,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
    TrajectoryQuantileRegressor,
    TrajectoryRegressor,
    TrajectoryTweedieRegressor,
)
from ...optim.blocks import LARGE_BYTES, MEMORY_BYTES
from ...optim.losses import Expectile, Pinball, SquaredError
from ...staged import Staged
from ...tables.cells import may_be_dense
from .decisive_rows import count_decisive_rows
from .growing_steps import GrowingStepClassifier, GrowingStepRegressor
from .strongest_columns import StrongestColumns
from .views import has_means, n_tree_columns

# Each tree of a forest has so many rows, or a fiftieth of all, if these are more: trees
# of different rows differ more, and their mean loses little.
ROWS_OF_TREE = 5000
SHARE_OF_TREE = 0.02
# Rows from which a trial of the members on a sample takes a small part of the time that
# it may save, and from which boosted trees are expected to be the best member.
FEWEST_ROWS = 8000
# Small boosted trees suit tables of so many rows.
MOST_SMALL_TREE_ROWS = 2000
# An eigendecomposition of more columns takes more than a few seconds.
MOST_DECOMPOSED = 1000
# The histograms of so many columns, 256 bins of 20 bytes each, fit in the caches: of
# more, a split of a boosted tree takes the time in which memory is read.
MOST_TREE_COLUMNS = LARGE_BYTES // (256 * 20)
# Why members cannot take a table.
SPARSE = "X is sparse"
MISSING, CATEGORIES = "X has missing values", "X has categorical columns"
SEVERAL = "y has several targets"


@dataclass(frozen=True)
class TableInfo:
    """Properties of a table, known before any run."""

    n_rows: int
    n_columns: int
    n_targets: int
    is_in_memory: bool = True
    # Whether rows are of another array library, perhaps on a device.
    is_foreign: bool = False
    is_sparse: bool = False
    has_missing: bool = False
    # Whether columns of a DataFrame are categories.
    has_categories: bool = False
    # Number of classes, if y has one of several for each row.
    n_classes: int = 1
    # Number of columns that forests see, if an encoder makes others of the table; and
    # whether some of these are means of y.
    n_tree_columns: int | None = None
    has_means: bool = False
    # Rows by which the loss is known as well as by all, if these are not all.
    n_decisive: float | None = None
    # Whether an encoder has made a tf-idf of columns of texts.
    has_texts: bool = False

    @classmethod
    def of(cls, X, y):
        """The table of X and y, as passed to fit.

        ValueError is raised if columns of a DataFrame hold strings, dates or durations.
        """
        if isinstance(X, RowSummary):
            return cls(*X.shape, X._n_targets, is_in_memory=False)
        if is_collection(X):  # which may not know how many rows it has
            n_targets = 1 if y.ndim == 1 else y.shape[1]
            return cls(1, X.shape[1], n_targets, is_in_memory=False)
        n_rows, *rest = shape_of(X)
        n_columns = rest[0] if rest else 1
        info = cls(max(1, n_rows), n_columns, max([1, *np.shape(y)[1:]]))
        if is_foreign(X):
            return replace(info, is_foreign=True)
        if sparse.issparse(X) or has_sparse_columns(X):
            return replace(info, is_sparse=not may_be_dense(X))
        return info._describe_columns(X)

    def _describe_columns(self, X):
        """These properties and those of the columns of X."""
        if not hasattr(X, "iloc") or X.ndim != 2:  # no DataFrame of pandas
            array = np.asarray(X)
            is_missing = array.dtype.kind == "f" and np.isnan(array).any()
            return replace(self, has_missing=bool(is_missing))
        # By items: columns may have the same name.
        strings = [
            name
            for name, column in X.items()
            if column.dtype.kind == "O"
            and column.dtype.name != "category"
            and any(isinstance(value, str) for value in column)
        ]
        if strings:
            raise ValueError(
                f"Columns {strings} of X contain strings, but encoder=None passes "
                "them on unchanged: encoder='auto' or a TableEncoder encodes them."
            )
        times = [name for name, dtype in X.dtypes.items() if dtype.kind in "mM"]
        if times:
            raise ValueError(
                f"Columns {times} of X contain dates or durations, but encoder=None "
                "passes them on unchanged: encoder='auto' or a TableEncoder encodes "
                "them."
            )
        return replace(
            self,
            has_missing=bool(X.isna().any(axis=None)),
            has_categories=any(dtype.name == "category" for dtype in X.dtypes),
        )


class Needs(NamedTuple):
    """What a member needs of a table, besides what its tags say."""

    # Whether it takes no sparse X.
    dense: bool = False
    # "memory" or "host": rows must be in memory, or in arrays of NumPy or pandas.
    rows: str = ""
    # The reason for that.
    why: str = ""


class DefaultMember(NamedTuple):
    """A member of a portfolio, and what it needs."""

    name: str
    estimator: Any
    needs: Needs = Needs()
    # Its form in a trial on a sample of rows; None: as it is.
    trial: Any = None
    # Whether it runs on all rows whatever its weight in a trial, since it gains most
    # from more rows.
    is_essential: bool = False
    # Whether only the gain of its iterates ends its run, not a number of them. Such
    # members run last, beside what the others have reached.
    is_open_ended: bool = False
    # Whether it is fitted to the tf-idf of texts beside the other columns.
    is_of_texts: bool = False


def _why_not(member, info, estimate):
    """Why a member cannot take a table; nothing if it can."""
    _, estimator, needs, *_ = member
    if estimate is not None and not estimate.is_computed_by(estimator):
        return f"it has no {estimate.path}"
    tags = get_tags(estimator)
    # The one parameter by which scikit-learn's estimators take categories.
    takes_categories = any(
        name.endswith("__categorical_features") for name in estimator.get_params()
    )
    has_rows = {
        "": True,
        "memory": info.is_in_memory,
        "host": info.is_in_memory and not info.is_foreign,
    }[needs.rows]
    reasons = {
        SPARSE: info.is_sparse and (needs.dense or not tags.input_tags.sparse),
        SEVERAL: info.n_targets > 1 and not tags.target_tags.multi_output,
        MISSING: info.has_missing and not tags.input_tags.allow_nan,
        CATEGORIES: info.has_categories and not takes_categories,
        needs.why: not has_rows,
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


def select_members(members, info, estimate=None):
    """The members that can take a table, and by name why the rest cannot.

    ``members`` are of type DefaultMember; they must compute the estimate, if any.
    """
    reasons = {member.name: _why_not(member, info, estimate) for member in members}
    kept = [member for member in members if not reasons[member.name]]
    return kept, {name: why for name, why in reasons.items() if why}


def warn_of_columns(skipped):
    """Warn of skipped members that would take the columns after an encoder."""
    for reason in (MISSING, CATEGORIES):
        names = [name for name, why in skipped.items() if why == reason]
        if names:
            warn(
                f"{', '.join(names)} cannot be compared with encoder=None, since "
                f"{reason}: encoder='auto' lets them run.",
                UserWarning,
            )


def check_some_take(members, skipped, owner):
    """Raise if no member of an owner, named by its class, can take a table."""
    if members:
        return
    reasons = "; ".join(f"{name}: {why}" for name, why in skipped.items())
    advice = "pass an estimator that supports it"
    if SEVERAL in skipped.values():
        advice = (
            "fit one for each column of y, as MultiOutputClassifier of "
            "sklearn.multioutput does"
        )
    raise ValueError(f"No model of {owner} supports these data ({reasons}): {advice}.")


def default_members(owner, task, X, y, table, sample_weight=None):
    """Default members, of type DefaultMember, for some data, and why others are not.

    ``table`` is an EncodedTable, or None if members are fitted to X itself.
    """
    if table is not None:
        X = table.X
    info = TableInfo.of(X, y)
    if sample_weight is not None and info.is_in_memory:
        info = replace(info, n_rows=max(1, np.count_nonzero(sample_weight)))
    if table is not None and table.encoder is not None:
        # Views of the codes have what members can take.
        one_hot = table.encoder.one_hot().fit(X)
        info = replace(
            info,
            has_missing=False,
            n_columns=len(one_hot.get_feature_names_out()),
            n_tree_columns=n_tree_columns(table.encoder),
            has_means=has_means(table.encoder, info.n_targets),
            has_texts=table.tf_idf is not None,
        )
    if task == "classification" and info.is_in_memory and info.n_targets == 1:
        info = replace(info, n_classes=len(set(np.ravel(on_host(y)).tolist())))
    needed = ESTIMATES[owner.criterion] if owner.criterion in tuple(ESTIMATES) else None
    loss = owner._default_loss()
    if info.is_in_memory and not loss.is_quadratic:
        n_decisive = count_decisive_rows(loss, on_host(y), sample_weight)
        info = replace(info, n_decisive=n_decisive)
    portfolio = PORTFOLIOS[task](info, loss)
    members, skipped = select_members(portfolio, info, needed)
    check_some_take(members, skipped, type(owner).__name__)
    warn_of_columns(skipped)
    return members, skipped


def list_forms(members):
    """Default members as they run on all rows: pairs of a name and an estimator."""
    return [(member.name, member.estimator) for member in members]


def list_all_forms(task, loss):
    """Default members of a task that may run on some table, as such pairs."""
    wide = replace(UNKNOWN, n_columns=MOST_DECOMPOSED + 1, has_texts=True)
    forms = {}
    for info in (wide, UNKNOWN):
        forms |= dict(list_forms(PORTFOLIOS[task](info, loss)))
    return list(forms.items())


def list_trial_forms(members):
    """Default members as they run in a trial on some rows, as such pairs."""
    forms = []
    for member in members:
        form = member.estimator if member.trial is None else member.trial
        forms.append((member.name, form))
    return forms


SAY_WHICH = (
    "use SelfStoppingRegressor or SelfStoppingClassifier, or set task='regression' or "
    "task='classification'"
)
# Boosted trees and extra trees, and what makes the first take several outputs.
REGRESSORS = (
    GrowingStepRegressor,
    ensemble.ExtraTreesRegressor,
    MultiOutputRegressor,
)
CLASSIFIERS = (
    GrowingStepClassifier,
    ensemble.ExtraTreesClassifier,
    MultiOutputClassifier,
)
KERNEL = Needs(True, "memory", "a kernel needs rows in memory")
# Members of the user's own choice take the columns as they are.
COLUMNS = {"standardize": "auto"}
# Boosted trees stop where patience ends them. Small trees of few columns for tables of
# some hundred rows: the best of eight forms on the half of the tables that defaults are
# tuned to (benchmarks). More rows bear larger trees: from ten leaves and half
# the columns at a split for 2000 rows to thirty and all of them for 100,000.
MOST_STAGES = 10_000
SMALL = {
    "max_iter": MOST_STAGES,
    "max_leaf_nodes": 6,
    "min_samples_leaf": 5,
    "max_features": 0.3,
}
USUAL = {
    "max_iter": MOST_STAGES,
    "min_samples_leaf": 20,
}
EXTRA = {"n_estimators": 100, "random_state": 0}
# Trees that draw their rows differ more, and may try more of the columns for classes:
# such a share more. Best of .5, .7 and 1 instead of .4 of the columns on the half of
# the tables for defaults.
SHARE_OF_DRAWN = 1.75
# In a trial fewer trees, and rounds, show what a member is worth beside others.
STAGES_OF_TRIAL, TREES_OF_TRIAL, ROUNDS_OF_TRIAL = 100, 20, 2
# With more classes, of which each has a tree at every stage, the search for splits
# takes most of the time; a quarter of the usual bins halves that.
MANY_CLASSES = 10
SQUARED_ERROR = SquaredError()
# Before a table is known.
UNKNOWN = TableInfo(n_rows=1, n_columns=1, n_targets=1)


def regression(info=UNKNOWN, loss=SQUARED_ERROR):
    """Default members for numbers, by a loss, for a table if it is known."""
    if isinstance(loss, Pinball | Expectile):
        return of_level(info, loss)
    if not loss.is_quadratic:
        return log_link(info, loss)
    return [
        DefaultMember("lasso", TrajectoryLasso("path", max_iter=20, **COLUMNS)),
        _ridge(info),
        DefaultMember("kernel", KernelEigenProRegressor(standardize=True), KERNEL),
        _feature_machine(info, RecursiveFeatureMachineRegressor(random_state=0)),
        *_of_texts(info, IterativeRidge("path", solver="nesterov")),
        *_tree_members(info, REGRESSORS, share=1.0),
    ]


def of_level(info, loss):
    """Default members for a quantile or an expectile, which its loss judges.

    scikit-learn has no boosted trees for expectiles.
    """
    # The pull towards a level far from 0.5 is weak on one side: these runs need three
    # times the updates of other losses.
    settings = {"max_iter": 60, **COLUMNS}
    if isinstance(loss, Expectile):
        linear = TrajectoryRegressor("path", loss=loss, penalty="l2", **settings)
        return [DefaultMember("ridge", linear), *_of_texts(info, linear)]
    linear = TrajectoryQuantileRegressor("path", quantile=loss.level, **settings)
    trees, _ = _tree_members(info, REGRESSORS, share=1.0)
    for form in (trees.estimator, trees.trial):
        form.set_params(**form._params_of_loss(loss))
    return [DefaultMember("ridge", linear), *_of_texts(info, linear), trees]


def log_link(info, loss):
    """Default members for counts and amounts, all judged by half a deviance.

    There are no kernel machines, which have the squared error only.
    """
    settings = {"max_iter": 20, **COLUMNS}
    ridge = TrajectoryTweedieRegressor("path", power=loss.power, **settings)
    return [
        DefaultMember("lasso", TrajectoryRegressor("path", loss=loss, **settings)),
        DefaultMember("ridge", ridge),
        *_of_texts(info, ridge),
        *_tree_members(info, REGRESSORS, share=1.0, loss=loss),
    ]


def classification(info=UNKNOWN, loss=None):
    """Default members for classes, all with probabilities, for a table if known."""
    # At one strength of several an iterate need not be more exact: the next strength
    # goes on from there. Where rows are many this saves updates.
    settings = {"max_iter": 30, "tol": 1e-4, **COLUMNS}
    # Texts separate classes, and strengths of a path that are weak enough take long:
    # from zero towards a solution that is hardly penalised takes fewer updates, and
    # was as good as the best of 13 strengths on two tables.
    of_texts = TrajectoryLogisticRegression(1000.0, tol=1e-4)
    return [
        DefaultMember("logistic", TrajectoryLogisticRegression("path", **settings)),
        DefaultMember("kernel", KernelEigenProClassifier(standardize=True), KERNEL),
        _feature_machine(info, RecursiveFeatureMachineClassifier(random_state=0)),
        *_of_texts(info, of_texts, max_iter=300),
        *_tree_members(info, CLASSIFIERS, share=0.4),
    ]


def _ridge(info):
    """The linear member whose coefficients are not sparse: exact, where that is cheap.

    Columns that are nearly dependent, as in spectra, need many gradient steps.
    """
    if info.is_in_memory and info.n_columns <= MOST_DECOMPOSED:
        ridge = IterativeRidge("path", solver="newton", max_iter=1, **COLUMNS)
        return DefaultMember("ridge", ridge)
    steps = IterativeRidge(0.0, solver="nesterov", max_iter=300, **COLUMNS)
    return DefaultMember("least squares", steps)


def _of_texts(info, linear, max_iter=60):
    """A linear member for the tf-idf of texts, if there are any.

    It gains most from more rows, which have more words. Columns are as its view of the
    table makes them. Terms of a small variance need ``max_iter`` updates, more than
    standardised columns.
    """
    if not info.has_texts:
        return []
    linear = clone(linear).set_params(standardize=False, max_iter=max_iter)
    needs = Needs(rows="memory", why="tf-idf needs rows in memory")
    return [DefaultMember("tf-idf", linear, needs, None, True, is_of_texts=True)]


def _screening(info, of_classes):
    """The steps before members that see the strongest columns, and their number."""
    # All of more columns than rows take long. As many as n / log(n) for n rows hold all
    # that matter with a probability near one (Fan and Lv 2008, "Sure independence
    # screening for ultrahigh dimensional feature space").
    n_columns = info.n_tree_columns or info.n_columns
    if n_columns <= max(MOST_TREE_COLUMNS, info.n_rows):
        return [], n_columns
    n_columns = max(1, int(info.n_rows / np.log(max(info.n_rows, 3))))
    return [("columns", StrongestColumns(n_columns, of_classes=of_classes))], n_columns


def _feature_machine(info, estimator):
    steps, _ = _screening(info, is_classifier(estimator))
    forms = []
    for n_rounds in (estimator.n_rounds, ROUNDS_OF_TRIAL):
        form = clone(estimator).set_params(n_rounds=n_rounds)
        forms.append(Staged(Pipeline([*steps, ("machine", form)]) if steps else form))
    full, trial = forms
    return DefaultMember("feature machine", full, KERNEL, trial)


def _tree_members(info, classes, share, loss=None):
    """Boosted trees, and extra trees, which try a share of the columns at a split.

    Extra trees take several outputs as they are, boosted trees are grown for each. A
    ``loss`` with a log link judges both.
    """
    boosted, extra, per_output = classes
    is_small = info.n_rows <= MOST_SMALL_TREE_ROWS
    # Trees for rare counts are as large as those for as many rows as there are events:
    # better in seven of eight splits of three portfolios of car insurance.
    n_decisive = info.n_rows if info.n_decisive is None else info.n_decisive
    n_times = n_decisive / MOST_SMALL_TREE_ROWS
    share_tried = min(1.0, 0.5 * n_times**0.18)
    usual = {
        "max_leaf_nodes": max(SMALL["max_leaf_nodes"], round(10 * n_times**0.29)),
        "max_features": max(SMALL["max_features"], share_tried),
    }
    trees = boosted(random_state=0, **(SMALL if is_small else usual | USUAL))
    if info.n_classes > MANY_CLASSES:
        # Without any, see below, trees of 7500 rows in 18 classes diverged on all rows
        # after fifty stages, though not in the folds.
        trees.set_params(max_bins=63, l2_regularization=0.01)
    elif is_classifier(trees):
        # A leaf whose rows are surely of their classes has nearly no curvature, and its
        # value grows without bound: with a rare class the log loss rises after some
        # dozens of trees. Best of 0, 1 and 5 on the half of the tables for defaults,
        # none of which has many classes: there runs would take three times as long.
        trees.set_params(l2_regularization=5)
    steps, n_columns = _screening(info, is_classifier(trees))
    # Trees that draw rows are judged by those that they have not drawn, without fits to
    # folds; but steps that read y are fitted in each fold, and then trees of all rows
    # make better blends of classes.
    draws = not steps and not info.has_means
    # They try all columns of a small table, or a share for classes, and fewer of a
    # large one, where more would take longer than they are worth.
    most = max(10, 20_000 // info.n_rows)
    share = min(1.0, SHARE_OF_DRAWN * share) if draws else share
    n_tried = max(1, int(min(share * n_columns, most)))
    forest = extra(max_features=n_tried, bootstrap=draws, **EXTRA)
    n_drawn = max(ROWS_OF_TREE, int(SHARE_OF_TREE * info.n_rows))
    least = 1
    if info.n_rows > n_drawn:
        # Leaves of five rows, as forests for regression have in R, make a fifth of the
        # nodes, which take more memory than X otherwise. Trees of a fold have the same
        # share of its rows, which may be fewer.
        forest.set_params(bootstrap=True, max_samples=n_drawn / info.n_rows)
        least = 5
    if loss is not None:
        # Means that the Poisson loss fits are those of any deviance, and its splits
        # leave no row with a mean of zero, of which deviances would be infinite.
        trees.set_params(loss="gamma" if loss.power == 2 else "poisson")
        forest.set_params(criterion="poisson")
    # Every node has a number for each class. Some three nodes for two rows are grown to
    # the end, in a forest and a copy for each of five folds; leaves of more rows keep
    # these numbers, and nodes that take as much, in memory.
    n_rows_of_tree = min(info.n_rows, n_drawn)
    n_numbers = 1.5 * n_rows_of_tree * info.n_classes * forest.n_estimators * 6
    forest.set_params(min_samples_leaf=max(least, ceil(16 * n_numbers / MEMORY_BYTES)))
    rows = Needs(rows="host", why="trees need rows in memory, of NumPy or pandas")
    members = []
    for name, model, n_of_trial in (
        ("boosted trees", trees, {"max_iter": STAGES_OF_TRIAL}),
        ("extra trees", forest, {"n_estimators": TREES_OF_TRIAL}),
    ):
        forms = []
        for form in (model, clone(model).set_params(**n_of_trial)):
            if info.n_targets > 1 and model is trees:
                form = per_output(form)
            form = Pipeline([*steps, ("trees", form)]) if steps else form
            forms.append(Staged(form, judge=loss))
        full, trial = forms
        members.append(
            DefaultMember(name, full, rows, trial, model is trees, model is trees)
        )
    return members


PORTFOLIOS = {"regression": regression, "classification": classification}


def infer_task(X, y):
    """ "regression" or "classification", where the targets leave no doubt.

    Strings and booleans are classes; fractions, and targets of a summary, are numbers.
    ValueError is raised if y has whole numbers, which may be either, or is not in
    memory.
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
    # Objects may be strings or booleans, or numbers.
    are_labels = y.dtype.kind == "O" and all(
        isinstance(value, str | bool | np.bool_) for value in y.flat
    )
    if y.dtype.kind in "bUS" or are_labels:
        return "classification"
    if kind.startswith("continuous") or not y.size:  # fit raises an error of no rows
        return "regression"
    raise ValueError(
        f"y has whole numbers, which may be targets or class labels: {SAY_WHICH}."
    )
