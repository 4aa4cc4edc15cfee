"""Estimators whose stages are not those of separate fits are found.

Adapters that are right are checked in ``tests/staged/test_adapters.py``.
"""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import Lasso, Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.svm import SVC

from skacv.staged import adapter
from skacv.testing import check_staged_adapter

FEW = {"max_iter": 4}


class Stagewise(RegressorMixin, BaseEstimator):
    """Forward stagewise regression, with weights of the rows."""

    def __init__(self, epsilon=0.05, max_iter=1000, warm_start=False):
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.warm_start = warm_start

    def fit(self, X, y, sample_weight=None):
        if not (self.warm_start and hasattr(self, "coef_")):
            self.coef_ = np.zeros(X.shape[1])
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        for _ in range(self.max_iter):
            self.step(X, y, weights)
        return self

    def step(self, X, y, weights):
        product = X.T @ (weights * (y - X @ self.coef_))
        column = np.abs(product).argmax()
        self.coef_[column] += self.epsilon * np.sign(product[column])

    def predict(self, X):
        return X @ self.coef_


class Forgetful(Stagewise):
    """Every fit begins anew."""

    def fit(self, X, y, sample_weight=None):
        if hasattr(self, "coef_"):
            del self.coef_
        return super().fit(X, y, sample_weight)


class Drawing(Stagewise):
    """Steps on columns that are drawn anew in every fit."""

    def step(self, X, y, weights):
        column = np.random.default_rng().integers(X.shape[1])
        self.coef_[column] += self.epsilon * np.random.default_rng().standard_normal()


class OfFirstRows(Stagewise):
    """It remembers the rows of its first fit by the object, across clones."""

    rows: list = []

    def fit(self, X, y, sample_weight=None):
        self.rows.append(X.mean())
        super().fit(X, y, sample_weight)
        self.coef_ = self.coef_ + 1e-3 * (len(self.rows) > 1)
        return self


class WithoutWeights(Stagewise):
    """Weights are accepted, and have no effect on the second and further updates."""

    def fit(self, X, y, sample_weight=None):
        is_first = not hasattr(self, "coef_")
        return super().fit(X, y, sample_weight if is_first else None)


class Sharing(Stagewise):
    """Predicting changes the model."""

    def predict(self, X):
        self.coef_ = self.coef_ * 0.99
        return super().predict(X)


class Changed(Stagewise):
    """A fit changes a parameter of its own."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.epsilon = self.epsilon / 2
        return self


class NotPickled(GradientBoostingRegressor):
    """A pickle has another learning rate than the model."""

    def __getstate__(self):
        return {**super().__getstate__(), "learning_rate": 1.0}

    def __copy__(self):
        other = type(self)()
        vars(other).update(vars(self))
        return other


class Neighbour(ClassifierMixin, BaseEstimator):
    """Neither stages nor iterations."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_the_estimator_of_the_documentation(class_of_page):
    check_staged_adapter(class_of_page("Stagewise")(max_iter=6))


def test_an_estimator_of_a_third_party():
    check_staged_adapter(Stagewise(max_iter=6))
    weights = np.random.default_rng(0).uniform(0.5, 2, 60)
    check_staged_adapter(Stagewise(max_iter=6), sample_weight=weights)


def test_other_roundings_are_allowed_by_a_tolerance():
    X = np.random.default_rng(0).standard_normal((60, 4))
    y = X @ [1.0, 2.0, 0.0, 0.0] + 1
    lasso = Lasso(0.1, max_iter=5, tol=0.0)
    with pytest.warns(Warning, match="Objective did not converge"):
        check_staged_adapter(lasso, X, y, rtol=1e-8)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (Forgetful(**FEW), "does not predict as a separate fit with 2 stages"),
        (Drawing(**FEW), r"does not predict as a separate fit .*set random_state"),
        (OfFirstRows(**FEW), "does not predict as a separate fit"),
        (Sharing(**FEW), "does not predict as a separate fit|looked at"),
        (Changed(**FEW), "does not predict as a separate fit|must have its parameters"),
        (NotPickled(n_estimators=4, random_state=0), "after it has been pickled"),
        (Neighbour(), "cannot be fitted in stages"),
        (Ridge(), "does not predict as a separate fit|cannot be fitted in stages"),
        (SVC(), "cannot be fitted in stages"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_estimator_that_is_wrong_in_one_respect(estimator, message):
    with pytest.raises(AssertionError, match=message):
        check_staged_adapter(estimator)


def test_weights_that_have_no_effect_are_found():
    weights = np.random.default_rng(0).uniform(0.1, 3, 60)
    check_staged_adapter(WithoutWeights(**FEW))
    with pytest.raises(AssertionError, match="does not predict as a separate fit"):
        check_staged_adapter(WithoutWeights(**FEW), sample_weight=weights)


def boosting_adapter():
    return type(adapter.staged_adapter_of(GradientBoostingRegressor()))


BOOSTED = GradientBoostingRegressor(n_estimators=5, random_state=0)


def grow_on_otherwise(grow, self, n_stages, X, y, params):
    """With another rate from the second part on."""
    if hasattr(self.estimator, "estimators_"):
        self.estimator.set_params(learning_rate=0.5)
    grow(self, n_stages, X, y, params)


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("at", lambda at, self, t: at(self, max(1, t - 1)), "separate fit with 2"),
        (
            "predictions",
            lambda predictions, self, X, first, last, sums=None: (
                predictions(self, X, first, last, sums)[0] * (1 + 1e-9),
                predictions(self, X, first, last, sums)[1],
            ),
            "does not predict as a separate fit",
        ),
        ("grow", grow_on_otherwise, "grown in parts is not what it is at once"),
    ],
)
def test_an_adapter_that_is_wrong_in_one_respect(name, wrong, message, monkeypatch):
    cls = boosting_adapter()
    right = getattr(cls, name)
    monkeypatch.setattr(cls, name, lambda self, *args: wrong(right, self, *args))
    with pytest.raises(AssertionError, match=message):
        check_staged_adapter(BOOSTED)


def test_targets():
    X = np.random.default_rng(0).standard_normal((60, 4))
    check_staged_adapter(MultiOutputRegressor(BOOSTED), X, X[:, :2])
    with pytest.raises(ValueError, match="one label for each row"):
        check_staged_adapter(RandomForestClassifier(3), X, (X[:, :2] > 0).astype(int))
