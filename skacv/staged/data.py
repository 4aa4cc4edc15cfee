"""Data of a run of stages: classes, targets, parameters of fit, and the loss."""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.utils import check_array, column_or_1d, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, validate_data

from .._compat import _num_samples, _safe_indexing, check_in_memory, refuses_sparse
from .._estimator.data.checks import (
    NAMES,
    check_has_rows,
    has_sparse_columns,
    replace_weightless_rows,
    validate_target,
    validate_weights,
)
from .._estimator.data.labels import known_labels, targets_of
from .._estimator.data.row_summary import RowSummary
from .._estimator.data.shares import shares_of
from .._estimator.data.survival import is_survival, ranked_times, survival_array
from .._estimator.delegation import weights_for
from .._warnings import warn
from .fits import last_of, replace_last_step
from .losses import LogLossOfLabels, OfSeveralLevels, WrongLabel

# Tables of CatBoost, XGBoost and LightGBM.
LIBRARY_TABLES = "Pool", "DMatrix", "QuantileDMatrix", "Dataset"
# Parameters that weigh classes, and values with which they do not.
WEIGH_CLASSES = {
    "class_weight": (None,),
    "class_weights": (None,),
    "auto_class_weights": (None, "None"),
    "scale_pos_weight": (None, 1),
    "is_unbalance": (None, False),
    "unbalance": (None, False),
    "unbalanced_sets": (None, False),
}


@dataclass(frozen=True, eq=False)
class TargetInfo:
    """What is known of X and y before a run.

    Shapes: classes (n_classes,), None for regression.
    """

    names: dict  # number and names of the columns, as fitted attributes
    loss: Any
    classes: np.ndarray | None = None
    # Whether a row may have several labels; classes are numbers of labels then.
    is_multilabel: bool = False
    # The number of rows of the query of every row, (n_samples,), for rankers.
    query_sizes: np.ndarray | None = None

    @property
    def row_classes(self):
        """The classes, if a row has one of them; else None."""
        return None if self.is_multilabel else self.classes

    def target_of(self, y):
        """Targets as the loss needs them.

        Shapes: y (n_samples,) or (n_samples, n_targets); returned (n_samples,
        n_outputs).
        """
        classes = self.row_classes
        if is_survival(y):
            return ranked_times(y)
        if classes is None:
            settings = {"ensure_2d": False, "ensure_all_finite": False}
            y = check_array(y, dtype=np.float64, input_name="y", **settings)
            if self.query_sizes is not None:
                return np.column_stack([y, self.query_sizes])
            y = y.reshape(len(y), -1)
            if isinstance(self.loss, OfSeveralLevels):  # each has a prediction of y
                return np.repeat(y, len(self.loss.losses), axis=1)
            return y
        label = known_labels(y, classes)
        if self.loss == WrongLabel():
            return targets_of(label, len(classes), self.loss)
        return np.eye(len(classes))[label]  # one column for each class, also for two


def check_data(staged, adapter, X, y, sample_weight=None):
    """The TargetInfo of data, and y; raise if data cannot be fitted.

    Rows of weight zero have the target of another row.
    """
    check_in_memory(X, y)
    if isinstance(X, RowSummary):
        raise TypeError(
            "Stages need the rows, but a RowSummary has only moments of most of them: "
            "pass X and y."
        )
    if type(X).__name__ in LIBRARY_TABLES:
        raise TypeError(
            f"X is a {type(X).__name__}, which folds cannot split by rows: pass its "
            "table as X, its labels as y, and weights and offsets to fit."
        )
    holder, last = copy(staged), last_of(staged.estimator)
    vars(holder).pop("record_", None)  # LightGBM has names of any columns
    name = type(last).__name__
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    check_has_rows(X)
    if last is staged.estimator:  # the first step of a pipeline may take texts
        adapter.check_rows(X)
    validate_data(holder, X, skip_check_array=True)
    if has_sparse_columns(X) and refuses_sparse(staged):
        raise TypeError(
            f"All columns of X are sparse, but {name} needs dense ones: pass "
            "X.sparse.to_dense()."
        )
    has_classes = is_classifier(last)
    if has_classes and shares_of(y) is not None:
        raise ValueError(
            f"y has shares of classes, and {name} takes labels: "
            "TrajectoryEarlyStoppingCV fits it to shares, as weights of rows."
        )
    if adapter.survival:
        y = survival_of(y, adapter)
    else:
        y = validate_target(y, has_classes)
    check_consistent_length(X, y)
    if sample_weight is not None:
        (y,) = replace_weightless_rows(validate_weights(sample_weight, len(y)), y)
    fitted = vars(holder)
    names = {key: fitted[key] for key in NAMES if key in fitted}
    if adapter.ranks and y.size > len(y):
        raise ValueError(
            f"y must have one relevance for each row, got an array of shape {y.shape}."
        )
    if staged.judge is not None and (has_classes or adapter.ranks):
        kind = "classifier" if has_classes else "ranker"
        raise ValueError(f"judge is for regressors, but {name} is a {kind}.")
    if not has_classes:
        if isinstance(adapter.regression_loss(), OfSeveralLevels) and y.size > len(y):
            raise ValueError(
                f"{name} predicts several levels of one target, and y has {y.shape[1]} "
                "columns: fit a model for each."
            )
        loss = adapter.regression_loss() if staged.judge is None else staged.judge
        return TargetInfo(names, loss), y
    if y.size > len(y):
        if not get_tags(staged).classifier_tags.multi_label:
            raise ValueError(
                f"y has several labels per row, but {name} has no probabilities for "
                "them: use a forest, or MultiOutputClassifier with a classifier that "
                "has predict_proba."
            )
        labels = np.arange(y.shape[1])
        return TargetInfo(names, LogLossOfLabels(), labels, is_multilabel=True), y
    check_classification_targets(y)
    classes = np.unique(column_or_1d(y))
    if len(classes) < 2:
        raise ValueError("y has one class, but at least 2 classes are needed.")
    return TargetInfo(names, adapter.classification_loss(), classes), y


