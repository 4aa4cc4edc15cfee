"""What is passed on to inner estimators, and the last step of pipelines."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import check_is_fitted

from .._compat import available_if
from .._typing import Method


def fitted_part(owner):
    """The attribute ``estimator_`` of a fitted object.

    It is looked at first: scikit-learn's check reads the tags of all members.

    Raises
    ------
    NotFittedError
    """
    if "estimator_" not in vars(owner):
        check_is_fitted(owner)
    return owner.estimator_


def delegated(
    has: Callable[[str], Callable[[Any], bool]],
) -> Callable[[Method], Method]:
    """Decorator of a method without a body: that of ``estimator_`` is called.

    Parameters
    ----------
    has : callable
        ``has(name)`` is a function that says of an object whether it has the method.
    """

    def decorate(method):
        name = method.__name__

        @available_if(has(name))
        @wraps(method)
        def passed_on(self, *args, **params):
            return getattr(fitted_part(self), name)(*args, **params)

        return passed_on

    return decorate


def routed(owner, caller, receiver, method, params):
    """The metadata that an owner passes on to a method of an inner object.

    Parameters
    ----------
    caller : str
        The method of the owner.
    receiver, method : str
        The inner object, as the owner's routing calls it, and its method.

    Returns
    -------
    dict
        Without metadata routing, all that was passed.
    """
    if not get_config()["enable_metadata_routing"]:
        return params
    return process_routing(owner, caller, **params)[receiver][method]


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
