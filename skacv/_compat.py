"""Every private or version-dependent import from scikit-learn, and what hangs on it."""

import os
import sys
import warnings
from inspect import signature
from pathlib import Path

import joblib
import sklearn
from sklearn.base import _fit_context
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    StrOptions,
)
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

try:  # scikit-learn >= 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method):
        return method


def has_callbacks(estimator):
    """Whether any callback listens to this fit."""
    return bool(getattr(estimator, "_skl_callbacks", None))


def class_weights(class_weight, classes, y, sample_weight):
    """The weight of every class; newer versions balance the weights of the rows."""
    weighted = {"sample_weight"} & signature(compute_class_weight).parameters.keys()
    rows = dict.fromkeys(weighted, sample_weight)
    return compute_class_weight(class_weight, classes=classes, y=y, **rows)


# Frames between a user's line and a warning; how many wrap a fit depends on versions.
PACKAGES = tuple(
    str(Path(file).parent) + os.sep
    for file in (__file__, sklearn.__file__, joblib.__file__)
)


def warn(message, category):
    """Warn of the line, outside of these packages, that has called one of them.

    Parameters
    ----------
    message : str
    category : Warning class
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_code.co_filename.startswith(PACKAGES):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


__all__ = [
    "CallbackSupportMixin",
    "HasMethods",
    "Interval",
    "StrOptions",
    "_check_sample_weight",
    "_fit_context",
    "_safe_indexing",
    "class_weights",
    "has_callbacks",
    "warn",
    "with_callbacks",
]
