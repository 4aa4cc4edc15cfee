"""Every adapter of scikit-learn's estimators against clones, grown by hand on folds."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.datasets import make_regression
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import (
    LogisticRegression,
    MultiTaskLasso,
    Perceptron,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import get_tags

from skacv import Staged
from skacv.staged import adapters
from skacv.staged.adapter import StagedAdapter, response_of
from skacv.staged.adapters import ADAPTERS, staged_adapter_of
from skacv.staged.boosters import Boosters
from skacv.testing import check_staged_adapter
from skacv.testing.staged_adapters import stages_by_hand
from tests.runs import InParts, run_after_laps

SEED = {"random_state": 0}
FEW = {"n_estimators": 4, **SEED}
TREES = {"max_depth": 3}
REGRESSORS = [
    HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=5, **SEED),
    HistGradientBoostingRegressor(
        loss="poisson", max_iter=4, min_samples_leaf=5, max_features=0.5, **SEED
    ),
    HistGradientBoostingRegressor(
        loss="absolute_error", max_iter=4, min_samples_leaf=5, **SEED
    ),
    GradientBoostingRegressor(subsample=0.7, **FEW),
    GradientBoostingRegressor(loss="huber", max_features=2, **FEW),
    AdaBoostRegressor(DecisionTreeRegressor(max_depth=2), **FEW),
    RandomForestRegressor(**TREES, **FEW),
    ExtraTreesRegressor(bootstrap=True, **TREES, **FEW),
    BaggingRegressor(DecisionTreeRegressor(max_depth=2), max_features=0.5, **FEW),
    MLPRegressor(hidden_layer_sizes=(5,), max_iter=5, batch_size=16, **SEED),
    SGDRegressor(max_iter=5, eta0=0.001, **SEED),
]
CLASSIFIERS = [
    HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=5, **SEED),
    GradientBoostingClassifier(subsample=0.7, **FEW),
    AdaBoostClassifier(**FEW),
    RandomForestClassifier(**TREES, **FEW),
    ExtraTreesClassifier(**TREES, **FEW),
    BaggingClassifier(max_samples=0.6, **FEW),
    MLPClassifier(hidden_layer_sizes=(5,), max_iter=5, batch_size=16, **SEED),
    SGDClassifier(max_iter=5, average=True, **SEED),
    SGDClassifier(loss="log_loss", max_iter=5, **SEED),
    Perceptron(max_iter=5, penalty="l2", **SEED),
]
ALL = REGRESSORS + CLASSIFIERS


def named(estimator):
    return f"{type(estimator).__name__}-{getattr(estimator, 'loss', '')}"


def table(estimator, rng, n_classes=3, n_rows=60):
    X = rng.standard_normal((n_rows, 4))
    signal = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n_rows)
    if not is_classifier(estimator):
        return X, np.abs(signal) + 0.1
    edges = np.quantile(signal, np.arange(1, n_classes) / n_classes)
    return X, np.array(["low", "mid", "top"])[np.digitize(signal, edges)]


def grown_by_hand(estimator, n_stages, X, y, **params):
    """An estimator of so many stages, as a user of the library would have it."""
    *_, (_, grown) = stages_by_hand(estimator, n_stages, X, y, **params)
    return grown


def test_every_adapter_has_an_estimator_here():
    tried = {type(staged_adapter_of(estimator)) for estimator in ALL}
    of_libraries = {adapter for adapter in ADAPTERS if issubclass(adapter, Boosters)}
    below = {adapters.Iterations, adapters.PerOutput}  # and test_several_outputs.py
    below.add(adapters.FeatureMachines)  # in kernel/test_feature_machines.py
    # In boosters/test_survival.py.
    below |= {adapters.SurvivalTrees, adapters.SurvivalComponents}
    below.add(adapters.SkorchNets)  # in torch/test_skorch.py
    assert set(ADAPTERS) - of_libraries - tried == below


@pytest.mark.parametrize("estimator", ALL, ids=named)
def test_an_adapter_is_what_it_says(estimator, rng):
    check_staged_adapter(estimator, *table(estimator, rng))


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=named)
def test_stages_for_two_classes(estimator, rng):
    check_staged_adapter(estimator, *table(estimator, rng, n_classes=2))


@pytest.mark.parametrize(
    "estimator", [each for each in ALL if "MLP" not in type(each).__name__], ids=named
)
def test_weights_of_rows_reach_every_fold(estimator, rng):
    X, y = table(estimator, rng)
    check_staged_adapter(estimator, X, y, sample_weight=rng.uniform(0.5, 2.0, len(y)))


@pytest.mark.parametrize("estimator", ALL, ids=named)
def test_which_cannot_grow_in_parts(estimator, rng):
    is_over = Staged(estimator).begin(*table(estimator, rng)).go_on(1)
    is_at_once = isinstance(staged_adapter_of(estimator), adapters.RefitAdapter)
    assert is_over == is_at_once


@pytest.mark.parametrize("estimator", ALL, ids=named)
def test_fits_of_folds_go_on_in_a_run_of_more_folds(estimator, rng, note_calls):
    X, y = table(estimator, rng)
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    whole = Staged(estimator, cv=splits).fit(X, y)
    model, begun = Staged(estimator), note_calls(StagedAdapter, "begin", size=id)
    run_after_laps(model, splits, X, y, whole.n_iter_)
    # The model, and each fold, once; those that forget stages begin three times.
    assert len(begun) == (4 if model._adapter().keeps_all else 8)
    for name in ("cv_path_", "cv_se_path_", "cv_prediction_path_", "train_path_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(whole, name))
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


def test_attributes_of_fewer_trees(rng):
    X, y = table(GradientBoostingRegressor(), rng)
    boosted = GradientBoostingRegressor(n_estimators=6, subsample=0.7, random_state=0)
    found = Staged(boosted).fit(X, y).at_iteration(4)
    expected = clone(boosted).set_params(n_estimators=4).fit(X, y)
    for name in ("train_score_", "oob_scores_", "oob_improvement_", "oob_score_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_array_equal(
        found.feature_importances_, expected.feature_importances_
    )
    assert found.n_estimators_ == 4
    forest = RandomForestRegressor(30, oob_score=True, random_state=0)
    model = Staged(forest).fit(X, y)
    assert model.oob_score_ == clone(forest).fit(X, y).oob_score_
    assert not hasattr(model.at_iteration(20), "oob_score_")


@pytest.mark.parametrize(
    "estimator",
    [
        each
        for each in CLASSIFIERS
        if "SGD" not in named(each) and "Perceptron" not in named(each)
    ],
    ids=named,
)
def test_a_class_that_a_fold_lacks_has_no_probability(estimator, rng):
    X, y = table(estimator, rng)
    top = np.flatnonzero(y == "top")
    rest = np.setdiff1d(np.arange(len(y)), top)
    splits = [(rest, top), (np.sort(np.r_[rest[::2], top]), rest[1::2])]
    model = Staged(estimator, cv=splits).fit(X, y)
    path = np.asarray(model.cv_prediction_path_)
    assert path.shape == (model.n_iter_ + 1, len(top) + len(rest) // 2, 3)
    assert np.all(path[:, : len(top), 2] == 0)
    expected = grown_by_hand(estimator, model.n_iter_, X[rest], y[rest])
    np.testing.assert_array_equal(
        path[-1, : len(top), :2], expected.predict_proba(X[top])
    )
    for number, rows in enumerate((top, rest[1::2])):
        found = path[-1, : len(top)] if number == 0 else path[-1, len(top) :]
        expected = log_loss(y[rows], found, labels=["low", "mid", "top"])
        np.testing.assert_allclose(model.cv_fold_path_[-1, number], expected)


@pytest.mark.parametrize(
    "estimator", [SGDClassifier(max_iter=3, **SEED), Perceptron(max_iter=3, **SEED)]
)
def test_a_class_that_a_fold_lacks_is_not_decided_for(estimator, rng):
    X, y = table(estimator, rng)
    top = np.flatnonzero(y == "top")
    rest = np.setdiff1d(np.arange(len(y)), top)
    mixed = np.sort(np.r_[rest[::2], top])
    model = Staged(estimator, cv=[(rest, top), (mixed, rest[1::2])]).fit(X, y)
    np.testing.assert_allclose(model.cv_fold_path_[1:, 0], 1)
    expected = grown_by_hand(estimator, 3, X[mixed], y[mixed])
    wrong = np.mean(expected.predict(X[rest[1::2]]) != y[rest[1::2]])
    np.testing.assert_allclose(model.cv_fold_path_[-1, 1], wrong)
    # Of two classes in a fold the decision is one number, of which both have a side.
    two = grown_by_hand(estimator, 3, X[rest], y[rest]).decision_function(X[top])
    found = model.cv_prediction_path_[3][: len(top)]
    np.testing.assert_array_equal(found[:, :2], np.stack([-two, two], axis=1))


def test_one_that_ends_early_has_the_stages_that_there_are(rng):
    X = rng.standard_normal((40, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    # Trees that fit their rows at once: the first of them ends the boosting.
    boosted = AdaBoostRegressor(DecisionTreeRegressor(), n_estimators=9, random_state=0)
    by_hand = clone(boosted).fit(X, y)
    model = Staged(boosted, cv=3)
    assert InParts(model, X, y).go_on(2)
    assert model.n_iter_ == len(by_hand.estimators_) < 9
    assert len(model.cv_path_) == model.n_iter_ + 1
    np.testing.assert_array_equal(model.predict(X), by_hand.predict(X))


def test_a_fold_that_ends_early_goes_on_as_it_is(rng):
    X = rng.standard_normal((60, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    y[:20] += 0.3 * rng.standard_normal(20)  # what the first fold does not see
    boosted = AdaBoostRegressor(
        DecisionTreeRegressor(max_depth=2),
        n_estimators=5,
        loss="square",  # with which errors are small, and others go on to the end
        random_state=0,
    )
    splits = list(KFold(3).split(X))
    model = Staged(boosted, cv=splits).fit(X, y)
    by_hand = [clone(boosted).fit(X[fitted], y[fitted]) for fitted, _ in splits]
    assert len(by_hand[0].estimators_) < model.n_iter_ == 5
    path = np.asarray(model.cv_prediction_path_)
    for t in range(len(by_hand[0].estimators_), 6):
        np.testing.assert_array_equal(path[t, :20], by_hand[0].predict(X[:20]))
    np.testing.assert_array_equal(path[5, 20:40], by_hand[1].predict(X[20:40]))


def frame(rng, n_rows=80):
    X = pd.DataFrame(
        {
            "size": rng.standard_normal(n_rows),
            "kind": pd.Categorical(rng.choice(["a", "b", "c"], n_rows)),
            "age": rng.uniform(1, 9, n_rows),
        },
        index=rng.permutation(n_rows) + 1000,
    )
    X.loc[X.index[::7], "age"] = np.nan
    X.loc[X.index[::11], "kind"] = np.nan
    y = X["size"] + 2 * (X["kind"] == "b") + 0.2 * rng.standard_normal(n_rows)
    return X, y


@pytest.mark.parametrize("of_classes", [False, True])
def test_frames_with_categories_and_missing_values(of_classes, rng):
    X, y = frame(rng)
    boosted = HistGradientBoostingRegressor(
        max_iter=6, min_samples_leaf=5, categorical_features="from_dtype"
    )
    if of_classes:
        y = (y > y.median()).map({True: "yes", False: "no"})
        boosted = HistGradientBoostingClassifier(
            max_iter=6, min_samples_leaf=5, categorical_features="from_dtype"
        )
    model = Staged(boosted, cv=3).fit(X, y)
    assert model.estimator_.is_categorical_.tolist() == [False, True, False]
    place = 0
    for judged in model.cv_indices_:
        fitted = np.setdiff1d(np.arange(len(y)), judged)
        for t in (1, 6):
            grown = clone(boosted).set_params(max_iter=t)
            grown.fit(X.iloc[fitted], y.iloc[fitted])
            np.testing.assert_array_equal(
                model.cv_prediction_path_[t][place : place + len(judged)],
                getattr(grown, response_of(grown))(X.iloc[judged]),
            )
        place += len(judged)
    assert model.feature_names_in_.tolist() == ["size", "kind", "age"]


SPARSE = [each for each in REGRESSORS if "Hist" not in type(each).__name__]


@pytest.mark.parametrize("estimator", SPARSE, ids=named)
def test_sparse_rows(estimator, rng):
    X, y = table(estimator, rng)
    X[np.abs(X) < 0.7] = 0
    check_staged_adapter(estimator, sparse.coo_array(X), y)


MANY_TARGETS = [
    each
    for each in REGRESSORS
    if get_tags(each).target_tags.multi_output and "poisson" not in named(each)
]


@pytest.mark.parametrize("estimator", MANY_TARGETS, ids=named)
def test_several_targets(estimator, rng):
    X, y = make_regression(60, 5, n_targets=2, random_state=0)
    model = Staged(estimator, cv=2).fit(X, y)
    assert model.cv_prediction_path_.shape == (model.n_iter_ + 1, 60, 2)
    check_staged_adapter(estimator, X, y)
    rows = np.concatenate(model.cv_indices_)
    errors = (np.asarray(model.cv_prediction_path_) - y[rows]) ** 2
    np.testing.assert_allclose(model.cv_path_, errors.mean(axis=(1, 2)))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_iterations_of_a_fit_that_goes_on():
    X, y = make_regression(50, 6, n_targets=2, noise=5.0, random_state=0)
    lasso = MultiTaskLasso(1.0, max_iter=8, tol=1e-12)
    assert isinstance(staged_adapter_of(lasso), adapters.Iterations)
    model = Staged(lasso, cv=2).fit(X, y)
    place = 0
    for judged in model.cv_indices_:
        fitted = np.setdiff1d(np.arange(len(y)), judged)
        grown = clone(lasso).set_params(warm_start=True, max_iter=1)
        for t in range(1, 9):
            grown.fit(X[fitted], y[fitted])
            found = model.cv_prediction_path_[t][place : place + len(judged)]
            np.testing.assert_array_equal(found, grown.predict(X[judged]))
        place += len(judged)
    by_hand = clone(lasso).fit(X, y)
    np.testing.assert_allclose(model.coef_, by_hand.coef_, rtol=1e-6)
    assert not model.estimator_.warm_start


@pytest.mark.parametrize(
    "estimator",
    [
        SGDClassifier(max_iter=4, class_weight="balanced", **SEED),
        Perceptron(max_iter=4, class_weight="balanced", **SEED),
        RandomForestClassifier(4, class_weight="balanced", **SEED),
        RandomForestClassifier(4, class_weight="balanced_subsample", **SEED),
        HistGradientBoostingClassifier(max_iter=4, class_weight="balanced", **SEED),
    ],
    ids=named,
)
def test_classes_are_balanced_by_the_rows_of_each_fold(estimator, rng, recwarn):
    X, y = table(estimator, rng)
    y[::2] = "low"  # most of them
    model = Staged(estimator, cv=2).fit(X, y)
    for number, judged in enumerate(model.cv_indices_):
        fitted = np.setdiff1d(np.arange(len(y)), judged)
        labels, counts = np.unique(y[fitted], return_counts=True)
        balanced = dict(zip(labels, len(fitted) / (3 * counts)))
        by_hand = estimator
        if hasattr(estimator, "partial_fit"):
            by_hand = clone(estimator).set_params(class_weight=balanced)
        grown = grown_by_hand(by_hand, 4, X[fitted], y[fitted])
        half = len(model.cv_indices_[0])
        found = model.cv_prediction_path_[4][number * half :][: len(judged)]
        expected = getattr(grown, response_of(grown))(X[judged])
        np.testing.assert_array_equal(found, expected)
    assert not recwarn.list


def test_copies_are_kept_while_there_is_room(rng, set_limits):
    X, y = rng.standard_normal((60, 4)), rng.standard_normal(60)  # soon overfitted
    network = MLPRegressor(
        hidden_layer_sizes=(20,), max_iter=30, learning_rate_init=0.02, random_state=0
    )
    whole = Staged(network, cv=2).fit(X, y)
    assert whole.recorded_iterations().tolist() == list(range(1, 31))
    n_bytes = len(pickle.dumps(whole.estimator_))
    set_limits(MEMORY_BYTES=3 * 6 * n_bytes)  # six of each
    few = Staged(network, cv=2).fit(X, y)
    kept = few.recorded_iterations()
    best = 1 + few.cv_path_[1:].argmin()
    assert 1 < best < 24
    assert {best, 30} <= set(kept)
    assert 2 <= len(kept) <= 6
    for name in ("cv_path_", "cv_prediction_path_"):
        np.testing.assert_array_equal(getattr(few, name), getattr(whole, name))
    staged = dict(zip(range(1, 31), whole.staged_predict(X)))
    for t, found in zip(kept, few.staged_predict(X), strict=True):
        np.testing.assert_array_equal(found, staged[t])
        np.testing.assert_array_equal(few.at_iteration(t).predict(X), staged[t])
    missing = min(set(range(1, 31)) - set(kept))
    with pytest.raises(ValueError, match=f"Iterate {missing} was not kept"):
        few.at_iteration(missing)


def test_without_folds_the_last_copies_are_kept(rng, set_limits):
    X, y = table(SGDRegressor(), rng)
    set_limits(MEMORY_BYTES=1)
    model = Staged(SGDRegressor(max_iter=7, random_state=0)).fit(X, y)
    assert model.recorded_iterations()[-1] == 7
    assert len(model.recorded_iterations()) <= 2
    grown = grown_by_hand(SGDRegressor(random_state=0), 7, X, y)
    np.testing.assert_array_equal(model.predict(X), grown.predict(X))


def test_no_line_is_printed_by_folds(rng, capsys):
    X, y = table(GradientBoostingRegressor(), rng)
    Staged(GradientBoostingRegressor(n_estimators=3, verbose=1), cv=2).fit(X, y)
    assert not capsys.readouterr().out


def test_estimators_of_other_libraries_that_look_alike_are_no_kind():
    class Transformer(BaseEstimator):
        max_iter = 3

        def partial_fit(self, X, y=None):
            return self

    assert staged_adapter_of(Transformer()) is None
    assert isinstance(staged_adapter_of(LogisticRegression()), adapters.Iterations)
