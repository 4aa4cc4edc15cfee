"""All private imports of scikit-learn, and what depends on its version.

scikit-learn has no types: its decorators are declared here to keep those of a method.
"""

# Other modules import from here what this one imports.
# ruff: noqa: F401

from collections.abc import Callable
from contextlib import contextmanager
from copy import copy
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, is_classifier
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.preprocessing import TargetEncoder
from sklearn.utils import _safe_indexing as _indexing
from sklearn.utils import get_tags
from sklearn.utils._array_api import _convert_to_numpy, get_namespace
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
)
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.parallel import Parallel
from sklearn.utils.validation import _check_feature_names_in, _num_samples

from ._names import did_you_mean
from ._typing import Method

if TYPE_CHECKING:

    def _fit_context(
        *, prefer_skip_nested_validation: bool
    ) -> Callable[[Method], Method]: ...

    def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]: ...

    def with_callbacks(method: Method) -> Method: ...

else:
    from sklearn.base import _fit_context as _validated
    from sklearn.utils.metaestimators import available_if

    def _fit_context(**settings):
        """scikit-learn's, with the name that a wrong value may mean in its errors."""

        def decorator(fit):
            validated = _validated(**settings)(fit)

            @wraps(fit)
            def named(estimator, *args, **params):
                with names_values(estimator):
                    return validated(estimator, *args, **params)

            return named

        return decorator

    try:  # scikit-learn >= 1.9
        from sklearn.callback import with_callbacks
    except ImportError:

        def with_callbacks(method):
            return method


try:  # scikit-learn >= 1.9
    from sklearn.callback import CallbackSupportMixin
    from sklearn.utils._array_api import check_same_namespace
except ImportError:

    class CallbackSupportMixin:
        """Stands in where scikit-learn has no callbacks."""

    def check_same_namespace(X, estimator, *, attribute, method):
        """Raise where an array is of another namespace than what was fitted."""
        arrays = X, getattr(estimator, attribute)
        if not any(map(is_foreign, arrays)):
            return
        X, fitted = (array if is_foreign(array) else np.empty(0) for array in arrays)
        # Two namespaces have no common one.
        try:
            get_namespace(X, fitted)
        except TypeError:
            raise ValueError(
                f"Inputs passed to {type(estimator).__name__}.{method}() must use the "
                "same namespace and the same device as those passed to fit()."
            ) from None


class Composition(_BaseComposition):
    """An estimator of which one parameter, ``_parts``, may list (name, estimator)."""

    _parts: str
    # Raises if names of members are not unique, or conflict with parameters.
    _check_names = _BaseComposition._validate_names

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of this object and, if deep, of its estimators.

        Parameters
        ----------
        deep : bool, default=True

        Returns
        -------
        dict
            Parameters of named estimators are ``name__parameter``.
        """
        if not isinstance(
            getattr(self, self._parts), list
        ):  # an estimator may have a length
            return BaseEstimator.get_params(self, deep=deep)
        return self._get_params(self._parts, deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this object and of its estimators.

        Parameters
        ----------
        **params : dict
            Parameters of named estimators are ``name__parameter``.

        Returns
        -------
        self : object
        """
        self._set_params(self._parts, **params)
        return self


# The attribute of an estimator that has the callbacks of its fit.
CALLBACKS = "_skl_callbacks"


def has_callbacks(estimator):
    """Whether any callback listens to this fit."""
    return bool(getattr(estimator, CALLBACKS, None))


def drop_callbacks(estimator):
    """Let no callback listen to a clone, which has those of the original."""
    vars(estimator).pop(CALLBACKS, None)


def callback_context(estimator, max_subtasks):
    """The root of a fit's tree of tasks, which its callbacks follow."""
    return estimator._init_callback_context(max_subtasks=max_subtasks)


def results_of(tasks, n_jobs):
    """Results of delayed calls in parallel, in order, each as soon as it is there."""
    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    except (TypeError, ValueError):  # joblib < 1.3, and its backend "multiprocessing"
        parallel = Parallel(n_jobs=n_jobs)
    return parallel(tasks)


def _safe_indexing(X, indices):
    """Some rows of any container, also of sparse matrices whose format has no rows."""
    has_no_rows = sparse.issparse(X) and X.format not in ("csr", "csc", "lil")
    return _indexing(X.tocsr() if has_no_rows else X, indices)


def refuses_sparse(estimator):
    """Whether tags say that X must not be sparse; old versions say so of all models."""
    takes_sparse = get_tags(estimator).input_tags.sparse
    return not takes_sparse and get_tags(Ridge()).input_tags.sparse


