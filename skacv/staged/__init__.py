"""Estimators of other packages that are fitted in stages: boosting, forests, networks.

:class:`Staged` makes one of them an estimator that records its trajectory.
"""

from .._estimator.estimates.recording import INSTEAD, RecordsTrajectory
from .estimator import Staged
from .growing import last_of
from .kinds import kind_of

__all__ = ["Staged"]


def recorded(estimator, n_jobs=None):
    """An estimator that records its trajectory, if the given one can be made to.

    Parameters
    ----------
    n_jobs : int, default=None
        Threads for the folds of an estimator fitted in stages.

    Returns
    -------
    object
        The estimator itself if it records its trajectory, if an estimator of skacv
        replaces it, or if it cannot be fitted in stages; otherwise :class:`Staged` of
        it.
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


def offset_of(estimator, params):
    """The parameter of ``fit`` that is an offset, which ``predict`` leaves out.

    Parameters
    ----------
    params : dict
        What ``fit`` is to be passed besides X and y.

    Returns
    -------
    str or None
        Its name; None if there is none.
    """
    if not isinstance(estimator, Staged):
        return None
    return estimator._params_of_fit(params).offset
