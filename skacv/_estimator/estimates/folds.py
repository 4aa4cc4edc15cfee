"""Folds of ``cv``: the splitter, the folds of a fit, and their estimate."""

import warnings
from dataclasses import dataclass, replace
from inspect import signature
from numbers import Integral
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.model_selection import (
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    check_cv,
)
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)

from ..._compat import _num_samples
from ..._warnings import warn
from ...exceptions import SmallTrainingSetsWarning
from ...optim.array_path import path_values
from ...records.held_out import HeldOut
from ...risk.held_out_rows import (
    error_of_repeats,
    losses_of,
    mean_with_error,
    units_of,
)
from ...risk.left_out.replicas import leave_folds_out
from ..collections import is_collection
from ..data.checks import validate_groups
from ..data.survival import is_survival
from ..data.training_data import positions
from .held_out import HeldOutLosses, HeldOutPath
from .left_out import mean_losses, parallel_blocks

# Held-out rows, or groups of them, from which a choice is made by default. The standard
# error of a mean squared error is three percent then for normal residuals, that of a
# difference between models that are nearly as good is far less. With many classes fewer
# are enough: the spread of log losses is about one, and their mean grows with the
# entropy of the classes, in units of log(e).
ROWS_TO_CHOOSE_BY = 2000
# One fold may be enough, with the spread over its rows; the spread over two folds says
# little.
FEWEST_SPREAD = 3
# The smallest share of the rows that a fold is fitted to without a warning: of three
# rows in two folds one fold has one. The error above that of the best possible model
# falls about as 1 / n: of fewer rows it is more than three times that of all rows.
LEAST_SHARE = 1 / 3
# The relative variance of squared deviations of y, 2 for a normal distribution, above
# which more rows are needed, in proportion: that of a Laplace distribution.
LARGEST_SPREAD = 5.0


@dataclass(frozen=True, eq=False)
class ShuffledFolds:
    """Random folds of rows, the default: as many as a choice needs."""

    stratified: bool
    rows: np.ndarray | None = None
    n_splits: int = 5
    has_groups: bool = False
    # Held-out rows in some folds that make the others unnecessary, or None.
    enough: int | None = None

    @classmethod
    def of(cls, estimator, sample_weight):
        """Folds of the rows of positive weight, stratified for a classifier."""
        rows = None
        # Rows of a collection with weight zero count for nothing in their blocks.
        if sample_weight is not None and not is_collection(sample_weight):
            rows = np.flatnonzero(np.asarray(sample_weight) > 0)
        return cls(is_classifier(estimator), rows, enough=ROWS_TO_CHOOSE_BY)

    def split(self, X, y, groups=None):
        """Training rows and held-out rows, the same for the same data."""
        y = np.asarray(y)
        is_of_survival = is_survival(y)
        if is_of_survival:  # every fold has some events
            y = y["event"]
        targets = y if self.rows is None else y[self.rows]
        rows = np.arange(len(y)) if self.rows is None else self.rows
        # Rows with several labels have no classes to be stratified by.
        stratified = (self.stratified or is_of_survival) and y.size == len(y)
        y = y[rows].ravel() if stratified else np.zeros(len(rows), int)
        drawing = {"shuffle": True, "random_state": 0}
        if self.has_groups:
            groups = groups[rows]
            n_groups = len(np.unique(groups))
            if n_groups < 2:
                raise ValueError("At least two groups are needed, got one.")
            splitter = StratifiedGroupKFold(min(self.n_splits, n_groups), **drawing)
            with warnings.catch_warnings():
                # Classes may have fewer rows than there are folds.
                warnings.filterwarnings("ignore", "The least populated class")
                splits = list(splitter.split(y, y, groups))
        else:
            largest = np.unique(y, return_counts=True)[1].max() if stratified else 1
            if largest > 1:
                splitter = StratifiedKFold(min(self.n_splits, int(largest)), **drawing)
            else:
                splitter = KFold(min(self.n_splits, len(y)), **drawing)
            splits = splitter.split(rows, y)
        # Pooled risk sets need the rows of all folds.
        n_enough = np.inf if is_of_survival else self._n_enough(targets)
        n_units = 0
        for number, (fitted, held_out) in enumerate(splits, start=1):
            n_units += len(held_out if groups is None else np.unique(groups[held_out]))
            yield rows[fitted], rows[held_out]
            if n_units >= n_enough and (number == 1 or number >= FEWEST_SPREAD):
                break

    # So many rows, or groups, are enough to choose by.
    def _n_enough(self, y):
        if self.enough is None:
            return np.inf
        enough = self.enough
        # With heavy tails, or a rare class, few rows decide about a mean. Targets that
        # are not finite are refused later.
        with np.errstate(over="ignore", invalid="ignore"):
            if self.stratified and y.size == len(y):
                _, label, counts = np.unique(y, return_inverse=True, return_counts=True)
                shares = counts / counts.sum()
                deviations = 1 - 2 * shares[label.ravel()] + np.sum(shares**2)
                enough = self.enough / max(1.0, -np.sum(shares * np.log(shares)))
            else:
                y = y.reshape(len(y), -1).astype(np.float64)
                deviations = np.sum((y - y.mean(axis=0)) ** 2, axis=1)
            mean = deviations.mean()
            spread = deviations.var() / mean**2 if mean > 0 else 0.0
        return enough * max(spread / LARGEST_SPREAD, 1.0)

    def get_n_splits(self, X=None, y=None, groups=None):
        """Largest number of folds."""
        return self.n_splits

    @property
    def is_default(self):
        """Whether nobody asks for these folds: any unseen rows judge as well."""
        return not self.has_groups

    def with_groups(self):
        """A splitter that keeps the rows of a group together."""
        return replace(self, has_groups=True)


