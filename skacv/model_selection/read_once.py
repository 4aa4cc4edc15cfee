"""Dask collections that are gone through once, for all members and stages of runs."""

from .._estimator.collections import is_collection, on_workers
from .._estimator.estimates.folds import ShuffledFolds
from .._estimator.run.streaming import n_folds_asked, n_sampled_asked, takes_moments_of


def read_once(members, X, y, params):
    """The summary of a collection, where its moments are enough for all members.

    Parameters
    ----------
    members : list of (str, estimator)
    params : dict
        What else ``fit`` was passed.

    Returns
    -------
    X, y, params
        As they were passed; or a summary, None, and no weights, which it has.
    """
    estimators = [member for _, member in members]
    is_enough = is_collection(X) and all(
        hasattr(each, "_spec") and takes_moments_of(each, X) for each in estimators
    )
    if not is_enough:
        return X, y, params
    # One asks for folds, or a number of sampled rows: all have the same.
    n_folds = [n_folds_asked(each) for each in estimators if each.cv is not None]
    n_sampled = max(n_sampled_asked(each) for each in estimators)
    weights = params.get("sample_weight")
    summary = on_workers("summary").summarised(
        X, y, weights, max(n_folds, default=ShuffledFolds.n_splits), n_sampled
    )
    others = {name: params[name] for name in params if name != "sample_weight"}
    return summary, None, others
