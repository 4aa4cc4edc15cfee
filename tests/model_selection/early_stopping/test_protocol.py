"""Estimators of other classes: what they need, by shape or by inheritance."""

from copy import copy

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.linear_model import Lasso, LinearRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import LeaveOneOut, cross_val_score

from skacv import (
    IterativeRidge,
    TrajectoryEarlyStoppingCV,
    TrajectoryLogisticRegression,
)
from skacv.model_selection import RecordsTrajectory
from tests.cases import covering
from tests.model_selection.cases import NestedLeastSquares

# What every class has to write, as docs/extending.md says.
WRITTEN = "fit", "predict", "at_iteration"


class Boxed(RecordsTrajectory, RegressorMixin, BaseEstimator):
    """An IterativeRidge of which only what is asked of an estimator can be seen."""

    def __init__(self, loo="auto", cv=None):
        self.loo = loo
        self.cv = cv

    def _ridge(self):
        ridge = IterativeRidge(0.0, max_iter=50, risk=False, loo=self.loo, cv=self.cv)
        return getattr(self, "ridge_", ridge)

    def fit(self, X, y):
        return self._show(self._ridge().fit(X, y))

    def fit_up_to(self, n_updates, X, y):
        ridge = self._ridge()
        is_whole = ridge.fit_up_to(n_updates, X, y)
        self._show(ridge)
        return is_whole

    def predict(self, X):
        return self.ridge_.predict(X)

    def recorded_iterations(self):
        return self.ridge_.recorded_iterations()

    def at_iteration(self, t):
        return clone(self)._show(self.ridge_.at_iteration(t))

    def _show(self, ridge):
        self.ridge_, self.n_iter_ = ridge, ridge.n_iter_
        for estimate in ("loo", "cv"):
            for kind in ("path", "se_path", "prediction_path", "indices"):
                name = f"{estimate}_{kind}_"
                if hasattr(ridge, name):
                    setattr(self, name, getattr(ridge, name))
        return self


@pytest.mark.parametrize("patience", [None, 4])
@pytest.mark.parametrize("criterion", ["auto", "loo", "cv", "r2"])
def test_estimators_need_what_they_are_asked_for_alone(criterion, patience, data):
    X, y = data
    settings = {"criterion": criterion, "patience": patience}
    boxed = TrajectoryEarlyStoppingCV(Boxed(), param_grid={"cv": [3, 4]}, **settings)
    ridge = IterativeRidge(0.0, max_iter=50, risk=False)
    whole = TrajectoryEarlyStoppingCV(ridge, param_grid={"cv": [3, 4]}, **settings)
    boxed.fit(X, y)
    whole.fit(X, y)
    np.testing.assert_array_equal(boxed.path_, whole.path_)
    np.testing.assert_array_equal(boxed.predict(X), whole.predict(X))
    assert boxed.best_params_ == whole.best_params_


@pytest.mark.parametrize("missing", WRITTEN)
def test_estimators_that_lack_a_method_are_refused(missing, data):
    own = {name: vars(Boxed)[name] for name in WRITTEN if name != missing}
    lacking = type("Lacking", (RegressorMixin, BaseEstimator), own)()
    assert not isinstance(lacking, RecordsTrajectory)
    sentence = f"an estimator that records its traj.*trees. Lacking has no {missing} "
    with pytest.raises(ValueError, match=sentence) as found:
        TrajectoryEarlyStoppingCV(lacking).fit(*data)
    assert " _" not in str(found.value)  # names of hooks are private


def test_a_refusal_names_what_every_class_has_to_write(data):
    with pytest.raises(ValueError, match=r"Lasso has no at_iteration \(see"):
        TrajectoryEarlyStoppingCV(Lasso()).fit(*data)


@covering(criterion=["auto", "loo", "r2"], loo=["auto", True], patience=[None, 3])
def test_a_class_that_derives_from_the_protocol(criterion, loo, patience, data):
    X, y = data[0][:, :8], data[1]
    model = TrajectoryEarlyStoppingCV(
        NestedLeastSquares(loo), criterion=criterion, patience=patience
    )
    model.fit(X, y)
    splits = LeaveOneOut()
    costs = [
        -cross_val_score(
            LinearRegression(fit_intercept=False),
            X[:, :t],
            y,
            cv=splits,
            scoring="neg_mean_squared_error",
        ).mean()
        for t in range(1, 9)
    ]
    path = (1 - model.path_) * y.var() if criterion == "r2" else model.path_
    np.testing.assert_allclose(path[1:], costs)
    assert model.best_iter_ == 1 + np.argmin(costs)
    assert model.best_params_ == {}
    best = LinearRegression(fit_intercept=False).fit(X[:, : model.best_iter_], y)
    expected = best.predict(X[:, : model.best_iter_])
    np.testing.assert_allclose(model.predict(X), expected)


