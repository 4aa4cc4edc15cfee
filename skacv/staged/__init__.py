"""Estimators of other packages that are fitted in stages: boosting, forests, networks.

:class:`Staged` makes one of them an estimator that records its trajectory.
"""

from .._estimator.estimates.recording import INSTEAD, RecordsTrajectory
from .estimator import Staged
from .growing import last_of
from .kinds import kind_of

__all__ = ["Staged"]


def recorded(estimator, n_jobs=None):
    """An estimator that records its trajectory, where that can be had.

    Parameters
    ----------
    estimator : object
    n_jobs : int, default=None
        Threads for the folds of one that is fitted in stages.

    Returns
    -------
    object
        The estimator itself if it records, if there is one of ours to take instead, or
        if nothing is known of how it goes on.
    """
    last = last_of(estimator)
    is_own = isinstance(estimator, RecordsTrajectory) or isinstance(
        last, RecordsTrajectory
    )
    if is_own or type(last).__name__ in INSTEAD or kind_of(last) is None:
        return estimator
    # LightGBM prints nothing where it is -1.
    verbose = (getattr(last, "verbose", 0) or 0) > 0
    return Staged(estimator, n_jobs=n_jobs, verbose=verbose)
