"""Metadata routing: what reaches members is what reaches them without it."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
)
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    IterativeRidge,
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)
from tests.cases import covering

pytestmark = [
    pytest.mark.usefixtures("few_trees"),
    # So few trees are.
    pytest.mark.filterwarnings("ignore:The chosen stage is worse"),
]
FOREST = ExtraTreesRegressor(3, random_state=0)
FOREST_OF_CLASSES = ExtraTreesClassifier(3, random_state=0)
LOGISTIC = TrajectoryLogisticRegression("path", max_iter=3)
STEPS = make_pipeline(StandardScaler(), FOREST_OF_CLASSES)


def regressors():
    return [("lasso", TrajectoryLasso("path", max_iter=3)), ("forest", clone(FOREST))]


def classifiers():
    return [("logistic", clone(LOGISTIC)), ("steps", clone(STEPS))]


REGRESSORS = {
    "default": SelfStoppingRegressor(random_state=0),
    "list": TrajectoryEarlyStoppingCV(regressors(), random_state=0),
    "blend": TrajectoryEarlyStoppingCV(regressors(), rule="blend", random_state=0),
    "forest": TrajectoryEarlyStoppingCV(FOREST, random_state=0),
}
CLASSIFIERS = {
    "default": SelfStoppingClassifier(random_state=0),
    "list": TrajectoryEarlyStoppingCV(classifiers(), random_state=0),
    "blend": SelfStoppingClassifier(classifiers(), rule="blend", random_state=0),
    "logistic": SelfStoppingClassifier(LOGISTIC, random_state=0),
    "steps": TrajectoryEarlyStoppingCV(STEPS, random_state=0),
}


@pytest.fixture
def data(rng):
    X = rng.standard_normal((60, 3))
    y = X[:, 0] + 0.5 * rng.standard_normal(60)
    return X, y, y > 0.5, rng.uniform(0.2, 3, 60), np.arange(60) // 4


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def without_routing(model, *args, **params):
    with sklearn.config_context(enable_metadata_routing=False):
        return clone(model).fit(*args, **params)


def check_same(model, expected, X):
    assert model.best_score_ == expected.best_score_
    assert model.weights_ == expected.weights_
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


@pytest.mark.parametrize("name", REGRESSORS)
def test_groups_reach_the_folds(name, data, routing):
    X, y, _, _, groups = data
    model = clone(REGRESSORS[name]).set_params(cv=GroupKFold(3))
    model.fit(X, y, groups=groups)
    check_same(model, without_routing(model, X, y, groups=groups), X)


def test_groups_reach_the_folds_inside_of_cross_validation(data, routing):
    X, y, _, _, groups = data
    model = clone(REGRESSORS["blend"]).set_params(cv=GroupKFold(3))
    cv = GroupKFold(2)
    scores = cross_val_score(model, X, y, params={"groups": groups}, cv=cv)
    expected = []
    for fitted, held_out in cv.split(X, y, groups):
        args, of_fold = (X[fitted], y[fitted]), {"groups": groups[fitted]}
        alone = without_routing(model, *args, **of_fold)
        expected.append(alone.estimator_.score(X[held_out], y[held_out]))
    np.testing.assert_allclose(scores, expected)


@covering(name=CLASSIFIERS, with_weights=[False, True])
def test_weights_of_classes_need_no_requests(name, with_weights, data, routing):
    X, _, label, weights, _ = data
    params = {"sample_weight": weights} if with_weights else {}
    model = clone(CLASSIFIERS[name]).set_params(class_weight="balanced")
    if with_weights:
        model.set_fit_request(sample_weight=True)
    model.fit(X, label, **params)
    check_same(model, without_routing(model, X, label, **params), X)


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_request_of_weights_is_one_of_all_members(name, data, routing):
    X, y, _, weights, _ = data
    model = clone(REGRESSORS[name]).set_fit_request(sample_weight=True)
    model.fit(X, y, sample_weight=weights)
    check_same(model, without_routing(model, X, y, sample_weight=weights), X)


@pytest.mark.parametrize("with_weights", [False, True])
def test_bagging_of_the_usual_trees(with_weights, data, routing):
    """Its parameter ``estimator`` is None; with routing it draws rows otherwise."""
    X, y, _, weights, _ = data
    params = {"sample_weight": weights} if with_weights else {}
    bagging = BaggingRegressor(n_estimators=3, random_state=0)
    model = TrajectoryEarlyStoppingCV(bagging, cv=3).set_fit_request(sample_weight=True)
    alone = clone(bagging).set_fit_request(sample_weight=True)
    try:
        alone.fit(X, y, **params)
    except UnsetMetadataPassedError:  # older versions: of trees that nobody can ask
        with pytest.raises(UnsetMetadataPassedError, match="DecisionTreeRegressor"):
            model.fit(X, y, **params)
        return
    model.fit(X, y, **params)
    expected = alone.set_params(n_estimators=model.best_iter_).fit(X, y, **params)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


def test_default_members_get_the_weights_that_are_passed(data, routing):
    X, y, _, weights, _ = data
    model = SelfStoppingRegressor(random_state=0).fit(X, y, sample_weight=weights)
    check_same(model, without_routing(model, X, y, sample_weight=weights), X)
    # No member that can be reached would have to ask.
    score = model.score(X, y, sample_weight=weights)
    with sklearn.config_context(enable_metadata_routing=False):
        assert score == model.score(X, y, sample_weight=weights)
    assert score != model.score(X, y)


@covering(name=REGRESSORS, alias=[True, "rows"])
def test_weights_inside_of_cross_validation(name, alias, data, routing):
    X, y, _, weights, _ = data
    model, cv = clone(REGRESSORS[name]), KFold(2)
    model.set_fit_request(sample_weight=alias).set_score_request(sample_weight=alias)
    params = {"rows" if alias == "rows" else "sample_weight": weights}
    scores = cross_val_score(model, X, y, params=params, cv=cv, error_score="raise")
    expected = []
    for fitted, held_out in cv.split(X):
        args = X[fitted], y[fitted], weights[fitted]
        alone = without_routing(model, *args)
        with sklearn.config_context(enable_metadata_routing=False):
            expected.append(alone.score(X[held_out], y[held_out], weights[held_out]))
    np.testing.assert_allclose(scores, expected)


def test_errors_name_what_can_be_reached(data, routing):
    X, y, _, weights, _ = data
    params = {"sample_weight": weights}
    with pytest.raises(UnsetMetadataPassedError, match="SelfStoppingRegressor"):
        cross_val_score(
            SelfStoppingRegressor(), X, y, params=params, error_score="raise"
        )
    with pytest.raises(UnsetMetadataPassedError, match="for TrajectoryLasso"):
        clone(REGRESSORS["list"]).fit(X, y, sample_weight=weights)


def test_requests_of_members_come_first(data, routing):
    X, y, _, weights, _ = data
    ridge = IterativeRidge(0.0, max_iter=5).set_fit_request(sample_weight=False)
    lasso = TrajectoryLasso("path", max_iter=3).set_fit_request(sample_weight="lasso")
    members = [("ridge", ridge), ("lasso", lasso)]
    model = TrajectoryEarlyStoppingCV(members, criterion="cv")
    model.set_fit_request(sample_weight=True).fit(X, y, lasso=weights)
    for name, weights_of in (("ridge", None), ("lasso", weights)):
        alone = TrajectoryEarlyStoppingCV(dict(members)[name], criterion="cv")
        expected = without_routing(alone, X, y, sample_weight=weights_of)
        np.testing.assert_array_equal(model.member_paths_[name], expected.path_)
    assert dict(model.estimator)["lasso"] is lasso  # and as it was