def validate_parameters(estimator):
    """Raise where a parameter violates the constraints of its class."""
    is_skipped = get_config()["skip_parameter_validation"]
    if hasattr(estimator, "_parameter_constraints") and not is_skipped:
        with names_values(estimator):
            estimator._validate_params()


@contextmanager
def names_values(estimator):
    """Errors about a parameter of this estimator name the value that it may mean."""
    try:
        yield
    except InvalidParameterError as error:
        (message,) = error.args
        owner, params = type(estimator).__name__, estimator.get_params(deep=False)
        for name, constraints in estimator._parameter_constraints.items():
            is_it = message.startswith(f"The {name!r} parameter of {owner} must be ")
            if is_it and message.endswith(f"Got {params[name]!r} instead."):
                options = [c.options for c in constraints if isinstance(c, StrOptions)]
                meant = did_you_mean(params[name], sorted(set().union(*options)))
                error.args = (message + meant,)
        raise


def with_positive_class(scorer, y):
    """A named scorer, for which the second of two classes is positive, if a string.

    So it is for decisions and probabilities; but scorers of one class take 1 for the
    positive label, and refuse strings.
    """
    settings = scorer._kwargs
    is_of_one_class = settings.get("average", "binary") == "binary"
    is_missing = "pos_label" not in settings
    takes_label = "pos_label" in signature(scorer._score_func).parameters
    if not (takes_label and is_missing and is_of_one_class) or np.ndim(y) != 1:
        return scorer
    classes = np.unique(y)
    if len(classes) != 2 or not isinstance(classes[1], str):
        return scorer
    scorer = copy(scorer)
    scorer._kwargs = {**settings, "pos_label": classes[1]}
    return scorer


def target_encoder(estimator):
    """Means of y for levels of categories, with folds of rows that are drawn once.

    The folds are an object in newer versions. Classes may have fewer rows than there
    are folds.
    """
    # Integer targets of a regression would be taken for classes.
    target_type = "auto" if is_classifier(estimator) else "continuous"
    if signature(TargetEncoder).parameters["random_state"].default is None:
        return TargetEncoder(target_type=target_type, random_state=0)
    cv = KFold(5, shuffle=True, random_state=0)
    return TargetEncoder(target_type=target_type, cv=cv)


def check_in_memory(*arrays):
    """Raise where arrays are Dask collections: NumPy would compute them."""
    for array in arrays:
        if hasattr(array, "__dask_graph__"):
            raise TypeError(
                "Arrays in memory are needed here, got a Dask collection "
                f"({type(array)}): pass array.compute() if it fits in memory, or fit "
                "a linear model of skacv with X and y as Dask collections."
            )


def on_host(array):
    """An array of another library as NumPy, where scikit-learn dispatches on them.

    Other objects are returned unchanged; a Dask collection raises a TypeError.
    """
    if array is None or type(array) is np.ndarray:
        return array
    check_in_memory(array)
    if not is_foreign(array):
        return array
    namespace, _ = get_namespace(array)
    return _convert_to_numpy(array, namespace)


def is_foreign(array):
    """Whether scikit-learn dispatches on an array, which is not NumPy's."""
    return bool(get_config()["array_api_dispatch"]) and is_foreign_type(array)


def is_foreign_type(array):
    """Whether an object is a tensor, or an array of the array API but not NumPy's."""
    if isinstance(array, np.ndarray | np.generic):
        return False
    is_tensor = type(array).__module__.split(".")[0] == "torch"
    return is_tensor or hasattr(array, "__array_namespace__")


def request_of(estimator, method):
    """What an estimator says of ``sample_weight``: True, False, a name; None: nothing.

    None is also the answer where its method has no such argument.
    """
    if not isinstance(estimator, BaseEstimator):
        return None
    requests = getattr(estimator._get_metadata_request(), method).requests
    return requests.get("sample_weight")


def request_for_offset(estimator):
    """What an estimator says of ``offset`` in its methods, and of nothing else."""
    every, found = estimator._get_metadata_request(), MetadataRequest(estimator)
    for method in ("fit", "predict", "score"):
        alias = getattr(every, method).requests.get("offset")
        getattr(found, method).add_request(param="offset", alias=alias)
    return found


def class_weights(class_weight, classes, y, sample_weight):
    """The weight of every class; newer versions balance the weights of the rows."""
    weighted = {"sample_weight"} & signature(compute_class_weight).parameters.keys()
    rows = dict.fromkeys(weighted, sample_weight)
    return compute_class_weight(class_weight, classes=classes, y=y, **rows)
