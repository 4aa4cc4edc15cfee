"""``Staged`` is what the estimator in it is."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import Staged, TrajectoryEarlyStoppingCV
from tests.runs import InParts

from .cases import SMALL, assert_same_fits, boosted


def test_type_and_methods_are_those_of_the_estimator(data, labelled):
    assert is_regressor(Staged(boosted()))
    assert is_classifier(Staged(HistGradientBoostingClassifier()))
    assert not hasattr(Staged(boosted()), "predict_proba")
    assert not hasattr(Staged(SGDClassifier()), "predict_interval")
    X, y = labelled
    model = Staged(HistGradientBoostingClassifier(**SMALL)).fit(X, y)
    by_hand = HistGradientBoostingClassifier(**SMALL).fit(X, y)
    for method in ("predict", "predict_proba", "decision_function"):
        expected = getattr(by_hand, method)(X)
        np.testing.assert_array_equal(getattr(model, method)(X), expected)
    log_proba = np.log(by_hand.predict_proba(X))
    np.testing.assert_array_equal(model.predict_log_proba(X), log_proba)
    staged = zip(model.staged_predict_proba(X), by_hand.staged_predict_proba(X))
    for found, expected in staged:
        np.testing.assert_array_equal(found, expected)
    assert model.score(X, y) == by_hand.score(X, y)


def test_attributes_of_the_estimator_are_its_own(data):
    X, y = data
    model = Staged(GradientBoostingRegressor(n_estimators=3, random_state=0))
    name = "feature_importances_"
    with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
        getattr(model, name)
    model.fit(X, y)
    by_hand = GradientBoostingRegressor(n_estimators=3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(
        model.feature_importances_, by_hand.feature_importances_
    )
    for name in ("coef_", "colour"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            getattr(model, name)


def test_clones_and_parameters(data):
    model = Staged(boosted(), cv=3)
    twin = clone(model).set_params(learning_rate=0.3, cv=4)
    assert (twin.estimator.learning_rate, twin.cv) == (0.3, 4)
    assert model.estimator.learning_rate == 0.1
    assert twin.set_params(estimator__max_iter=7).estimator.max_iter == 7
    twin.set_params(estimator=boosted(), max_iter=9)
    assert (twin.estimator.max_iter, twin.estimator.learning_rate) == (9, 0.1)
    with pytest.raises(
        ValueError, match="Invalid parameter 'colour' for estimator Hist"
    ):
        twin.set_params(colour=1)
    assert "learning_rate" not in model.get_params(deep=False)
    pipe = Staged(make_pipeline(StandardScaler(), boosted()))
    pipe.set_params(histgradientboostingregressor__max_iter=4)
    assert pipe.estimator[-1].max_iter == 4


def test_the_estimator_that_is_passed_stays_as_it_is(data):
    X, y = data
    inner = boosted(early_stopping=True, verbose=1)
    before = inner.get_params()
    with pytest.warns(UserWarning, match="early_stopping=True of HistGradientBoosting"):
        Staged(inner, cv=2).fit(X, y)
    assert inner.get_params() == before
    assert not hasattr(inner, "_predictors")


def test_pickles(data):
    X, y = data
    model = Staged(boosted(), cv=3)
    parts = InParts(model, X, y)
    parts.go_on(3)
    model = pickle.loads(pickle.dumps(model))  # of a run that may go on
    assert model.n_iter_ == 3
    model.fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_same_fits(again, model, X)
    for t in model.recorded_iterations():
        found, expected = again.at_iteration(t), model.at_iteration(t)
        np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    # What folds have grown, and bins of the rows, are not kept.
    alone = Staged(boosted()).fit(X, y)
    folds = 6 * 60 * 8 + 60 * 40
    assert len(pickle.dumps(model)) < len(pickle.dumps(alone)) + folds
    n_bytes = pickle.dumps(alone.estimator_)
    assert len(pickle.dumps(alone)) < 2 * len(n_bytes)


def test_stages_are_counted_from_one(data):
    X, y = data
    model = Staged(boosted(), cv=3).fit(X, y)
    assert model.at_iteration(-1).iteration_ == 5
    assert model.at_iteration(np.int64(-5)).iteration_ == 1
    stopped = model.at_iteration(2)
    assert (stopped.iteration_, stopped.n_iter_) == (2, 5)
    assert stopped.estimator_.max_iter == 2
    assert model.iteration_ == 5
    np.testing.assert_array_equal(stopped.at_iteration(5).predict(X), model.predict(X))
    for t in (6, -7):
        with pytest.raises(ValueError, match=rf"t must be in \[-6, 5\], got {t}"):
            model.at_iteration(t)
    for t in (0, -6):
        with pytest.raises(ValueError, match="Iterate 0 was not kept"):
            model.at_iteration(t)
    with pytest.raises(TypeError, match=r"t must be an integer, got 2\.0"):
        model.at_iteration(2.0)
    with pytest.raises(NotFittedError):
        Staged(boosted()).at_iteration(1)


def test_intervals_are_those_of_held_out_residuals(data):
    X, y = data
    model = Staged(boosted(), cv=KFold(3)).fit(X, y).at_iteration(3)
    residuals = y - model.cv_prediction_path_[3]
    found = model.predict_interval(X, 0.8, "cv")
    assert found.shape == (60, 2)
    width = found[:, 1] - found[:, 0]
    np.testing.assert_allclose(width, width[0])
    assert np.mean(np.abs(residuals) <= width[0] / 2) >= 0.8
    with pytest.raises(ValueError, match="fitted without any"):
        Staged(boosted()).fit(X, y).predict_interval(X)


def test_scorers_read_held_out_predictions(labelled):
    X, y = labelled
    model = Staged(HistGradientBoostingClassifier(**SMALL), cv=3).fit(X, y)
    rows = np.concatenate(model.cv_indices_)
    found = model.cv_prediction_path_[4]
    truth = y[rows] == "yes"
    order = found[:, 1]
    pairs = (order[truth][:, None] > order[~truth]) + 0.5 * (
        order[truth][:, None] == order[~truth]
    )
    for name, expected in {
        "roc_auc": pairs.mean(),
        "accuracy": np.mean((order > 0.5) == truth),
        "neg_log_loss": -log_loss(y[rows], found),
    }.items():
        stopped = TrajectoryEarlyStoppingCV(clone(model), criterion=name)
        np.testing.assert_allclose(stopped.fit(X, y).path_[4], expected)


def test_inside_other_estimators(data):
    X, y = data
    scores = cross_val_score(Staged(boosted(), cv=2), X, y, cv=KFold(3))
    np.testing.assert_array_equal(scores, cross_val_score(boosted(), X, y, cv=KFold(3)))
    pipe = make_pipeline(SimpleImputer(), Staged(boosted())).fit(X, y)
    np.testing.assert_array_equal(pipe.predict(X), boosted().fit(X, y).predict(X))