def survival_of(y, adapter):
    """Survival times in any form that an adapter takes."""
    return survival_array(y, signed=adapter.survival == "signed times")


def check_enough(y):
    """Raise if there are too few rows for folds."""
    if _num_samples(y) < 2:
        raise ValueError("Folds need at least 2 samples, got n_samples=1.")


def check_has_all(classes, y):
    """Raise if samplers have left no row of some classes."""
    lost = np.setdiff1d(classes, y).tolist()
    if lost:
        raise ValueError(
            "The samplers of the pipeline leave no rows of some classes, "
            f"{', '.join(map(repr, lost))}: they must keep rows of every class."
        )


def check_targets_of_folds(loss, target, folds):
    """Raise if the rows of a fold have no valid targets of the loss, naming the fold.

    ``folds`` are pairs of training rows and held-out rows, of positive weight.
    """
    for number, (fitted, _) in enumerate(folds):
        try:
            loss.check_target(target[fitted])
        except ValueError as error:
            raise ValueError(
                f"In the training rows of fold {number} of cv: {error} Pass other "
                "folds, such as KFold(shuffle=True)."
            ) from None


def find_class_weights(estimator):
    """Parameters of an estimator, and of its parts, that weigh classes, by name."""
    weighing = {}
    for name, value in estimator.get_params().items():
        off = WEIGH_CLASSES.get(name.rpartition("__")[2])
        is_scalar = isinstance(value, str | int | float | None)
        if off is not None and not (is_scalar and value in off):
            weighing[name] = value
    return weighing


def warn_of_settings(adapter, run):
    """Warn of parameters that the estimator's own fit reads and a staged run does not.

    These are its early stopping, its metrics, and parameters that weigh classes in the
    fits alone: those of inner estimators, such as those of bagging, and
    ``class_weight`` of LightGBM's regressor, which weighs values of y.
    """
    name, loss = type(adapter.estimator).__name__, run.info.loss
    settings = adapter.minimising.get_params(deep=False)
    for parameter, off in adapter.early_stopping.items():
        value = settings.get(parameter, off)
        if value not in (off, "auto"):
            warn(
                f"{parameter}={value!r} of {name} is switched off: folds evaluate its "
                "stages, and no rows are set aside.",
                UserWarning,
            )
    unread = adapter.metrics and adapter.unread_metrics(loss, run.main.params)
    for setting in unread:
        warn(
            f"{setting} of {name} is not used: its stages are judged by the "
            f"{loss.name}, or by the criterion of TrajectoryEarlyStoppingCV.",
            UserWarning,
        )
    has_weights = run.info.row_classes is not None
    in_losses = adapter.weighs_losses if has_weights else ()
    for parameter, value in find_class_weights(adapter.estimator).items():
        if parameter not in in_losses:
            warn(
                f"{parameter}={value!r} of {name} weights classes in the fits, but "
                "not in the losses that choose the number of stages: sample_weight, "
                "passed to fit, applies to both.",
                UserWarning,
            )


