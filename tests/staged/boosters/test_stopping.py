"""The best stage of boosters is kept: pickles, pipelines, grids."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from skacv import Staged, TrajectoryEarlyStoppingCV, TrajectoryLasso
from skacv.staged.adapters import staged_adapter_of
from tests.internals import stages_of
from tests.runs import InParts
from tests.test_fitted_state import rows_in

from .cases import PLAIN, answer, booster, by_hand, table


@pytest.mark.parametrize("name", PLAIN)
def test_the_best_stage_is_kept(name):
    X, y = load_diabetes(return_X_y=True)
    inner = booster(name, 400, learning_rate=0.2)
    model = TrajectoryEarlyStoppingCV(inner, cv=KFold(4), patience=20).fit(X, y)
    t, count = model.best_iter_, staged_adapter_of(inner).count
    assert 1 <= t < model.estimator_.n_iter_ < 400
    assert model.best_params_ == {count: t}
    errors = [
        np.mean((y[judged] - by_hand(inner, t, X, y, fitted).predict(X[judged])) ** 2)
        for fitted, judged in KFold(4).split(X)
    ]
    assert model.best_score_ == pytest.approx(
        np.average(errors, weights=[111, 111, 110, 110])
    )
    fresh = by_hand(inner, t, X, y, np.arange(len(y)))
    np.testing.assert_array_equal(model.predict(X), fresh.predict(X))
    np.testing.assert_array_equal(
        model.estimator_.feature_importances_, fresh.feature_importances_
    )
    assert model.predict_interval(X[:3]).shape == (3, 2)


@pytest.mark.parametrize("name", [*PLAIN, "LGBMClassifier"])
def test_pickles(name):
    X, y = table("three words" if "Classifier" in name else "values")
    model = TrajectoryEarlyStoppingCV(booster(name), cv=3).fit(X, y)
    assert not rows_in(pickle.dumps(model), X)
    for other in (pickle.loads(pickle.dumps(model)), deepcopy(model)):
        np.testing.assert_array_equal(answer(other, X), answer(model, X))
        assert other.at_iteration(3).iteration_ == 3
    # In the middle of a run, which goes on; what is unpickled begins anew.
    begun = Staged(booster(name), cv=3)
    parts = InParts(begun, X, y)
    parts.go_on(5)
    other = pickle.loads(pickle.dumps(begun))
    np.testing.assert_array_equal(answer(other, X), answer(begun, X))
    InParts(other, X, y).go_on(9)
    parts.go_on(9)
    np.testing.assert_array_equal(other.cv_path_, begun.cv_path_)


@pytest.mark.parametrize("name", PLAIN)
def test_training_rows_are_freed(name):
    X, y = table()
    model = Staged(booster(name), cv=3).fit(X, y)
    stages = stages_of(model)
    assert getattr(stages, "training", None) is getattr(stages, "thread", None) is None
    assert not getattr(stages.booster, "train_set", None)
    np.testing.assert_array_equal(
        model.predict(X), model.at_iteration(12).estimator_.predict(X)
    )


@pytest.mark.parametrize("name", PLAIN)
def test_a_pipeline_with_an_imputer_before(name):
    X, y = table()
    inner = booster(name)
    model = Staged(make_pipeline(SimpleImputer(), inner), cv=3).fit(X, y)
    place = 0
    for judged in model.cv_indices_:
        fitted = np.setdiff1d(np.arange(len(y)), judged)
        pipe = make_pipeline(SimpleImputer(), clone(inner)).fit(X[fitted], y[fitted])
        found = model.cv_prediction_path_[12][place : place + len(judged)]
        np.testing.assert_array_equal(found, pipe.predict(X[judged]))
        place += len(judged)


@pytest.mark.parametrize("name", PLAIN)
def test_grids_of_parameters(name):
    X, y = table()
    rates = [0.05, 0.3]
    inside = TrajectoryEarlyStoppingCV(
        booster(name), cv=3, param_grid={"learning_rate": rates}
    ).fit(X, y)
    assert inside.best_params_["learning_rate"] in rates
    outside = GridSearchCV(
        TrajectoryEarlyStoppingCV(booster(name), cv=3),
        {"estimator__learning_rate": rates},
        cv=2,
    ).fit(X, y)
    assert outside.best_params_["estimator__learning_rate"] in rates
    scores = cross_val_score(TrajectoryEarlyStoppingCV(booster(name), cv=3), X, y, cv=2)
    assert (scores > 0).all()


@pytest.mark.parametrize("name", PLAIN)
def test_beside_members_of_our_own(name):
    X, y = table()
    X = np.nan_to_num(X)
    members = [("lasso", TrajectoryLasso("path")), ("trees", booster(name, 60))]
    model = TrajectoryEarlyStoppingCV(members, cv=3, random_state=0).fit(X, y)
    assert set(model.member_paths_) == {"lasso", "trees"}
    assert model.best_member_ == "trees"


@pytest.mark.parametrize("rule", ["min", "blend"])
@pytest.mark.parametrize("name", PLAIN)
def test_a_limit_that_is_too_small_has_its_own_name(name, rule):
    X, y = load_diabetes(return_X_y=True)
    inner = booster(name, 20, learning_rate=0.02)
    members = [("boosted", inner), ("lasso", TrajectoryLasso(1e4, max_iter=1))]
    model = TrajectoryEarlyStoppingCV(members, rule=rule, cv=3)
    said = "iterate of 'boosted', 20 of 20 trees, is the last .* {}=20 may be too small"
    with pytest.warns(UserWarning, match=said.format(staged_adapter_of(inner).count)):
        model.fit(X, y)
