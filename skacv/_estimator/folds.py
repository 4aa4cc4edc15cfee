"""What every fit that records a trajectory does, whatever runs."""

from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)

from .left_out import folds_of


class RecordingFit:
    """Folds of ``cv`` with their metadata, and fitted attributes put in at the end."""

    def _folds(self, X, y, data, params):
        """The folds of ``cv``, none without one."""
        splitter, split_params = self._splitter(data.y, params)
        if splitter is None:
            return []
        return folds_of(splitter, X, y, data, split_params)

    def _splitter(self, y, params):
        """The splitter of ``cv``, None without one, and what ``split`` is to get.

        Parameters
        ----------
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        params : dict
            What ``fit`` was passed besides X, y and sample_weight.
        """
        if get_config()["enable_metadata_routing"]:
            params = process_routing(self, "fit", **params).splitter.split
        elif set(params) - {"groups"}:
            unknown = ", ".join(sorted(set(params) - {"groups"}))
            raise TypeError(f"fit() got unexpected arguments: {unknown}.")
        if self.cv is None and params:
            raise ValueError(f"{', '.join(params)} are for the splitter, but cv=None.")
        if self.cv is None:
            return None, {}
        return check_cv(self.cv, y, classifier=is_classifier(self)), params

    def get_metadata_routing(self):
        """Metadata routing of this object: fit passes on to the splitter's split.

        Returns
        -------
        MetadataRouter
        """
        mapping = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(splitter=check_cv(self.cv), method_mapping=mapping)

    @staticmethod
    def _share_work(candidates, X, y):
        """Let fits to the same data share what they would all do: nothing here.

        Parameters
        ----------
        candidates : list of estimators of this class
        X, y : as passed to fit
        """

    def _release(self):
        """Let go of what only further updates, or fits to the same data, would need."""

    def _replace_fitted(self, attributes):
        """Put new fitted attributes in the place of all former ones."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        vars(self).update(attributes)