def test_parameters_of_estimators_without_a_criterion(data):
    """One that computes none of them says so, whatever it lacks."""
    X, y = data

    class Silent(Boxed):
        def __init__(self):
            self.loo, self.cv = False, None

    for criterion in ("auto", "loo", "risk", "cv", "r2"):
        model = TrajectoryEarlyStoppingCV(Silent(), criterion=criterion)
        with pytest.raises(ValueError, match="Silent does not have") as caught:
            model.fit(X, y)
        assert ("memory matrix" in str(caught.value)) == (criterion == "risk")


class Shrunken(RecordsTrajectory, ClassifierMixin, BaseEstimator):
    """Log odds of two classes along the difference of their means, in ten steps.

    Held-out predictions are labels, or probabilities of the classes.
    """

    def __init__(self, cv=None, has_probabilities=True):
        self.cv = cv
        self.has_probabilities = has_probabilities

    def fit(self, X, y):
        self.classes_, label = np.unique(y, return_inverse=True)
        self.n_iter_, self.iteration_ = 10, 10
        self.cv_indices_ = [np.arange(k, len(X), 3) for k in range(3)]
        shares = []
        for rows in self.cv_indices_:
            kept = np.setdiff1d(np.arange(len(X)), rows)
            of_fold = self._learn(X[kept], label[kept])
            shares.append([of_fold._shares(X[rows], t) for t in range(11)])
        self._learn(X, label)
        shares, rows = np.concatenate(shares, axis=1), np.hstack(self.cv_indices_)
        self.cv_prediction_path_ = shares
        if not self.has_probabilities:
            self.cv_prediction_path_ = self.classes_[shares.argmax(axis=2)]
        costs = -np.log(shares[:, np.arange(len(rows)), label[rows]])
        self.cv_path_, self.cv_se_path_ = costs.mean(1), costs.std(1)
        return self

    def _learn(self, X, label):
        learned = copy(self)
        self.slope_ = learned.slope_ = X[label == 1].mean(0) - X[label == 0].mean(0)
        return learned

    def _shares(self, X, t):
        decision = (t - 2) * X @ self.slope_
        return np.stack([expit(-decision), expit(decision)], axis=1)

    def predict_proba(self, X):
        return self._shares(X, self.iteration_)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def at_iteration(self, t):
        stopped = copy(self)
        stopped.iteration_ = t
        return stopped


@pytest.fixture
def labelled(data, rng):
    X, y = data
    return X[:, :4], np.array(["no", "yes"])[(y + rng.standard_normal(80) > 0) * 1]


@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc", "f1_macro"])
def test_held_out_predictions_of_a_classifier_may_be_probabilities(scoring, labelled):
    X, y = labelled
    model = TrajectoryEarlyStoppingCV(Shrunken(), criterion=scoring).fit(X, y)
    alone, scorer = Shrunken().fit(X, y), get_scorer(scoring)
    rows = np.hstack(alone.cv_indices_)
    for shares, score in zip(alone.cv_prediction_path_, model.path_, strict=True):
        of_labels = alone.classes_[shares.argmax(axis=1)]
        given = {"neg_log_loss": shares, "roc_auc": shares[:, 1], "f1_macro": of_labels}
        sign, metric, kwargs = scorer._sign, scorer._score_func, scorer._kwargs
        expected = sign * metric(y[rows], given[scoring], **kwargs)
        assert score == pytest.approx(expected, rel=1e-9)
    np.testing.assert_array_equal(
        model.held_out_prediction_[rows], alone.cv_prediction_path_[model.best_iter_]
    )


def test_a_classifier_with_held_out_probabilities_is_blended(labelled):
    X, y = labelled
    members = [("own", Shrunken()), ("log", TrajectoryLogisticRegression(cv=3))]
    model = TrajectoryEarlyStoppingCV(members, criterion="neg_log_loss", rule="blend")
    model.fit(X, y)
    assert model.weights_.keys() == {"own", "log"}
    assert np.isfinite(model.best_score_)


def test_held_out_predictions_of_a_classifier_may_be_labels(labelled):
    X, y = labelled
    own = Shrunken(has_probabilities=False)
    model = TrajectoryEarlyStoppingCV(own, criterion="accuracy").fit(X, y)
    rows, found = np.hstack(model.estimator_.cv_indices_), own.fit(X, y)
    expected = (found.cv_prediction_path_ == y[rows]).mean(axis=1)
    np.testing.assert_allclose(model.path_, expected)
    with pytest.raises(AttributeError, match="predict_proba"):
        clone(model).set_params(criterion="neg_log_loss").fit(X, y)
