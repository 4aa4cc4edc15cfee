"""``class_weight`` of a stopping estimator: weights of classes as weights of rows."""

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from .._compat import class_weights
from .._estimator.collections import is_collection
from .._estimator.data.labels import check_class_weights
from ..staged import Staged
from ..staged.data import find_class_weights
from ..staged.fits import last_of


def check_weighs_classes(of_classes, y):
    """Raise if weights of classes cannot be weights of the rows."""
    if not of_classes:
        raise ValueError(
            "class_weight is for classification, but the members are no classifiers: "
            "pass sample_weight to fit."
        )
    if is_collection(y):
        raise ValueError(
            "class_weight needs y in memory, which stays on its workers with Dask "
            "input: set it in the members, such as "
            "TrajectoryLogisticRegression('path', class_weight='balanced')."
        )
    if np.ndim(y) == 2 and np.shape(y)[1] > 1:
        raise ValueError(
            f"class_weight needs one label per row, but y has {np.shape(y)[1]} "
            "columns: pass sample_weight to fit."
        )


def check_members_are_weighed_once(candidates):
    """Raise if members weigh classes themselves, or take no weights of rows."""
    for candidate in candidates:
        member, estimator = candidate.member, candidate.model
        if isinstance(estimator, Staged):
            estimator = last_of(estimator.estimator)
        for name, value in find_class_weights(estimator).items():
            raise ValueError(
                f"Classes are weighted twice, by class_weight and by {name}={value!r} "
                f"of the member {member!r}: set one of them."
            )
        if not has_fit_parameter(estimator, "sample_weight"):
            raise ValueError(
                "class_weight needs members whose fit accepts sample_weight, but that "
                f"of {member!r} ({type(estimator).__name__}) does not."
            )


def weigh_by_class(class_weight, y, sample_weight=None):
    """Weights of rows, times those of their classes; "balanced" makes totals equal.

    ValueError is raised if ``class_weight`` names labels that y does not have, or
    weights are negative, or positive for fewer than two classes.

    Shapes: y (n_samples,) or (n_samples, 1), returned (n_samples,).
    """
    y = np.asarray(y).ravel()
    weights = np.ones(len(y)) if sample_weight is None else sample_weight.astype(float)
    # Rows of weight zero count as absent.
    present = weights > 0
    classes, label = np.unique(y[present], return_inverse=True)
    by_class = class_weights(class_weight, classes, y[present], weights[present])
    check_class_weights(by_class, classes)
    weights[present] *= by_class[label]
    return weights