def splitter_of(estimator, y, params):
    """The splitter of an estimator's ``cv``, the parameters of its ``split``, groups.

    Shapes: y (n_samples,) or (n_samples, n_targets), groups (n_samples,) by number.
    """
    cv, params = estimator.cv, {k: v for k, v in params.items() if v is not None}
    if get_config()["enable_metadata_routing"]:
        params = process_routing(estimator, "fit", **params).splitter.split
    elif set(params) - {"groups"}:
        unknown = ", ".join(sorted(set(params) - {"groups"}))
        takes = "sample_weight and groups"
        if "sample_weight" not in signature(estimator.fit).parameters:
            takes = "groups"
        raise TypeError(
            f"{type(estimator).__name__}.fit() got unexpected arguments: {unknown}. "
            f"Besides X and y it accepts {takes}."
        )
    if cv is None and params:
        raise ValueError(f"fit passes {', '.join(params)} to cv, but cv=None.")
    if cv is None:
        return None, {}, None
    if not (isinstance(cv, Integral) or hasattr(cv, "split")):
        cv = pairs_of(cv)
    is_of_classes, groups = is_classifier(estimator), None
    if "groups" in params:
        labels = validate_groups(params["groups"], _num_samples(y))
        params = {**params, "groups": labels}
        groups = np.unique(labels, return_inverse=True)[1]
        cv = _choose_for_groups(cv, is_of_classes)
    splitter = check_cv(cv, y, classifier=is_of_classes)
    if _takes_groups(splitter) and "groups" not in params:
        raise ValueError(
            f"cv={cv!r} needs groups: pass fit(X, y, groups=...). Inside "
            "cross_val_score or GridSearchCV they arrive with "
            "sklearn.set_config(enable_metadata_routing=True) and "
            "params={'groups': groups}."
        )
    return splitter, params, groups


def pairs_of(cv):
    """An iterable of splits as a list; ValueError where an item is no pair of rows."""
    splits = list(cv)
    for number, split in enumerate(splits):
        try:
            _fitted, _held_out = split
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"Fold {number} of cv must be a pair of training rows and held-out "
                f"rows, got {split!r}."
            ) from error
    return splits


def _takes_groups(splitter):
    """Whether a splitter says that it needs groups."""
    if not hasattr(splitter, "get_metadata_routing"):
        return False
    return bool(get_routing_for_object(splitter).split.requests.get("groups"))


