"""The splits of ``cv``, drawn once for all candidates and all stages of their runs.

Drawn anew they would compare candidates on other rows, and the step, which is
stable on all folds, would change in the middle of a run.
"""

from dataclasses import dataclass

from sklearn import get_config
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import get_routing_for_object

from .._estimator.collections import is_collection
from .._estimator.data.row_summary import RowSummary
from .._estimator.estimates.folds import splitter_of
from .._estimator.estimates.readers import ESTIMATES


@dataclass(frozen=True, eq=False)
class DrawnSplits:
    """A splitter that has drawn, in the place of the one that would draw again.

    Attributes
    ----------
    cv : int, splitter or iterable
        What it stands for; metadata are requested as that requests them.
    splits : list of (ndarray of int, ndarray of int)
    """

    cv: object
    splits: list

    def split(self, X, y=None, **params):
        """The splits that have been drawn, whatever is passed."""
        return iter(self.splits)

    def get_n_splits(self, X=None, y=None, **params):
        """How many there are."""
        return len(self.splits)

    def with_groups(self):
        """The same: groups have had their part when they were drawn."""
        return self

    def get_metadata_routing(self):
        """Metadata routing of what it stands for."""
        return get_routing_for_object(check_cv(self.cv))


def draw_once(candidates, origins, X, y, fit_params):
    """Give the same splits to all candidates that have the same ``cv``.

    Parameters
    ----------
    candidates : list of estimators
        Their ``cv`` is set, where they have one.
    origins : list
        What the ``cv`` of every candidate is a copy of.
    fit_params : dict
        What the candidates' ``fit`` will be passed.
    """
    # Folds of a collection are the same whenever they are drawn; a summary has its own.
    if is_collection(X) or isinstance(X, RowSummary):
        return
    drawn = {}
    for candidate, origin in zip(candidates, origins):
        if not ESTIMATES["cv"].is_on(candidate):
            continue
        if id(origin) not in drawn:
            splits = _splits(candidate, X, y, fit_params)
            drawn[id(origin)] = DrawnSplits(origin, splits)
        candidate.set_params(cv=drawn[id(origin)])


def _splits(candidate, X, y, fit_params):
    routes = get_config()["enable_metadata_routing"]
    params = {
        key: fit_params[key]
        for key in fit_params
        if key == "groups" or (routes and key != "sample_weight")
    }
    try:
        splitter, split_params = splitter_of(candidate, y, params)
        return list(splitter.split(X, y, **split_params))
    except (TypeError, ValueError):
        # What is wrong with them comes first.
        candidate._check_data(X, y, fit_params.get("sample_weight"))
        raise


def take_back(estimator):
    """Let the estimator have the ``cv`` again that it was given."""
    cv = ESTIMATES["cv"].setting(estimator)
    if isinstance(cv, DrawnSplits):
        estimator.set_params(cv=cv.cv)