# ------------------------------------------------------------------ parameters of fit


@dataclass(frozen=True)
class FitParams:
    """Arguments of ``fit`` besides X and y, for the steps of a pipeline."""

    # For the steps before the last, and for the last or the only one.
    before: dict
    last: dict
    # Set by :meth:`check`.
    n_rows: int | None = None
    # The parameter of the last step that is added to the sum of its stages.
    offset: str | None = None
    # Parameters of the last step with a value for every column.
    of_columns: tuple = ()

    def check(self, n_rows):
        """These parameters for ``n_rows`` rows, with valid weights and offsets."""
        before, last = dict(self.before), dict(self.last)
        for params in before, last:
            for name, value in params.items():
                is_weights = name.rpartition("__")[2] == "sample_weight"
                if is_weights and value is not None:
                    params[name] = validate_weights(value, n_rows)
        if not np.any(last.get("sample_weight", 1)):
            raise ValueError("sample_weight is zero on all rows.")
        name = self.offset
        if name is not None:
            shape = np.shape(last[name])
            if len(shape) not in (1, 2) or shape[0] != n_rows:
                raise ValueError(
                    f"{name} must have shape ({n_rows},), or ({n_rows}, n) with a "
                    f"number for each of n outputs or classes, got {shape}."
                )
            settings = {"ensure_2d": False, "input_name": name}
            last[name] = check_array(last[name], dtype=np.float64, **settings)
        return replace(self, before=before, last=last, n_rows=n_rows)

    def rows(self, rows):
        """The parameters of an index of rows: items as long as X are indexed."""
        parts = []
        for params, of_columns in ((self.before, ()), (self.last, self.of_columns)):
            part = dict(params)
            for name, value in self._items_of_rows(params, of_columns):
                part[name] = _safe_indexing(value, rows)
            parts.append(part)
        return replace(self, before=parts[0], last=parts[1], n_rows=len(rows))

    def _items_of_rows(self, params, of_columns=()):
        """Names and values of parameters that are as long as X."""
        for name in params.keys() - {*of_columns}:
            value = params[name]
            if hasattr(value, "__array__") and not hasattr(value, "shape"):
                value = np.asarray(value)
            is_list = isinstance(value, list | tuple)
            length = (len(value),) if is_list else getattr(value, "shape", ())[:1]
            if length == (self.n_rows,):
                yield name, value

    def resample(self, samplers, n_rows):
        """The parameters for the rows that fitted samplers, of names, have made.

        They follow rows that are selected. Rows that are new have none of them, but for
        weights that are all equal: ValueError is raised.
        """
        making = [step for step in samplers if not hasattr(step[1], "sample_indices_")]
        if not making:
            selected = np.arange(self.n_rows)
            for _, sampler in samplers:
                selected = selected[sampler.sample_indices_]
            return self.rows(selected)
        step, sampler = making[0]
        last = dict(self.last)
        for name, value in self._items_of_rows(self.last, self.of_columns):
            if name != "sample_weight" or np.ptp(value):
                raise ValueError(
                    f"{name} has a value for every row, and the step {step!r} "
                    f"({type(sampler).__name__}) creates new rows, which have none: "
                    "leave it out (and class_weight, which becomes such a value), or "
                    "use a sampler that selects rows, such as RandomUnderSampler or "
                    "RandomOverSampler."
                )
            last[name] = np.full(n_rows, value[0])
        return replace(self, last=last, n_rows=n_rows)


def params_by_step(pipeline, params):
    """Parameters for the steps before the last of a pipeline, and for the last."""
    name, last = pipeline.steps[-1]
    if get_config()["enable_metadata_routing"]:
        before = replace_last_step(pipeline, "passthrough").get_metadata_routing()
        names = before.consumes("fit", params)
        # Under the names that the last step has for them.
        fit = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=pipeline).add(last=last, method_mapping=fit)
        of_last = router.route_params(caller="fit", params=params)["last"].fit
        return {key: params[key] for key in names}, dict(of_last)
    before, of_last = {}, {}
    for key, value in params.items():
        step, separator, parameter = key.partition("__")
        if separator and step != name:
            before[key] = value
        else:
            of_last[parameter or key] = value
    weights = of_last.get("sample_weight")
    for step, transformer in pipeline.steps[:-1]:
        if hasattr(transformer, "fit_resample"):  # other rows are behind it
            break
        for parameter, values in weights_for(transformer, weights).items():
            before.setdefault(f"{step}__{parameter}", values)
    return before, of_last
