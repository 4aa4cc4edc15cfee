"""Pipelines, where a fitted model is asked for: what counts is their last step."""

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted


def last_step(estimator, X=None):
    """The last step of a fitted pipeline and what it sees; others are their own.

    Parameters
    ----------
    estimator : estimator or Pipeline
    X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
        As the given estimator takes it.

    Returns
    -------
    estimator
    {array-like, sparse matrix} of shape (n_samples, n_features) or None
        X as that estimator takes it.

    Raises
    ------
    NotFittedError
        If a pipeline is not fitted; other estimators are not asked.
    """
    if not isinstance(estimator, Pipeline):
        return estimator, X
    check_is_fitted(estimator)
    if X is not None and len(estimator) > 1:
        X = estimator[:-1].transform(X)
    return last_step(estimator[-1], X)
