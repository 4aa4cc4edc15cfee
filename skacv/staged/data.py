"""Data of estimators fitted in stages, before a run."""

from copy import copy

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_array, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, validate_data

from .._compat import _num_samples, check_in_memory, refuses_sparse
from .._estimator.data.checks import (
    has_sparse_columns,
    validated_target,
)
from .._estimator.data.row_summary import RowSummary
from .._estimator.prediction.decisions import known_labels, targets_of
from .._warnings import warn
from .growing import last_of
from .kind import response_of
from .losses import LogLoss, LogLossOfLabels, WrongLabel, regression_loss

# Tables of CatBoost, XGBoost and LightGBM.
OF_LIBRARIES = "Pool", "DMatrix", "QuantileDMatrix", "Dataset"
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


def known_of(staged, X, y):
    """Fitted attributes about the data, known before the run.

    Raises
    ------
    TypeError, ValueError
        If the estimator does not accept the data.
    """
    check_in_memory(X, y)
    if isinstance(X, RowSummary):
        raise TypeError(
            "Stages are fitted to rows, and a RowSummary has moments of most of "
            "them: pass X and y."
        )
    if type(X).__name__ in OF_LIBRARIES:
        raise TypeError(
            f"X is a {type(X).__name__}, of which folds cannot take some rows: pass "
            "its table as X, its labels as y, and weights and offsets to fit."
        )
    holder, last = copy(staged), last_of(staged.estimator)
    vars(holder).pop("estimator_", None)  # LightGBM has names of any columns
    if y is None:
        validate_data(holder, X, y)  # which says so
    validate_data(holder, X, skip_check_array=True)
    if has_sparse_columns(X) and refuses_sparse(staged):
        raise TypeError(
            f"All columns of X are sparse, and {type(last).__name__} takes dense ones: "
            "pass X.sparse.to_dense()."
        )
    check_consistent_length(X, y)
    y = validated_target(y, is_classifier(staged))
    names = ("n_features_in_", "feature_names_in_")
    found = {name: vars(holder)[name] for name in names if name in vars(holder)}
    found["_is_multilabel"] = is_classifier(staged) and y.size > len(y)
    if not is_classifier(staged):
        found["_loss"] = regression_loss(staged._kind().minimising)
    elif found["_is_multilabel"]:
        check_takes_labels(staged)
        found |= {"classes_": np.arange(y.shape[1]), "_loss": LogLossOfLabels()}
    else:
        check_classification_targets(y)
        has_probabilities = response_of(last) == "predict_proba"
        found["classes_"] = np.unique(column_or_1d(y))
        if len(found["classes_"]) < 2:
            raise ValueError("y has one class, and at least 2 classes are needed.")
        found["_loss"] = LogLoss() if has_probabilities else WrongLabel()
    return found


def check_takes_labels(staged):
    """Raise where an estimator has no probabilities of several labels in a row."""
    if not get_tags(staged).classifier_tags.multi_label:
        name = type(last_of(staged.estimator)).__name__
        raise ValueError(
            f"y has several labels for each row, and {name} has no probabilities of "
            "them: take a forest, or MultiOutputClassifier of a classifier with "
            "predict_proba."
        )


def weights_of(kind, y, known, sample_weight):
    """Weights of the rows in mean losses, including class weights.

    Parameters
    ----------
    kind : Kind
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
    known : dict
        As :func:`known_of` returns it.
    sample_weight : ndarray of shape (n_samples,) or None
        What the estimator is fitted with.

    Returns
    -------
    ndarray of shape (n_samples,)
    """
    y = np.asarray(y)
    weights = np.ones(len(y)) if sample_weight is None else sample_weight
    if "classes_" not in known or known["_is_multilabel"]:
        return weights
    classes, label = np.unique(y, return_inverse=True)
    by_class = kind.class_weights(classes, y.ravel(), weights)
    return weights * by_class[label.ravel()]


def weighing_classes(estimator):
    """The parameters of an estimator that weigh classes, those of its parts included.

    Returns
    -------
    dict
        Their values, which do weigh classes.
    """
    weighing = {}
    for name, value in estimator.get_params().items():
        off = WEIGH_CLASSES.get(name.rpartition("__")[2])
        is_plain = isinstance(value, str | int | float | None)
        if off is not None and not (is_plain and value in off):
            weighing[name] = value
    return weighing


def warn_of_class_weights(kind, is_multilabel):
    """Warn of parameters that weigh classes in the fits alone.

    The early stopping of XGBoost and LightGBM does not count them either. Parameters of
    estimators inside of others, such as those of bagging, are among them, and
    ``class_weight`` of LightGBM's regressor, whose classes are the values of y.
    """
    weighs = is_classifier(kind.estimator) and not is_multilabel
    weighed = kind.weighs_losses if weighs else ()
    for name, value in weighing_classes(kind.estimator).items():
        if name not in weighed:
            warn(
                f"{name}={value!r} of {type(kind.estimator).__name__} weighs classes "
                "in the fits, but not in the losses that choose the number of stages: "
                "sample_weight, passed to fit, weighs both.",
                UserWarning,
            )


def check_enough(y):
    """Raise if there are too few rows for folds."""
    if _num_samples(y) < 2:
        raise ValueError("Folds need at least 2 samples, got n_samples=1.")


def target_of(y, known):
    """Targets as the loss needs them, (n_samples, n_outputs)."""
    if "classes_" not in known or known["_is_multilabel"]:
        settings = {"ensure_2d": False, "ensure_all_finite": False, "input_name": "y"}
        return check_array(y, dtype=np.float64, **settings).reshape(len(y), -1)
    label, n_classes = known_labels(y, known["classes_"]), len(known["classes_"])
    if known["_loss"] == LogLoss():  # which has the probabilities of both of two
        return np.eye(n_classes)[label]
    return targets_of(label, n_classes, known["_loss"])
