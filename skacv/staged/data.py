"""Data of estimators fitted in stages, before a run."""

from copy import copy

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_array, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, validate_data

from .._compat import _num_samples, check_in_memory, class_weights
from .._estimator.data.checks import (
    has_sparse_columns,
    validated_target,
    validated_weights,
)
from .._estimator.data.row_summary import RowSummary
from .._estimator.prediction.decisions import known_labels, targets_of
from .growing import last_of, prefix_of
from .kind import response_of
from .losses import LogLoss, WrongLabel, regression_loss


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
    holder, last = copy(staged), last_of(staged.estimator)
    vars(holder).pop("estimator_", None)  # LightGBM has names of any columns
    if y is None:
        validate_data(holder, X, y)  # which says so
    validate_data(holder, X, skip_check_array=True)
    if has_sparse_columns(X) and not get_tags(staged).input_tags.sparse:
        raise TypeError(
            f"All columns of X are sparse, and {type(last).__name__} takes dense ones: "
            "pass X.sparse.to_dense()."
        )
    check_consistent_length(X, y)
    y = validated_target(y, is_classifier(staged))
    names = ("n_features_in_", "feature_names_in_")
    found = {name: vars(holder)[name] for name in names if name in vars(holder)}
    if is_classifier(staged):
        check_classification_targets(y)
        column_or_1d(y)  # several labels per row are not supported
        has_probabilities = response_of(last) == "predict_proba"
        found["classes_"] = np.unique(np.asarray(y))
        if len(found["classes_"]) < 2:
            raise ValueError("y has one class, and at least 2 classes are needed.")
        found["_loss"] = LogLoss() if has_probabilities else WrongLabel()
    else:
        found["_loss"] = regression_loss(last)
    return found


def with_weights(estimator, params, n_rows):
    """Parameters of ``fit`` with the weights of rows as an array, validated."""
    names = {"sample_weight", f"{prefix_of(estimator)}sample_weight"}
    weights = {
        name: validated_weights(params[name], n_rows)
        for name in names & params.keys()
        if params[name] is not None
    }
    if not all(each.any() for each in weights.values()):
        raise ValueError("sample_weight is zero on all rows.")
    return {**params, **weights}


def weights_of(estimator, y, known, params):
    """Weights of the rows in mean losses, including class weights.

    ``params`` are those that :func:`with_weights` gives.
    """
    name = f"{prefix_of(estimator)}sample_weight"
    weights = params.get("sample_weight", params.get(name))
    y = np.asarray(y)
    weights = np.ones(len(y)) if weights is None else weights
    asked = last_of(estimator).get_params(deep=False).get("class_weight")
    if "classes_" in known and asked is not None:
        asked = "balanced" if isinstance(asked, str) else asked
        classes, label = np.unique(y, return_inverse=True)
        weights = weights * class_weights(asked, classes, y, weights)[label]
    return weights


def check_enough(y):
    """Raise if there are too few rows for folds."""
    if _num_samples(y) < 2:
        raise ValueError("Folds need at least 2 samples, got n_samples=1.")


def target_of(y, known):
    """Targets as the loss needs them, (n_samples, n_outputs)."""
    if "classes_" not in known:
        settings = {"ensure_2d": False, "ensure_all_finite": False, "input_name": "y"}
        return check_array(y, dtype=np.float64, **settings).reshape(len(y), -1)
    label, n_classes = known_labels(y, known["classes_"]), len(known["classes_"])
    if known["_loss"] == LogLoss():  # which has the probabilities of both of two
        return np.eye(n_classes)[label]
    return targets_of(label, n_classes, known["_loss"])
