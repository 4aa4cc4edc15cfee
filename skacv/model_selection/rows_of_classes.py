"""Shares of classes as y: every row once for each class, with its share as weight.

So all members that take weights are fitted to shares by their own losses. The copies of
a row are a group, which folds hold out together. Their mean loss is the cross entropy.
"""

from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Integral

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import has_fit_parameter

from .._compat import _safe_indexing
from .._estimator.collections import is_collection
from .._estimator.data.checks import (
    check_has_rows,
    frame_of_arrow,
    target_array,
    validate_groups,
    validate_weights,
)
from .._estimator.data.row_summary import RowSummary
from .._estimator.data.shares import ClassShares, shares_of
from .._estimator.delegation import last_step
from .._estimator.estimates.fitted_state import HoldsRecord
from .._estimator.estimates.folds import ShuffledFolds, pairs_of, row_numbers
from .._estimator.estimates.readers import ESTIMATES
from ..staged import Staged
from ..staged.fits import last_of
from .blend import Blend
from .data import task_and_members


class SplitsOfCopies(GroupKFold):
    """Splits of rows as those of their copies, which stay together in any groups.

    Like its base class it asks for groups where metadata are routed."""

    def __init__(self, splits):
        self.splits = splits

    def split(self, X=None, y=None, groups=None):
        """Training rows and held-out rows of every fold."""
        return iter(self.splits)

    def get_n_splits(self, X=None, y=None, groups=None):
        """Number of folds."""
        return len(self.splits)

    def with_groups(self):
        """A splitter that keeps the rows of a group together."""
        return self


@dataclass(frozen=True, eq=False)
class RowsOfClasses:
    """Rows with shares of classes, once for each class of which they have a share."""

    shares: ClassShares
    # The row that a copy is of, and the number of its class, (n_copies,).
    rows: np.ndarray
    labels: np.ndarray

    @classmethod
    def of(cls, owner, X, y):
        """Those of a fit of a stopping estimator; None if y has anything else."""
        if y is None or is_collection(X) or isinstance(X, RowSummary):
            return None
        values = target_array(frame_of_arrow(y))
        if values.dtype.kind != "f" or (values == np.trunc(values)).all():
            return None
        task = owner.task
        if owner.estimator is not None:
            task, _ = task_and_members(owner, X, y)
        shares = shares_of(y) if task == "classification" else None
        if shares is None:
            return None
        return cls(shares, *np.nonzero(shares.values))

    def fit(self, owner, X, params):
        """A clone of a stopping estimator, fitted to the copies."""
        check_takes_copies(owner)
        check_has_rows(X)
        X, n_rows = frame_of_arrow(X), len(self.shares.values)
        check_consistent_length(X, self.shares.values)
        weights = validate_weights(params.get("sample_weight"), n_rows)
        self.shares.check_has_all(weights)
        model = copy(owner)
        if isinstance(owner.class_weight, str):  # "balanced"
            totals = weights @ self.shares.values
            balanced = totals.sum() / (len(totals) * totals)
            model.class_weight = dict(zip(self.shares.classes.tolist(), balanced))
        groups = params.get("groups")
        if groups is not None:
            groups = validate_groups(groups, n_rows)
        of_rows = self.rows if groups is None else groups[self.rows]
        if not (owner.cv is None or isinstance(owner.cv, Integral)):
            model.cv = self._splits(owner.cv, X, groups)
        elif get_config()["enable_metadata_routing"]:
            # Splitters that are drawn later do not ask for groups.
            folds = ShuffledFolds(True, None, owner.cv or ShuffledFolds.n_splits, True)
            model.cv = SplitsOfCopies(list(folds.split(None, self.labels, of_rows)))
        of_copies = {
            name: _safe_indexing(value, self.rows)
            if np.shape(value)[:1] == (n_rows,)
            else value
            for name, value in params.items()
        }
        of_copies["groups"] = of_rows
        shares = self.shares.values[self.rows, self.labels]
        y = self.shares.classes[self.labels]
        X = _safe_indexing(X, self.rows)
        fitted = clone(model)._fit(X, y, of_copies, factors=shares, originals=self.rows)
        for kept in (fitted.estimator_, *fitted.members_.values()):
            forget_labels(kept)
        return fitted

    def _splits(self, cv, X, groups):
        """The splits of a splitter, or a list, as those of the copies."""
        cv = cv if hasattr(cv, "split") else pairs_of(cv)
        labels = self.shares.classes[self.shares.likeliest]
        splitter, n_rows = check_cv(cv, labels, classifier=True), len(labels)
        first = np.searchsorted(self.rows, np.arange(n_rows + 1))
        copies = [np.arange(*ends) for ends in pairwise(first)]
        splits = []
        for fold in splitter.split(X, labels, groups):
            parts = (row_numbers(part, n_rows, "A fold of cv") for part in fold)
            # A row may be drawn several times.
            copied = (np.concatenate([copies[row] for row in part]) for part in parts)
            splits.append(tuple(copied))
        return SplitsOfCopies(splits)

    def held_out_of(self, fitted):
        """Held-out predictions of the rows, which all copies of a row have in common.

        Shapes: returned (n_rows, n_classes)."""
        _, first = np.unique(self.rows, return_index=True)
        return fitted.held_out_prediction_[first]


def forget_labels(kept):
    """Let a fitted model have no prediction sets: shares of rows are no labels."""
    model, _ = last_step(kept)
    if isinstance(model, HoldsRecord):
        record = model.record_
        model.record_ = replace(record, more={**record.more, "has_shares": True})
    if isinstance(model, Blend):
        model._held_out = None
        for member in model.members_.values():
            forget_labels(member)


def check_takes_copies(owner):
    """Raise if a stopping estimator cannot be fitted to the copies of rows."""
    if owner.criterion not in ("auto", "cv"):
        raise ValueError(
            "y has shares of classes, whose cross entropy is estimated by folds: "
            f"criterion must be 'auto' or 'cv', not {owner.criterion!r}. For leave-one-"
            "out and the memory matrix fit TrajectoryLogisticRegression by itself, and "
            "choose among its iterates."
        )
    for name, member in owner._members():
        model = last_of(member.estimator) if isinstance(member, Staged) else member
        if not has_fit_parameter(model, "sample_weight"):
            raise ValueError(
                "y has shares of classes, which stand for weights of rows, but the "
                f"member {name!r} ({type(model).__name__}) takes none."
            )
        own_cv = ESTIMATES["cv"].setting(member)
        if not (own_cv is None or own_cv is False or isinstance(own_cv, Integral)):
            raise ValueError(
                "y has shares of classes, for which members are fitted to copies of "
                f"the rows: set cv of {type(owner).__name__}, not of its member "
                f"{name!r}."
            )
