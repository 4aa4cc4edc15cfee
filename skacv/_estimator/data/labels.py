"""Labels of classes: as targets of a loss, and from decisions or probabilities."""

import numpy as np
from scipy.special import expit, softmax
from sklearn.utils.multiclass import check_classification_targets


def classes_of(estimator, y):
    """The labels of the classes, and the number of every row's class."""
    check_classification_targets(y)
    classes, label = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs samples of at least two classes (with "
            f"positive sample_weight), but y has only one class: {classes[0]}."
        )
    return classes, label


def decision_of(predictor):
    """Decisions (n_samples,) of two classes, otherwise (n_samples, n_classes)."""
    return predictor[:, 0] if predictor.shape[1] == 1 else predictor


def probabilities_of(decision):
    """Probabilities of the classes, (n_samples, n_classes), by log odds."""
    if decision.ndim == 1:
        return np.stack([expit(-decision), expit(decision)], axis=1)
    return softmax(decision, axis=1)


def label_of(decision, classes):
    """Predicted labels; with two classes the second one for positive decisions."""
    if decision.ndim == 1:
        return classes[(decision > 0).astype(int)]
    return classes[decision.argmax(axis=1)]


def indicator_of(probabilities):
    """Which of several labels a row has: those that are more likely than not.

    Shapes: probabilities and returned (n_samples, n_labels).
    """
    return (probabilities > 0.5).astype(np.int64)


def known_labels(y, classes):
    """The number of every row's class, of classes that are known."""
    y = y.ravel()
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(f"y has labels unseen in fit: {unknown.tolist()}.")
    return np.searchsorted(classes, y)


def targets_of(label, n_classes, loss):
    """Labels 0, 1, ... as the targets of a loss, (n_rows, n_outputs)."""
    negative, positive = loss.labels
    # Two classes: the second against the first. Several: each against the others.
    classes = [1] if n_classes == 2 else range(n_classes)
    return np.where(label[:, None] == np.array(classes), positive, negative)


def check_class_weights(weights, classes):
    """Raise if fewer than two classes have a positive weight."""
    given = dict(zip(classes.tolist(), weights.tolist()))
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(
            f"class_weight must be finite and nonnegative, but the weights are {given}."
        )
    if np.count_nonzero(weights) < 2:
        raise ValueError(
            "class_weight must be positive for at least two classes, but the weights "
            f"are {given}."
        )
