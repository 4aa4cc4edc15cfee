"""Classifiers with a recorded trajectory."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin

from ..._compat import available_if, class_weights
from ..collections import block_by_block, staged_block_by_block
from ..data.labels import (
    check_class_weights,
    classes_of,
    decision_of,
    known_labels,
    label_of,
    probabilities_of,
    targets_of,
)
from ..data.shares import ClassShares, check_has_classes, share_of_labels, shares_of
from ..data.training_data import EncodedTarget, validate_samples
from ..devices import of_rows
from ..docstrings import SETS, documented
from ..parameters import takes_coverage
from .prediction_sets import sets_of
from .predictions import RecordedModel


class RecordedClassifier(ClassifierMixin, RecordedModel):
    """Decisions and labels with the recorded iterates."""

    _held_out_response = "decision_function"

    def _encode_samples(self, X, y, sample_weight, offset=None):
        """Validated samples, and their classes as the loss needs them."""
        shares = shares_of(y, one_hot=True)
        if shares is not None:
            return self._encode_shares(X, shares, sample_weight, offset)
        samples = validate_samples(self, X, y, sample_weight)
        classes, label = classes_of(self, samples.y)
        class_weight = class_weights(
            self.class_weight, classes, samples.y, samples.weights
        )
        check_class_weights(class_weight, classes)
        loss, target = self._loss_and_target(label, len(classes))
        if offset is not None:
            samples.without_offset(loss, offset)  # no loss of classes has one
        weights = samples.weights * class_weight[label]
        names = {"classes_": classes}
        return samples, EncodedTarget(loss, target, weights, False, names)

    def _encode_shares(self, X, shares, sample_weight, offset=None):
        """Validated samples of which y has the shares of classes, as the loss needs it.

        A row counts as one of each class would, with weights that are its shares.
        """
        samples = validate_samples(self, X, shares.likeliest, sample_weight)
        classes, weights = shares.classes, samples.weights
        values = shares.values[samples.rows]
        ClassShares(values, classes).check_has_all(weights)
        class_weight = self.class_weight
        if isinstance(class_weight, str):  # "balanced"
            totals = weights @ values
            class_weight = totals.sum() / (len(classes) * totals)
        else:
            ones = np.ones(len(classes))
            class_weight = class_weights(class_weight, classes, classes, ones)
        check_class_weights(class_weight, classes)
        values = values * class_weight
        factors = values.sum(axis=1)
        values /= np.where(factors > 0, factors, 1.0)[:, None]
        loss = self._class_loss(len(classes))
        if loss.labels != (0.0, 1.0):
            raise ValueError(
                f"y has shares of classes, and {type(self).__name__} minimises the "
                f"{loss.name} of labels: shares are for the log loss, as "
                "TrajectoryLogisticRegression has it."
            )
        if offset is not None:
            samples.without_offset(loss, offset)
        samples = replace(samples, y=shares.of_rows(samples.rows))
        target = values[:, 1:] if len(classes) == 2 else values
        names = {"classes_": classes, "has_shares": True}
        return samples, EncodedTarget(loss, target, weights * factors, False, names)

    def _loss_and_target(self, label, n_classes):
        """The loss and its targets, (n_rows, n_outputs), for labels 0, 1, ..."""
        loss = self._class_loss(n_classes)
        return loss, targets_of(label, n_classes, loss)

    def _outputs(self, y):
        """Fitted attributes of the outputs, known before a run."""
        shares = shares_of(y, one_hot=True)
        classes = (
            classes_of(self, np.asarray(y))[0] if shares is None else shares.classes
        )
        n_classes = len(classes)
        return {
            "n_outputs": 1 if n_classes == 2 else n_classes,
            "is_coupled": self._class_loss(n_classes).is_coupled,
        }

    @staticmethod
    def _prediction(predictor, loss):
        """Held-out predictions are decisions, which determine all others."""
        return predictor

    def _labels_to_split_by(self, y):
        shares = shares_of(y, one_hot=True)
        return y if shares is None else shares.classes[shares.likeliest]

    def _validate_target(self, y):
        shares = shares_of(y, one_hot=True)
        if shares is None:
            return super()._validate_target(y)
        check_has_classes(shares, self.classes_)
        return shares.values

    def _target(self, y):
        if y.size > len(y):  # shares
            return y[:, 1:] if len(self.classes_) == 2 else y
        label = known_labels(y, self.classes_)
        return self._loss_and_target(label, len(self.classes_))[1]

    _decision = staticmethod(decision_of)

    def _predict_from(self, response):
        return label_of(self._decision(response), self.classes_)

    def score(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Accuracy of the labels; of shares of classes, those of the predicted ones.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, or shares of the classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights of the rows.

        Returns
        -------
        float
        """
        shares = shares_of(y, one_hot=True)
        if shares is None:
            return super().score(X, y, sample_weight)
        return share_of_labels(shares, self.predict(X), self.classes_, sample_weight)

    @block_by_block
    @of_rows
    def decision_function(self, X: Any) -> np.ndarray:
        """Decision function of the iterate in use.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, positive values predict the second class.
        """
        return self._decision(self._response(X))

    @staged_block_by_block
    @of_rows
    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Decision function of every iterate, from the start to the last.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            One array for each of :meth:`recorded_iterations`.
        """
        yield from map(self._decision, self._responses(X))


def _has_probabilities(estimator):
    return getattr(estimator, "loss", "log") in estimator._losses_with_probabilities


class RecordedProbabilisticClassifier(RecordedClassifier):
    """Classifiers whose decisions are log odds, with probabilities."""

    # Values of the parameter ``loss`` for which decisions are log odds.
    _losses_with_probabilities: tuple[str | None, ...] = ("log",)

    def _probability(self, decision, t):
        """Probabilities of the classes, from decisions by iterate ``t``."""
        return probabilities_of(decision)

    @available_if(_has_probabilities)
    @block_by_block
    @of_rows
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, by the iterate in use.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._probability(self.decision_function(X), self.iteration_)

    @available_if(_has_probabilities)
    @block_by_block
    @of_rows
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.log(self.predict_proba(X))

    @available_if(_has_probabilities)
    @staged_block_by_block
    @of_rows
    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """Probabilities by every iterate, from the start to the last.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
            One array for each of :meth:`recorded_iterations`.
        """
        decisions = self.staged_decision_function(X)
        yield from map(self._probability, decisions, self.recorded_iterations())

    @available_if(_has_probabilities)
    @documented(SETS)
    @takes_coverage
    @of_rows
    def predict_set(
        self,
        X: Any,
        coverage: ArrayLike = 0.9,
        method: Literal["lac", "aps"] = "lac",
    ) -> np.ndarray:
        """Prediction sets: the classes that a row may belong to, from held-out rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        {coverage, method}

        Returns
        -------
        {ndarray}

        Raises
        ------
        ValueError
            If coverage is not in (0, 1), there are too few held-out rows (or groups)
            for it, or fit held out no rows.

        References
        ----------
        {Sadinle, Romano}

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from skacv import TrajectoryLogisticRegression
        >>> X, y = load_iris(return_X_y=True)
        >>> model = TrajectoryLogisticRegression(C=1.0, cv=5).fit(X, y)
        >>> model.predict_set(X[[0, 133]], coverage=0.99)
        array([[ True, False, False],
               [False,  True,  True]])
        """
        return sets_of(self, X, coverage, method)
