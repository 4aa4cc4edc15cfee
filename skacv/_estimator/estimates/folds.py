"""Folds of ``cv``: the splitter, what is passed on to it, and the folds of a fit."""

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
from ..collections import is_collection
from ..data.checks import validated_groups
from ..data.training_data import positions
from .left_out import folds_of


@dataclass(frozen=True, eq=False)
class ShuffledFolds:
    """Random folds of rows, the default.

    Rows are often sorted, by the target or by a column; held-out rows of consecutive
    folds would then differ from the training rows.

    Attributes
    ----------
    stratified : bool
        Whether every fold has its share of each class.
    rows : ndarray of int or None
        Rows that are in the folds; None is all of them.
    n_splits : int
        Fewer where there are fewer rows, or where no class, or not so many groups,
        have as many.
    has_groups : bool
        Whether rows of a group stay together.
    """

    stratified: bool
    rows: np.ndarray | None = None
    n_splits: int = 5
    has_groups: bool = False

    @classmethod
    def of(cls, estimator, sample_weight):
        """Folds of the rows of positive weight, stratified for a classifier."""
        rows = None
        # Rows of a collection that weigh nothing count for nothing in their blocks.
        if sample_weight is not None and not is_collection(sample_weight):
            rows = np.flatnonzero(np.asarray(sample_weight) > 0)
        return cls(is_classifier(estimator), rows)

    def split(self, X, y, groups=None):
        """Training rows and held-out rows, the same for the same data."""
        y = np.asarray(y)
        rows = np.arange(len(y)) if self.rows is None else self.rows
        # Rows with several labels have no classes to be stratified by.
        stratified = self.stratified and y.size == len(y)
        y = y[rows].ravel() if stratified else np.zeros(len(rows), int)
        if self.has_groups:
            splits = self._splits_of_groups(y, groups[rows])
        else:
            splits = self._splitter(y, stratified).split(rows, y)
        for fitted, held_out in splits:
            yield rows[fitted], rows[held_out]

    def get_n_splits(self, X=None, y=None, groups=None):
        """Largest number of folds."""
        return self.n_splits

    def with_groups(self):
        """The same splitter, with the rows of a group together."""
        return replace(self, has_groups=True)

    def _splits_of_groups(self, y, groups):
        n_groups = len(np.unique(groups))
        if n_groups < 2:
            raise ValueError("groups must be at least two, got one.")
        splitter = StratifiedGroupKFold(
            min(self.n_splits, n_groups), shuffle=True, random_state=0
        )
        with warnings.catch_warnings():
            # Classes may have fewer rows than there are folds.
            warnings.filterwarnings("ignore", "The least populated class")
            yield from splitter.split(y, y, groups)

    def _splitter(self, y, stratified):
        largest = np.unique(y, return_counts=True)[1].max() if stratified else 1
        if largest > 1:
            n_splits = min(self.n_splits, int(largest))
            return StratifiedKFold(n_splits, shuffle=True, random_state=0)
        return KFold(min(self.n_splits, len(y)), shuffle=True, random_state=0)


def splitter_of(estimator, y, params):
    """The splitter of an estimator's ``cv``, and the parameters of its ``split``.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
    params : dict
        What ``fit`` was passed besides X, y and sample_weight.

    Returns
    -------
    splitter : cross-validation splitter or None
    split_params : dict
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
            f"Besides X and y it takes {takes}."
        )
    if cv is None and params:
        raise ValueError(f"fit passes {', '.join(params)} on to cv, but cv=None.")
    if cv is None:
        return None, {}
    is_of_classes = is_classifier(estimator)
    if "groups" in params:
        groups = validated_groups(params["groups"], _num_samples(y))
        params = {**params, "groups": groups}
        cv = _for_groups(cv, is_of_classes)
    splitter = check_cv(cv, y, classifier=is_of_classes)
    if _takes_groups(splitter) and "groups" not in params:
        raise ValueError(
            f"cv={cv!r} needs groups: pass fit(X, y, groups=...). Inside "
            "cross_val_score or GridSearchCV they arrive with "
            "sklearn.set_config(enable_metadata_routing=True) and "
            "params={'groups': groups}."
        )
    return splitter, params


def groups_of(split_params):
    """The group of every sample, by number, if a splitter is passed groups.

    Parameters
    ----------
    split_params : dict
        As :func:`splitter_of` returns them.

    Returns
    -------
    ndarray of int, shape (n_samples,), or None
    """
    groups = split_params.get("groups")
    if groups is None:
        return None
    return np.unique(groups, return_inverse=True)[1]


def _takes_groups(splitter):
    """Whether a splitter says that it needs groups."""
    if not hasattr(splitter, "get_metadata_routing"):
        return False
    return bool(get_routing_for_object(splitter).split.requests.get("groups"))


def _for_groups(cv, is_of_classes):
    """The splitter of ``cv`` where ``fit`` is passed groups.

    Raises
    ------
    ValueError
        If it would ignore them.
    """
    if isinstance(cv, Integral):
        return ShuffledFolds(is_of_classes, None, int(cv), has_groups=True)
    if hasattr(cv, "with_groups"):
        return cv.with_groups()
    splitter = check_cv(cv)
    # A splitter that says nothing of metadata may use them.
    if hasattr(splitter, "get_metadata_routing") and not _takes_groups(splitter):
        said = cv if hasattr(cv, "split") else "an iterable of splits"
        raise ValueError(
            f"fit was passed groups, which cv={said} ignores: take "
            "cv=GroupKFold() or another splitter of groups, or a number of folds."
        )
    return cv


def asked_folds(estimator, X, y, samples, params):
    """The folds of ``cv`` as places among the samples, none without ``cv``; groups.

    Parameters
    ----------
    params : dict
        What ``fit`` was passed besides X, y and sample_weight.

    Returns
    -------
    folds : list of (ndarray of int, ndarray of int)
    groups : ndarray of int, shape (n_samples,), or None
        As :func:`groups_of` numbers them.
    """
    splitter, split_params = splitter_of(estimator, y, params)
    if splitter is None:
        return [], None
    splits = splitter.split(X, y, **split_params)
    folds = folds_of(splits, positions(samples.rows, samples.n_samples))
    return folds, groups_of(split_params)


# The method ``get_metadata_routing`` of estimators with a parameter ``cv``.
def routing_of(self: Any) -> Any:
    """Metadata routing: fit passes on to the split of the splitter ``cv``."""
    mapping = MethodMapping().add(caller="fit", callee="split")
    router = MetadataRouter(owner=self).add_self_request(self)
    return router.add(splitter=check_cv(self.cv), method_mapping=mapping)
