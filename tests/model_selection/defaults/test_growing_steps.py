"""Steps of the default's boosted trees: equal at first, then in proportion."""

import pickle

import numpy as np
import pytest
from sklearn import ensemble
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression

from skacv.model_selection.defaults.growing_steps import (
    MOST_GROWTH,
    N_EQUAL,
    GrowingStep,
    GrowingStepClassifier,
    GrowingStepRegressor,
)
from skacv.staged import Staged
from tests.internals import TASKS, default_members

PARAMS = {"max_leaf_nodes": 3, "early_stopping": False, "random_state": 0}
REGRESSION = make_regression(80, 4, noise=1.0, random_state=0)
CLASSES = make_classification(80, 4, n_informative=3, n_redundant=0, random_state=0)
CASES = [
    (GrowingStepRegressor, ensemble.HistGradientBoostingRegressor, REGRESSION),
    (GrowingStepClassifier, ensemble.HistGradientBoostingClassifier, CLASSES),
]


def raw_sums(model, X):
    """The sums of the trees after every stage, (n_stages, n_samples)."""
    return np.stack([raw[:, 0] for raw in model._staged_raw_predict(X)])


def sums_by_hand(plain, X, y, rates):
    """The sums of trees that are grown one at a time, each at its own rate."""
    model = clone(plain).set_params(warm_start=True)
    for number, rate in enumerate(rates, 1):
        model.set_params(max_iter=number, learning_rate=rate).fit(X, y)
    return raw_sums(model, X)


@pytest.mark.parametrize(("growing", "plain", "data"), CASES)
def test_trees_have_the_steps_of_one_by_one(growing, plain, data):
    n_trees = N_EQUAL + 40
    rates = 0.1 * np.maximum(1, np.arange(1, n_trees + 1) / N_EQUAL)
    expected = sums_by_hand(plain(**PARAMS), *data, rates)
    model = growing(max_iter=n_trees, **PARAMS).fit(*data)
    np.testing.assert_allclose(raw_sums(model, data[0]), expected, rtol=1e-9)
    equal = plain(max_iter=n_trees, **PARAMS).fit(*data)
    first = raw_sums(equal, data[0])
    np.testing.assert_array_equal(expected[:N_EQUAL], first[:N_EQUAL])
    assert not np.allclose(expected[-1], first[-1], rtol=1e-6)


@pytest.mark.parametrize(("growing", "plain", "data"), CASES)
def test_steps_grow_no_further_than_their_limit(growing, plain, data):
    model = growing(max_iter=1, **PARAMS).fit(*data)
    model._is_growing = True
    model._predictors = model._predictors * int(2 * MOST_GROWTH * N_EQUAL)
    assert model.learning_rate == 0.1 * MOST_GROWTH


@pytest.mark.parametrize(("growing", "plain", "data"), CASES)
def test_parameters_are_those_that_were_set(growing, plain, data):
    model = growing(learning_rate=0.2, max_iter=N_EQUAL + 5, **PARAMS).fit(*data)
    for one in (model, clone(model), pickle.loads(pickle.dumps(model))):
        assert one.get_params() == model.get_params()
        assert one.learning_rate == 0.2
    assert model.get_params().keys() == plain().get_params().keys()
    with pytest.raises(ValueError, match="learning_rate"):
        growing(learning_rate=0.0).fit(*data)
    assert growing(learning_rate=0.3).fit(*data, np.ones(80)).learning_rate == 0.3


@pytest.mark.parametrize(("growing", "plain", "data"), CASES)
def test_stages_are_those_of_one_fit(growing, plain, data):
    """Grown in parts beside folds, as well as at once."""
    n_trees = N_EQUAL + 30
    staged = Staged(growing(max_iter=n_trees, **PARAMS), cv=3).fit(*data)
    model = growing(max_iter=n_trees, **PARAMS).fit(*data)
    np.testing.assert_allclose(
        raw_sums(staged.estimator_, data[0]), raw_sums(model, data[0]), rtol=1e-12
    )


def test_quantiles_have_the_steps_as_well():
    """Their leaves are changed after a tree has been grown."""
    X, y = REGRESSION
    params = PARAMS | {"loss": "quantile", "quantile": 0.8}
    rates = 0.1 * np.maximum(1, np.arange(1, N_EQUAL + 21) / N_EQUAL)
    plain = ensemble.HistGradientBoostingRegressor(**params)
    model = GrowingStepRegressor(max_iter=len(rates), **params).fit(X, y)
    expected = sums_by_hand(plain, X, y, rates)
    np.testing.assert_allclose(raw_sums(model, X), expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_classes_without_noise_need_fewer_trees(seed):
    """The held-out loss of 500 trees of equal steps is reached by 300, or nearly."""
    X = np.random.RandomState(seed).standard_normal((150, 2))
    y = (X[:, 0] > X[:, 1]).astype(int)
    trees = {"max_iter": 500, "random_state": 0, "l2_regularization": 5.0}
    equal = Staged(ensemble.HistGradientBoostingClassifier(**trees), cv=3).fit(X, y)
    growing = Staged(GrowingStepClassifier(**trees), cv=3).fit(X, y)
    of_equal, of_growing = equal.cv_path_, growing.cv_path_
    np.testing.assert_array_equal(of_growing[:N_EQUAL], of_equal[:N_EQUAL])
    assert of_growing[:300].min() < 1.03 * of_equal.min()
    assert growing.train_path_[300] < 0.9 * equal.train_path_[300]


@pytest.mark.parametrize("task", TASKS)
def test_the_default_has_them(task):
    trees = default_members(task)["boosted trees"]
    assert isinstance(trees.estimator, GrowingStep)
