"""Held-out predictions as those of an estimator, which scorers can ask."""

from functools import partial

import numpy as np
from scipy.special import logit
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.utils import get_tags

from ..._compat import available_if
from ..data.checks import is_indicator
from ..data.labels import indicator_of, label_of
from ..data.survival import is_survival
from ..devices import convert_to_numpy
from .terms import terms_of


def _has_decisions(predictor):
    return predictor.response != "predict"


def _has_probabilities(predictor):
    return predictor.response == "predict_proba" or predictor.probability is not None


class HeldOutPredictor:
    """A fitted regressor or classifier that predicts given values, whatever X is.

    Parameters
    ----------
    model : estimator
        The one whose run has held the rows out. The predictor has its parameters and
        tags, and no other attributes, which may be those of another iterate.
    response : {"predict", "decision_function", "predict_proba"}
        The method that returns ``values``. The others of a classifier follow from it.
    values : ndarray of shape (n_held_out,) or (n_held_out, n_outputs)
    classes : ndarray of shape (n_classes,), default=None
        Labels of the classes; None for regression.
    is_multilabel : bool, default=False
        Whether rows have several labels, and ``values`` the probability of each.
    probability : callable, default=None
        Turns decisions into probabilities; None if the model has none.
    """

    def __init__(
        self,
        model,
        response,
        values,
        classes=None,
        is_multilabel=False,
        probability=None,
    ):
        self.model, self.response, self.values = model, response, values
        if classes is not None:
            self.classes_ = classes
        self._is_multilabel, self.probability = is_multilabel, probability

    @classmethod
    def from_model(cls, model, values, t):
        """The predictor of the held-out rows by iterate ``t`` of a fitted model."""
        model, probability = convert_to_numpy(model), None
        response = getattr(model, "_held_out_response", None)
        if response is None:  # a class from outside, as docs/extending.md asks of it
            has_shares = np.ndim(values) == 2 and is_classifier(model)
            response = "predict_proba" if has_shares else "predict"
        if response == "decision_function" and hasattr(model, "predict_proba"):
            probability = partial(model._probability, t=t)
        return cls(
            model,
            response,
            values,
            model.record_.classes,
            getattr(model, "_is_multilabel", False),
            probability,
        )

    @classmethod
    def from_targets(cls, model, X, y):
        """An example before any run, which predicts the targets."""
        y = np.asarray(y)
        if is_survival(y):  # early events are risky
            return cls(model, "predict", -y["time"])
        if not is_classifier(model):
            # Deviances of counts need means above zero.
            loss = terms_of(model).loss(X, y)
            least, _ = getattr(loss, "target_range", (-np.inf, np.inf))
            return cls(model, "predict", y + 1.0 if least == 0 else y)
        if is_indicator(y):
            labels = np.arange(y.shape[1])
            return cls(model, "predict_proba", y.astype(np.float64), labels, True)
        classes, label = np.unique(y.ravel(), return_inverse=True)
        one_hot = np.eye(len(classes))[label]
        if hasattr(model, "predict_proba"):
            return cls(model, "predict_proba", one_hot, classes)
        if hasattr(model, "decision_function"):
            return cls(model, "decision_function", decisions_of(one_hot), classes)
        return cls(model, "predict", classes[label], classes)

    def predict(self, X):
        """Predictions of targets, or labels."""
        if self.response == "predict":
            return self.values
        if self._is_multilabel:
            return indicator_of(self.values)
        return label_of(self.values, self.classes_)

    @available_if(_has_decisions)
    def decision_function(self, X):
        """Decisions, which are log odds if there are only probabilities."""
        if self.response == "decision_function":
            return self.values
        return decisions_of(self.values, self._is_multilabel)

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        """Probabilities of the classes, (n_held_out, n_classes)."""
        if self.response == "predict_proba":
            return self.values
        return self.probability(self.values)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X):
        """Logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def score(self, X, y, sample_weight=None):
        """R^2 of predictions, or the share of labels that are right."""
        kind = ClassifierMixin if is_classifier(self) else RegressorMixin
        return kind.score(self, X, y, sample_weight)

    def __getattr__(self, name):
        model = vars(self).get("model")
        if model is not None and name in model.get_params(deep=False):
            return getattr(model, name)
        raise AttributeError(f"{type(self).__name__} object has no attribute {name!r}")

    def fit(self, X, y=None):
        """Nothing: what is predicted is given."""
        return self

    def __sklearn_is_fitted__(self):
        return True

    def __sklearn_tags__(self):
        return get_tags(self.model)


def decisions_of(probabilities, is_multilabel=False):
    """Decisions whose probabilities, or one-hot labels, are passed."""
    least = np.finfo(probabilities.dtype).tiny
    if probabilities.shape[1] > 2 and not is_multilabel:
        return np.log(np.maximum(probabilities, least))
    positive = probabilities if is_multilabel else probabilities[:, 1]
    return logit(np.clip(positive, least, 1 - np.finfo(float).eps))
