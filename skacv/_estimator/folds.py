"""Folds of ``cv``: the splitter, what is passed on to it, and the folds of a fit."""

from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)

from .left_out import folds_of


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