def _choose_for_groups(cv, is_of_classes):
    """The splitter of ``cv``, or an error, where ``fit`` is passed groups."""
    if isinstance(cv, Integral):
        return ShuffledFolds(is_of_classes, None, int(cv), has_groups=True)
    if hasattr(cv, "with_groups"):
        return cv.with_groups()
    splitter = check_cv(cv)
    # A splitter that says nothing of metadata may use them.
    if hasattr(splitter, "get_metadata_routing") and not _takes_groups(splitter):
        name = cv if hasattr(cv, "split") else "an iterable of splits"
        raise ValueError(
            f"fit was passed groups, which cv={name} ignores: use "
            "cv=GroupKFold() or another splitter of groups, or a number of folds."
        )
    return cv


def list_folds(estimator, X, y, samples, params):
    """The folds of ``cv`` as rows of the problem, none without ``cv``; groups.

    Shapes: groups (n_samples,).
    """
    splitter, split_params, groups = splitter_of(estimator, y, params)
    if splitter is None:
        return [], None
    splits = splitter.split(X, y, **split_params)
    return folds_of(splits, positions(samples.rows, samples.n_samples)), groups


# The method ``get_metadata_routing`` of estimators with a parameter ``cv``.
def routing_of(self: Any) -> Any:
    """Metadata routing: fit passes on to the split of the splitter ``cv``."""
    mapping = MethodMapping().add(caller="fit", callee="split")
    router = MetadataRouter(owner=self).add_self_request(self)
    return router.add(splitter=check_cv(self.cv), method_mapping=mapping)


def folds_of(splits, position):
    """The folds of a splitter as rows of the problem: (training rows, held-out rows).

    Shapes: position (n_samples,), the row that every sample is, or -1.
    """
    folds, n_samples = [], len(position)
    for number, (fitted, held_out) in enumerate(splits):
        name = f"Fold {number} of cv"
        fitted = row_numbers(fitted, n_samples, name)
        held_out = row_numbers(held_out, n_samples, name)
        is_fitted = np.zeros(n_samples, dtype=bool)
        is_fitted[fitted] = True
        leaked = held_out[is_fitted[held_out]]
        if len(leaked):
            raise ValueError(
                f"{name} both fits and holds out some rows, such as row {leaked[0]}: "
                "their errors would be those of rows that the model has seen. Hold "
                "out rows that it is not fitted to."
            )
        fold = []
        for samples, purpose in ((fitted, "to fit on"), (held_out, "to hold out")):
            rows = position[samples]
            if np.array_equal(rows, samples):
                rows = samples  # not copied: there may be many
            else:
                rows = rows[rows >= 0]
            if not rows.size:
                raise ValueError(
                    f"{name} leaves no row with positive weight {purpose}."
                )
            fold.append(rows)
        folds.append(tuple(fold))
    if not folds:
        raise ValueError("cv gives no folds.")
    warn_of_small_training_sets(folds, np.count_nonzero(position >= 0))
    return folds


def warn_of_small_training_sets(folds, n_rows):
    """Warn where a fold is fitted to far fewer rows than the ``n_rows`` of the model.

    ``folds`` are pairs of the rows to fit on, of positive weight, and those to hold
    out.
    """
    sizes = [len(fitted) for fitted, _ in folds]
    smallest = int(np.argmin(sizes))
    if sizes[smallest] >= LEAST_SHARE * n_rows:
        return
    advice = "Splits that fit each fold to more of the rows avoid this."
    test_size = n_rows // (2 * len(folds))
    is_in_time = all(fitted.max() < held_out.min() for fitted, held_out in folds)
    if is_in_time and test_size:
        advice = (
            f"TimeSeriesSplit(n_splits={len(folds)}, test_size={test_size}) fits each "
            "fold to half of the rows at least."
        )
    warn(
        f"Fold {smallest} of cv is fitted to {sizes[smallest]} of the {n_rows} rows: "
        "held-out errors, which average such folds, are larger than that of the model "
        f"of all rows. {advice}",
        SmallTrainingSetsWarning,
    )


def row_numbers(rows, n_rows, name):
    """Row numbers as an array of integers; a mask gives those where it is true."""
    rows = np.asarray(rows)
    if rows.dtype == bool and rows.shape == (n_rows,):
        rows = np.flatnonzero(rows)
    if not rows.size:
        rows = rows.astype(int)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be a 1d array of row numbers (integers), got {rows.dtype} "
            f"of shape {rows.shape}."
        )
    if rows.size and (rows.min() < 0 or rows.max() >= n_rows):
        raise ValueError(f"{name} has rows beyond the {n_rows} samples.")
    return rows


