"""Estimators of other classes: what they need, by shape or by inheritance."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.linear_model import Lasso, LinearRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import (
    GroupKFold,
    LeaveOneOut,
    check_cv,
    cross_val_score,
)

from skacv import (
    IterativeRidge,
    RiskPathDisplay,
    TrajectoryEarlyStoppingCV,
    TrajectoryLogisticRegression,
)
from skacv.model_selection import RecordsTrajectory
from skacv.optim.losses import SquaredError
from skacv.records import HeldOut, Record, Run
from skacv.records.paths import ParamsPath
from tests.cases import covering
from tests.model_selection.cases import NestedLeastSquares, NestedRun

# What every class has to write, as docs/extending.md says.
WRITTEN = "begin", "predict"


class Boxed(RecordsTrajectory, RegressorMixin, BaseEstimator):
    """The run of an IterativeRidge, of which nothing else can be seen."""

    def __init__(self, loo="auto", cv=None):
        self.loo = loo
        self.cv = cv

    def begin(self, X, y):
        ridge = IterativeRidge(0.0, max_iter=50, risk=False, loo=self.loo, cv=self.cv)
        return ridge.begin(X, y)

    def predict(self, X):
        coef, intercept = self.record_.iterate
        return X @ coef + intercept


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
    np.testing.assert_allclose(boxed.predict(X), whole.predict(X), rtol=1e-12)
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
    with pytest.raises(ValueError, match=r"Lasso has no begin \(see"):
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


def slope_of(X, label):
    """The difference of the means of two classes."""
    return X[label == 1].mean(0) - X[label == 0].mean(0)


def at_step(slope, t):
    """The slope of the log odds after t steps."""
    return (t - 2) * slope


def shares_of(decision):
    """The probabilities of two classes."""
    return np.stack([expit(-decision), expit(decision)], axis=-1)


class ShrunkenRun(Run):
    """Ten steps at once, with three folds."""

    def __init__(self, X, y, has_probabilities):
        self.X, self.y, self.has_probabilities = X, y, has_probabilities

    def go_on(self, n_updates=None, progress=None):
        return True

    def record(self):
        X, (classes, label) = self.X, np.unique(self.y, return_inverse=True)
        folds, decisions = [np.arange(k, len(X), 3) for k in range(3)], []
        for rows in folds:
            kept = np.setdiff1d(np.arange(len(X)), rows)
            slope = slope_of(X[kept], label[kept])
            decisions.append([X[rows] @ at_step(slope, t) for t in range(11)])
        shares, rows = shares_of(np.concatenate(decisions, axis=1)), np.hstack(folds)
        costs = -np.log(shares[:, np.arange(len(rows)), label[rows]])
        held_out = HeldOut(
            path=costs.mean(1),
            se_path=costs.std(1),
            indices=folds,
            target=self.y[rows],
            prediction=shares
            if self.has_probabilities
            else classes[shares.argmax(axis=2)],
        )
        iterates = ParamsPath(slope_of(X, label), at_step)
        last = {"iteration": 10, "iterate": iterates.at(10), "n_iter": 10}
        return Record(iterates, **last, classes=classes, estimates={"cv": held_out})


class Shrunken(RecordsTrajectory, ClassifierMixin, BaseEstimator):
    """Log odds of two classes along the difference of their means, in ten steps.

    Held-out predictions are labels, or probabilities of the classes.
    """

    def __init__(self, cv=None, has_probabilities=True):
        self.cv = cv
        self.has_probabilities = has_probabilities

    def begin(self, X, y):
        return ShrunkenRun(X, y, self.has_probabilities)

    def predict_proba(self, X):
        return shares_of(X @ self.record_.iterate)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


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


# ---------------------------------------------------------- side by side with others


class OfSquares(NestedLeastSquares):
    """It says what its paths are means of, and so do its records."""

    path_loss = SquaredError()

    def begin(self, X, y):
        return WithLoss(X, y, bool(self.loo))


class WithLoss(NestedRun):
    """A run whose record has the loss and the weights of the rows."""

    def record(self):
        weights = np.ones(len(self.y))
        return replace(super().record(), loss=SquaredError(), weights=weights)


def test_a_regressor_that_says_its_loss_is_blended(data):
    X, y = data[0][:, :8], data[1]
    members = [("own", OfSquares(True)), ("ridge", IterativeRidge(0.0, loo=True))]
    model = TrajectoryEarlyStoppingCV(members, criterion="loo", rule="blend")
    model.fit(X, y)
    assert model.weights_.keys() == {"own", "ridge"}
    best = TrajectoryEarlyStoppingCV(members, criterion="loo").fit(X, y)
    # A weight of one is the best member, up to rounding.
    assert model.best_score_ <= best.best_score_ * (1 + 1e-9)
    assert set(model.leaderboard()["metric"]) == {"squared error"}
    assert np.isfinite(model.best_score_corrected_)


def test_a_display_of_an_estimator_of_ones_own(data):
    pytest.importorskip("matplotlib")
    X, y = data[0][:, :8], data[1]
    model = TrajectoryEarlyStoppingCV(OfSquares(True), criterion="loo").fit(X, y)
    display = RiskPathDisplay.from_estimator(model)
    assert list(display.lines_) == ["loo"]
    assert display.ax_.get_ylabel().startswith("mean squared error")
    with pytest.raises(TypeError, match="OfSquares has no method staged_loss"):
        RiskPathDisplay.from_estimator(model, X_test=X, y_test=y)


def test_splits_that_have_been_drawn_are_a_splitter_of_scikit_learn(data):
    X, y = data
    seen = []

    class Splitting(Boxed):
        def begin(self, X, y, groups=None):
            folds = list(check_cv(self.cv).split(X, y, groups))
            seen.append([rows.tolist() for _, rows in folds])
            return IterativeRidge(0.0, risk=False, loo=False, cv=folds).begin(X, y)

    cv, groups = GroupKFold(4), np.arange(len(y)) // 5
    TrajectoryEarlyStoppingCV(Splitting(loo=False, cv=cv), criterion="cv").fit(
        X, y, groups=groups
    )
    expected = [rows.tolist() for _, rows in cv.split(X, y, groups)]
    assert seen == [expected]
