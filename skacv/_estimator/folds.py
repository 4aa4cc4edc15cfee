"""Folds of ``cv``: the splitter, what is passed on to it, and the folds of a fit."""

from dataclasses import dataclass

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)

from .collections import is_collection
from .left_out import folds_of


@dataclass(frozen=True, eq=False)
class ShuffledFolds:
    """Folds of rows drawn at random: what is taken where a user has named none.

    Rows often come sorted, by the target or by a column; folds of consecutive rows
    would then be judged by rows unlike those that they are fitted on.

    Attributes
    ----------
    stratified : bool
        Whether every fold has its share of each class.
    rows : ndarray of int or None
        Rows that are in the folds; None is all of them.
    n_splits : int
        Fewer where there are fewer rows, or where no class has so many.
    """

    stratified: bool
    rows: np.ndarray | None = None
    n_splits: int = 5

    @classmethod
    def of(cls, estimator, sample_weight):
        """Folds of the rows of positive weight, stratified for a classifier."""
        rows = None
        # Rows of a collection that weigh nothing count for nothing in their blocks.
        if sample_weight is not None and not is_collection(sample_weight):
            rows = np.flatnonzero(np.asarray(sample_weight) > 0)
        return cls(is_classifier(estimator), rows)

    def split(self, X, y, groups=None):
        """Rows to fit on and rows to judge by, the same for the same data."""
        y, rows = np.asarray(y), self.rows
        if rows is None:
            yield from self._splitter(y).split(y, y)
            return
        for fitted, judged in self._splitter(y[rows]).split(rows, y[rows]):
            yield rows[fitted], rows[judged]

    def get_n_splits(self, X=None, y=None, groups=None):
        """How many folds there are at most."""
        return self.n_splits

    def _splitter(self, y):
        largest = np.unique(y, return_counts=True)[1].max() if self.stratified else 1
        if largest > 1:
            n_splits = min(self.n_splits, int(largest))
            return StratifiedKFold(n_splits, shuffle=True, random_state=0)
        return KFold(min(self.n_splits, len(y)), shuffle=True, random_state=0)


def splitter_of(estimator, y, params):
    """The splitter of an estimator's ``cv``, and what its ``split`` is to get.

    Parameters
    ----------
    estimator : estimator with a parameter ``cv``
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
    params : dict
        What ``fit`` was passed besides X, y and sample_weight.

    Returns
    -------
    splitter : cross-validation splitter or None
    split_params : dict
    """
    cv = estimator.cv
    if get_config()["enable_metadata_routing"]:
        params = process_routing(estimator, "fit", **params).splitter.split
    elif set(params) - {"groups"}:
        unknown = ", ".join(sorted(set(params) - {"groups"}))
        raise TypeError(f"fit() got unexpected arguments: {unknown}.")
    if cv is None and params:
        raise ValueError(f"fit passes {', '.join(params)} on to cv, but cv=None.")
    if cv is None:
        return None, {}
    return check_cv(cv, y, classifier=is_classifier(estimator)), params


class RoutesToFolds:
    """An estimator whose ``fit`` passes metadata on to the splitter of ``cv``."""

    def _folds(self, X, y, data, params):
        """The folds of ``cv``, none without one."""
        splitter, split_params = splitter_of(self, data.y, params)
        if splitter is None:
            return []
        return folds_of(splitter, X, y, data, split_params)

    def get_metadata_routing(self):
        """Metadata routing of this object: fit passes on to the splitter's split.

        Returns
        -------
        MetadataRouter
        """
        mapping = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(splitter=check_cv(self.cv), method_mapping=mapping)