def unseen_folds(folds, seen):
    """The folds without held-out rows that a preconditioner has seen."""
    unseen = []
    for fitted, held_out in folds:
        held_out = held_out[~np.isin(held_out, seen)]
        if len(held_out):
            unseen.append((fitted, held_out))
    if folds and not unseen:
        raise ValueError(
            "All rows that cv tests on are in the preconditioner's subsample, which "
            "cannot be left out. Use a smaller subsample_size, or n_components=0."
        )
    return unseen


def read_folds(run):
    """The estimate by cross-validation on the folds of ``cv``."""
    estimator, trajectory, data = run.estimator, run.trajectory, run.data
    problem, folds = data.problem, unseen_folds(run.folds, trajectory.rows_seen())
    if run.side_runs is not None:
        run.side_runs.check_stable(trajectory)
        record = run.side_runs.recorded(len(trajectory.coef))
    else:
        rule, parallel = (
            estimator._spec().refit(data),
            parallel_blocks(estimator.n_jobs),
        )
        with np.errstate(over="ignore", invalid="ignore"):
            record = leave_folds_out(problem, trajectory, folds, rule, **parallel)
    paths, (samples, targets) = data.held_out_paths(record, folds), data.held_out(folds)
    if problem.loss.couples_rows:
        path, se_path, by_fold = pooled_losses(run, paths, folds)
    elif len(folds) == 1:  # no spread over folds, but over rows or groups
        units = units_of(samples[0], run.groups)
        rows = data.rows_of_samples(samples[0])
        path, se_path = mean_losses(paths[0], rows, data.observed, units)
        by_fold = path[:, None]
    else:
        predictors = record.paths(problem.design, [rows for _, rows in folds])
        by_fold, weights = [], []
        for fold, (predictor, (_, rows)) in enumerate(zip(predictors, folds)):
            weights_of_fold = problem.row_weights[rows, 0]
            weights.append(weights_of_fold.sum())
            shares = weights_of_fold.astype(np.float64)
            shares /= weights_of_fold.sum(dtype=np.float64)
            of_fold = problem.loss.judge, problem.target[rows], shares, predictor
            (values,) = run.so_far.first(
                ("cv", fold),
                len(predictor),
                lambda part, of_fold=of_fold: (path_values(*of_fold, part),),
            )
            by_fold.append(problem.reported_losses(values))
        by_fold = np.stack(by_fold, axis=1)
        path, se_path = mean_with_error(by_fold, np.array(weights, dtype=np.float64))
        if data.sample_weights is not None:  # a summary has each row in one fold
            rows = np.concatenate(samples)
            se_path = se_path * error_of_repeats(rows, data.sample_weights[rows])
    return HeldOut(
        path=path,
        se_path=se_path,
        indices=samples,
        target=targets,
        prediction=HeldOutPath(paths, data.predictions(estimator)),
        more={"fold_path": by_fold},
    )


def pooled_losses(run, paths, folds):
    """Losses of coupled rows, of which all that are held out are compared.

    A fold alone would compare few rows, and its linear predictors are those of a fit:
    they can be pooled (Dai & Breheny 2024, "Cross validation approaches for penalized
    Cox regression"). Returned are the path, its standard error and the part of every
    fold.
    """
    problem = run.data.problem
    rows = np.concatenate([rows for _, rows in folds])
    labels = np.repeat(np.arange(len(folds)), [len(rows) for _, rows in folds])
    target = problem.target[rows]
    weights = problem.row_weights[rows, 0].astype(np.float64)

    def losses_at(iterates):
        predictors = np.concatenate([path[iterates] for path in paths], axis=1)
        return losses_of(problem.loss, target, predictors, weights)

    samples = run.data.rows[rows]
    losses_of_rows = HeldOutLosses(samples, labels, weights, len(paths[0]), losses_at)
    sums, totals = losses_of_rows.sums(labels, len(folds))
    by_fold = sums / totals
    if len(folds) == 1:
        return *losses_of_rows.averages(run.groups), by_fold
    path, se_path = mean_with_error(by_fold, totals)
    return path, se_path * error_of_repeats(samples, weights), by_fold
