"""A trial of the default members on a sample of rows, before they run on all."""

import warnings
from collections import defaultdict
from contextlib import suppress
from numbers import Integral

import numpy as np
from sklearn.base import clone, is_classifier

from .._compat import CALLBACKS, _num_samples, _safe_indexing, is_foreign
from .._estimator.data.checks import validated_groups
from .._estimator.estimates.folds import ShuffledFolds
from ..risk.held_out_rows import drawn_units
from .optimism import Uncorrected

# Rows of a trial: a twentieth of all, from the first number to the second. The weights
# of the members are found within a tenth or two from as many.
ROWS_OF_TRIAL = 1000, 2000
SHARE_OF_ROWS = 0.05
# Rows from which a trial takes a small part of the time that it may save.
FEWEST_ROWS = 8000
# A member of smaller weight moves predictions by less than a tenth of what it differs
# from the other members, and squared errors by a hundredth of the square.
LEAST_WEIGHT = 0.1
# Rows of each class that a sample has to have.
ROWS_OF_CLASS = 10
# The share of a time limit that a trial may take.
SHARE_OF_TIME = 0.1
WITHOUT_WEIGHT = "no weight in a trial on some of the rows"


def weights_in_trial(search):
    """The largest weight that each default member may have, by a blend of a sample.

    It is the mean weight over bootstrap draws of held-out rows, and its standard error
    more. Members that a trial says nothing of have weight one: all, where the sample
    lacks classes, or where ``cv`` or metadata cannot be those of a sample.
    """
    owner, params, y = search.owner, search.params, np.asarray(search.y)
    weights = defaultdict(lambda: 1.0)
    has_own_folds = not isinstance(owner.cv, Integral | None)
    has_metadata = bool(params.keys() - {"sample_weight", "groups"})
    if has_own_folds or has_metadata or is_foreign(search.passed_X):
        return weights
    rows = drawn_rows(search)
    if rows is None:
        return weights
    if search.of_classes and y.size == len(y):
        counts = np.unique(y[rows], return_counts=True)[1]
        if len(counts) < len(np.unique(y)) or counts.min() < ROWS_OF_CLASS:
            return weights
    # Two folds take half the time of five, and hold out every row as well.
    trial = clone(owner).set_params(
        verbose=0, cv=ShuffledFolds(search.of_classes, n_splits=2)
    )
    if owner.time_limit is not None:
        trial.set_params(time_limit=SHARE_OF_TIME * owner.time_limit)
    if is_classifier(trial) and trial.class_weight is not None:
        trial.set_params(class_weight=None)  # weights of rows have those of classes
    vars(trial).pop(CALLBACKS, None)
    trial._is_trial = True
    of_rows = {name: _safe_indexing(values, rows) for name, values in params.items()}
    held_out = type(search)(trial, _safe_indexing(search.X, rows), y[rows], of_rows)
    with warnings.catch_warnings(action="ignore"):
        held_out.choose()
        with suppress(Uncorrected):  # its time is over
            weights.update(held_out.compared.largest_weights(held_out.rng))
    return weights


def drawn_rows(search):
    """Indices of the rows of a trial; None if they would be of one group.

    They are rows of positive weight, of whole groups where at least two of these are as
    many rows; of some groups that are larger, rows are drawn as if they had none.
    """
    counted, groups = np.arange(_num_samples(search.X)), None
    if "sample_weight" in search.params:
        counted = np.flatnonzero(search.params["sample_weight"])
    if "groups" in search.params:
        labels = validated_groups(search.params["groups"], _num_samples(search.X))
        groups = np.unique(labels[counted], return_inverse=True)[1]
    n_drawn = int(np.clip(SHARE_OF_ROWS * len(counted), *ROWS_OF_TRIAL))
    for units in (groups, None):
        rows, _ = drawn_units(len(counted), units, n_drawn)
        if groups is None or len(np.unique(groups[rows])) > 1:
            return counted[rows]
    return None
