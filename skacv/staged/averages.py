"""The mean of a model and of its copies, which have grown beside it on the folds."""

from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from .._compat import available_if
from .._estimator.data.labels import indicator_of, label_of
from .adapter import label_probabilities, response_of
from .fits import add_lacking_classes, last_of


class MeanOfCopies(BaseEstimator):
    """A fitted estimator whose predictions are the mean of those of several.

    Parameters
    ----------
    copies : list of fitted estimators
    classes : ndarray of shape (n_classes,), default=None
        Labels of the classes, of which a copy may lack some; None for regression, and
        for several labels in a row.
    """

    def __init__(self, copies: list[Any], classes: Any = None) -> None:
        self.copies = copies
        self.classes = classes

    def _mean(self, X):
        """The mean of what the method gives that stages are judged by."""
        values = []
        for fitted in self.copies:
            last = last_of(fitted)
            value = getattr(fitted, response_of(last))(X)
            if isinstance(value, list):
                value = label_probabilities(value, last.classes_)
            if self.classes is not None:
                value = add_lacking_classes(last, value[None], self.classes)[0]
            values.append(value)
        return np.mean(values, axis=0)

    @property
    def feature_importances_(self) -> np.ndarray:
        """The mean of the importances, for copies that have them."""
        return np.mean([last_of(one).feature_importances_ for one in self.copies], 0)


class MeanRegressor(RegressorMixin, MeanOfCopies):
    """The mean of fitted regressors."""

    def predict(self, X: Any) -> np.ndarray:
        """The mean of the predictions.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        return self._mean(X)


class MeanRanker(MeanOfCopies):
    """The mean of the scores of fitted rankers."""

    predict = MeanRegressor.predict

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"
        return tags


def _judged_by(name):
    return lambda self: response_of(last_of(self.copies[0])) == name


class MeanClassifier(ClassifierMixin, MeanOfCopies):
    """The mean of fitted classifiers: of their probabilities, or their decisions."""

    @property
    def classes_(self) -> Any:
        """Labels of the classes."""
        first = last_of(self.copies[0]).classes_
        return first if self.classes is None else self.classes

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class, or which labels a row has.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
        """
        mean = self._mean(X)
        return (
            indicator_of(mean) if self.classes is None else label_of(mean, self.classes)
        )

    @available_if(_judged_by("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """The mean of the probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._mean(X)

    @available_if(_judged_by("decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        """The mean of the decisions.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._mean(X)


@dataclass(frozen=True, eq=False)
class MeanFit:
    """The fits of a model and of its copies, as one fit that predicts their mean."""

    # The fit to all rows, then those of the folds.
    fits: list
    # MeanRegressor, MeanClassifier or MeanRanker.
    kind: type
    # Labels of the classes; None for regression, and for several labels in a row.
    classes: np.ndarray | None

    @property
    def stages(self):
        """Those of the model."""
        return self.fits[0].stages

    def at(self, t):
        """The mean with the first ``t`` stages of each."""
        fitted = []
        for fit in self.fits:
            fitted.append(fit.at(min(t, fit.stages.n_stages)))
        return self.kind(fitted, self.classes)

    def staged_predictions(self, X, last):
        """Yield predictions of the available stages up to ``last`` for any rows."""
        runs = []
        for fit in self.fits:
            runs.append(self._staged_predictions_of(fit, X, last))
        n_stages = len([t for t in self.stages.recorded_stages() if t <= last])
        for _, *values in zip(range(n_stages), *runs):
            yield np.mean(values, axis=0)

    def _staged_predictions_of(self, fit, X, last):
        """Predictions of one fit for all classes; after its end those of the last."""
        for values in fit.staged_predictions(X, last):
            if self.classes is not None:
                fitted = fit.stages.fitted_estimator()
                values = add_lacking_classes(fitted, values[None], self.classes)[0]
            yield values
        yield from repeat(values)
