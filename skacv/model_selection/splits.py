"""What is drawn or read once, for all candidates and all stages of their runs.

Splits of ``cv`` drawn anew would compare candidates on other rows, and the step, which
is stable on all folds, would change in the middle of a run.
"""

from dataclasses import dataclass
from numbers import Integral

from sklearn import get_config
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import get_routing_for_object

from .._estimator.collections import is_collection, on_workers
from .._estimator.data.row_summary import RowSummary
from .._estimator.estimates.folds import ShuffledFolds, groups_of, splitter_of
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.run.source import takes_moments_of
from .._estimator.run.summary_data import n_folds_asked, n_sampled_asked


@dataclass(frozen=True, eq=False)
class DrawnSplits:
    """A splitter that has drawn, in the place of the one that would draw again.

    Attributes
    ----------
    cv : int, splitter or iterable
        What it stands for; metadata are requested as that requests them.
    splits : list of (ndarray of int, ndarray of int)
    groups : ndarray of int, shape (n_samples,), or None
        The group of every sample, if groups have been passed to it.
    """

    cv: object
    splits: list
    groups: object = None

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

    X is what the splitter sees: the rows as the user has them.

    Parameters
    ----------
    candidates : list of Candidate
        The ``cv`` of their estimators is set, where they have one.
    origins : list
        What the ``cv`` of every candidate is a copy of.
    fit_params : dict
        What the candidates' ``fit`` will be passed.

    Returns
    -------
    ndarray of int, shape (n_samples,), or None
        The group of every sample, if groups are passed to the splitters.
    """
    # Folds of a collection are the same whenever they are drawn; a summary has its own.
    if is_collection(X) or isinstance(X, RowSummary):
        return None
    drawn = {}
    for candidate, origin in zip(candidates, origins):
        if not ESTIMATES["cv"].is_on(candidate.estimator):
            continue
        if id(origin) not in drawn:
            found = _splits(candidate, X, y, fit_params)
            drawn[id(origin)] = DrawnSplits(origin, *found)
        candidate.estimator.set_params(cv=drawn[id(origin)])
    groups = (each.groups for each in drawn.values() if each.groups is not None)
    return next(groups, None)


def _splits(candidate, X, y, fit_params):
    """The splits of a candidate's ``cv``, and the groups that it is passed."""
    routes = get_config()["enable_metadata_routing"]
    params = {
        key: fit_params[key]
        for key in fit_params
        if key == "groups" or (routes and key != "sample_weight")
    }
    try:
        splitter, split_params = splitter_of(candidate.estimator, y, params)
        splits = list(splitter.split(X, y, **split_params))
        return splits, groups_of(split_params)
    except (TypeError, ValueError):
        # What is wrong with them comes first.
        weights = fit_params.get("sample_weight")
        candidate.estimator._check_data(candidate.X, y, weights)
        raise


def take_back(estimator):
    """Let the estimator have the ``cv`` again that it was given."""
    cv = ESTIMATES["cv"].setting(estimator)
    if isinstance(cv, DrawnSplits):
        estimator.set_params(cv=cv.cv)


def read_once(members, cv, X, y, params):
    """The summary of a collection, where its moments are enough for all members.

    Parameters
    ----------
    members : list of (str, estimator)
    cv : int, splitter, iterable or None
        What all members are given as ``cv``; None leaves them their own.
    params : dict
        What else ``fit`` was passed.

    Returns
    -------
    X, y, params
        As they were passed; or a summary, None, and no weights, which it has.
    """
    estimators = [member for _, member in members]
    is_enough = is_collection(X) and all(
        hasattr(each, "_spec") and takes_moments_of(each._spec(), X)
        for each in estimators
    )
    if not is_enough:
        return X, y, params
    # One asks for folds, or a number of sampled rows: all have the same.
    n_folds = [n_folds_asked(each) for each in estimators if each.cv is not None]
    n_folds += [cv] if isinstance(cv, Integral) else []
    n_sampled = max(n_sampled_asked(each) for each in estimators)
    weights = params.get("sample_weight")
    summary = on_workers("summary").summarised(
        X, y, weights, max(n_folds, default=ShuffledFolds.n_splits), n_sampled
    )
    others = {name: params[name] for name in params if name != "sample_weight"}
    return summary, None, others
