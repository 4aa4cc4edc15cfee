"""Methods and metadata that are passed on to inner estimators; last steps."""

from collections.abc import Callable
from copy import copy
from functools import wraps
from inspect import signature
from typing import Any

from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import (
    MetadataRequest,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted

from .._compat import available_if, request_of
from .._typing import Method


class SaysWhyMissing:
    """An object whose error of a method that is not available says why."""

    def __getattr__(self, name: str) -> Any:
        try:
            return object.__getattribute__(self, name)
        except AttributeError as error:
            # The condition of the method has raised another one.
            reason = error.__cause__
            if reason is None:
                raise
            raise AttributeError(f"{error}: {reason}.") from reason


def fitted_part(owner):
    """The attribute ``estimator_`` of a fitted object, or NotFittedError."""
    # First, since scikit-learn's check reads the tags of all members.
    if not vars(owner).keys() & {"estimator_", "record_"}:
        check_is_fitted(owner)
    return owner.estimator_


def delegated(
    has: Callable[[str], Callable[[Any], bool]],
) -> Callable[[Method], Method]:
    """Decorator of a method without a body: that of ``estimator_`` is called."""

    # ``has(name)(object)`` is whether an object has the method.
    def decorate(method):
        name = method.__name__

        @available_if(has(name))
        @wraps(method)
        def passed_on(self, *args, **params):
            return getattr(fitted_part(self), name)(*args, **params)

        return passed_on

    return decorate


def route_metadata(owner, caller, receiver, method, params):
    """The metadata that a method of an owner passes on to one of an inner object."""
    # ``receiver`` is the name of the inner object in the owner's routing.
    if not get_config()["enable_metadata_routing"]:
        return params
    return process_routing(owner, caller, **params)[receiver][method]


def class_of(estimator):
    """The class that errors name: that of the user's estimator inside of ``Staged``."""
    return type(getattr(estimator, "_in_stages", estimator)).__name__


def samplers_of(estimator):
    """Names and steps of a pipeline that change rows, as imbalanced-learn's do."""
    steps = estimator.steps[:-1] if isinstance(estimator, Pipeline) else []
    return [(name, step) for name, step in steps if hasattr(step, "fit_resample")]


def take_transformers(pipeline):
    """The steps before the last of a fitted pipeline, as new rows go through them.

    Samplers are left out: they are for the rows of a fit alone.
    """
    *before, (name, _) = pipeline.steps
    kept = [step for step in before if not hasattr(step[1], "fit_resample")]
    transformers = copy(pipeline)
    transformers.steps = [*kept, (name, "passthrough")]
    return transformers


def weights_for(step, sample_weight):
    """``sample_weight`` for a transformer whose ``fit`` asks for it, or nothing.

    Those of skacv ask by themselves, those of scikit-learn where metadata are routed.
    """
    request = get_routing_for_object(step)
    if sample_weight is None or not isinstance(request, MetadataRequest):
        return {}
    is_asked_for = request.fit.requests.get("sample_weight") is True
    return {"sample_weight": sample_weight} if is_asked_for else {}


def request_weights(estimator, methods):
    """Let a model request ``sample_weight`` where it, or its last step, says nothing.

    Steps before that say nothing get none, as where metadata are not routed.
    """
    if not get_config()["enable_metadata_routing"]:
        return
    if isinstance(estimator, Pipeline):
        for _, step in estimator.steps[:-1]:
            if "fit" in methods and request_of(step, "fit") is None:
                _set_request(step, "fit", False)
        request_weights(estimator.steps[-1][1], methods)
        return
    for method in methods:
        if request_of(estimator, method) is None:
            _set_request(estimator, method, True)
    # Staged, and one model for each output, pass them on. An ensemble of the usual
    # trees has None in their place.
    if getattr(estimator, "estimator", None) is not None:
        request_weights(estimator.estimator, methods)


def _set_request(estimator, method, request):
    """Set what an estimator says of ``sample_weight`` in one of its methods, if any."""
    is_argument = "sample_weight" in signature(getattr(estimator, method)).parameters
    if is_argument and hasattr(estimator, f"set_{method}_request"):
        getattr(estimator, f"set_{method}_request")(sample_weight=request)


def last_step(estimator, X=None):
    """The last step of a fitted pipeline, and X transformed by the steps before it."""
    # An estimator that is no pipeline is its own last step, fitted or not.
    if not isinstance(estimator, Pipeline):
        return estimator, X
    check_is_fitted(estimator)
    if X is not None and len(estimator) > 1:
        X = take_transformers(estimator).transform(X)
    return last_step(estimator[-1], X)
