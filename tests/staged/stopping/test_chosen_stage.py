"""The stage that is kept: of a call, of a grid, with settings of the trees."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.neural_network import MLPRegressor

from skacv import Staged, TrajectoryEarlyStoppingCV

from .cases import boosted, by_hand, classifier

# ------------------------------------------------------------------ the plain call


def test_the_best_stage_of_the_model_on_all_rows_is_kept(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(boosted()).fit(X, y)
    chosen, best = model.estimator_, model.best_iter_
    errors = [mean_squared_error(y, each) for each in by_hand(boosted(), chosen, X, y)]
    assert 1 < best < 25
    assert best == 1 + np.argmin(errors)
    np.testing.assert_allclose(model.path_[1:], errors)
    np.testing.assert_allclose(model.best_score_, min(errors))
    refit = boosted(max_iter=best).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), refit.predict(X))
    assert chosen.estimator_.max_iter == best
    assert model.best_params_ == {"max_iter": best}
    assert model.best_member_ == "HistGradientBoostingRegressor"
    assert model.criterion_ == "cv"
    assert model.score(X, y) == refit.score(X, y)
    assert len(list(model.staged_predict(X))) == best  # the folds have gone on
    assert model.best_score_ < model.best_score_corrected_ < 2 * model.best_score_
    np.testing.assert_array_equal(
        model.at_iteration(3).predict(X), boosted(max_iter=3).fit(X, y).predict(X)
    )


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_the_model_grows_to_the_best_stage_and_the_folds_go_on(n_jobs, data):
    X, y = data
    settings = {"cv": KFold(4), "patience": 5, "random_state": 0}
    trees = boosted(max_iter=100)
    staged = Staged(trees, n_jobs=n_jobs)
    model = TrajectoryEarlyStoppingCV(staged, **settings).fit(X, y)
    run, best = model.estimator_, model.best_iter_
    assert run.recorded_iterations().tolist() == list(range(1, best + 1))
    assert best + 5 <= run.n_iter_ == len(model.path_) - 1
    assert np.flatnonzero(np.isnan(run.train_path_)).tolist() == [
        *range(best + 1, run.n_iter_ + 1)
    ]
    with pytest.raises(ValueError, match="was not kept"):
        model.at_iteration(best + 1)
    # Nothing else changes: one that prints lines grows as far as its folds.
    whole = TrajectoryEarlyStoppingCV(Staged(trees, verbose=1), **settings).fit(X, y)
    of_whole = whole.estimator_.train_path_
    np.testing.assert_array_equal(run.train_path_[: best + 1], of_whole[: best + 1])
    np.testing.assert_array_equal(model.path_, whole.path_)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))
    assert model.best_score_corrected_ == whole.best_score_corrected_
    assert len(whole.estimator_.recorded_iterations()) == run.n_iter_


def test_a_scorer_may_choose_any_stage(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(boosted(), criterion="r2", patience=5).fit(X, y)
    run = model.estimator_
    assert len(run.recorded_iterations()) == run.n_iter_ > model.best_iter_
    assert not np.isnan(run.train_path_).any()


def test_patience_ends_the_run_and_its_folds(data):
    X, y = data
    alone = {"patience": 10, "min_delta": 0}
    model = TrajectoryEarlyStoppingCV(boosted(max_iter=500), **alone).fit(X, y)
    whole = TrajectoryEarlyStoppingCV(boosted(max_iter=60), patience=None).fit(X, y)
    assert model.best_iter_ == whole.best_iter_
    assert model.best_iter_ + 10 <= model.estimator_.n_iter_ < 60
    np.testing.assert_array_equal(model.path_, whole.path_[: len(model.path_)])


@pytest.mark.parametrize(
    ("estimator", "patience"),
    [
        (boosted(max_iter=500), 50),
        (MLPRegressor(max_iter=100, random_state=0), 10),
        (RandomForestRegressor(60, max_depth=2, random_state=0), None),
    ],
    ids=str,
)
def test_default_patience(estimator, patience, rng):
    """Trees of a forest are averaged: the best stage of them is one by chance."""
    X, noise = rng.standard_normal((60, 4)), rng.standard_normal(60)
    stopping = TrajectoryEarlyStoppingCV(Staged(estimator, cv=2))
    found = clone(stopping).fit(X, noise)
    expected = stopping.set_params(patience=patience).fit(X, noise)
    np.testing.assert_array_equal(found.path_, expected.path_)


def test_patience_does_not_count_from_the_mean(rng):
    """A network is worse than the mean for longer than it is waited for."""
    X = rng.standard_normal((80, 2))
    y = 50 + X[:, 0]
    network = MLPRegressor(
        hidden_layer_sizes=(8,), learning_rate_init=0.01, max_iter=40, random_state=0
    )
    with pytest.warns(UserWarning, match="still improving"):
        model = TrajectoryEarlyStoppingCV(network, cv=2).fit(X, y)
    assert model.path_[10] > model.path_[0]
    assert model.estimator_.n_iter_ == 40


def test_classifiers(labelled):
    X, y = labelled
    model = TrajectoryEarlyStoppingCV(classifier()).fit(X, y)
    found = by_hand(classifier(), model.estimator_, X, y)
    np.testing.assert_allclose(
        model.path_[1:], [log_loss(y == "yes", p) for p in found]
    )
    refit = classifier(max_iter=model.best_iter_).fit(X, y)
    for method in ("predict", "predict_proba", "decision_function"):
        expected = getattr(refit, method)(X)
        np.testing.assert_array_equal(getattr(model, method)(X), expected)
    assert model.classes_.tolist() == ["no", "yes"]


def test_decisions_without_probabilities(labelled):
    X, y = labelled
    perceptron = SGDClassifier(max_iter=12, random_state=0)
    model = TrajectoryEarlyStoppingCV(perceptron).fit(X, y)
    assert not hasattr(model, "predict_proba")
    labels = np.where(model.decision_function(X) > 0, "yes", "no")
    np.testing.assert_array_equal(model.predict(X), labels)
    assert model.best_params_ == {"max_iter": model.best_iter_}


def test_attributes_of_the_trees(data):
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    trees = GradientBoostingRegressor(n_estimators=15, random_state=0)
    model = TrajectoryEarlyStoppingCV(trees).fit(frame, y)
    refit = clone(trees).set_params(n_estimators=model.best_iter_).fit(frame, y)
    np.testing.assert_array_equal(
        model.estimator_.feature_importances_, refit.feature_importances_
    )
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(AttributeError, match="coef_"):
        model.coef_  # noqa: B018


# ------------------------------------------------------------------ grids


def test_a_grid_of_learning_rates(data):
    X, y = data
    rates = [0.05, 0.3]
    model = TrajectoryEarlyStoppingCV(
        boosted(), param_grid={"learning_rate": rates}, cv=KFold(3), patience=12
    ).fit(X, y)
    alone = [
        TrajectoryEarlyStoppingCV(
            boosted(learning_rate=rate), cv=KFold(3), patience=12
        ).fit(X, y)
        for rate in rates
    ]
    best = min(alone, key=lambda each: each.best_score_)
    assert model.best_score_ == best.best_score_
    rate = rates[alone.index(best)]
    assert model.best_params_ == {"learning_rate": rate, "max_iter": best.best_iter_}
    np.testing.assert_array_equal(model.predict(X), best.predict(X))
    assert [each["learning_rate"] for each in model.results_["params"]] == rates


def test_in_a_grid_search(data):
    X, y = data
    search = GridSearchCV(
        TrajectoryEarlyStoppingCV(boosted(max_iter=12)),
        {"estimator__learning_rate": [0.1, 0.5]},
        cv=KFold(2),
        error_score="raise",
    ).fit(X, y)
    for number, rate in enumerate([0.1, 0.5]):
        single = TrajectoryEarlyStoppingCV(boosted(max_iter=12, learning_rate=rate))
        scores = cross_val_score(single, X, y, cv=KFold(2))
        assert search.cv_results_["mean_test_score"][number] == scores.mean()
    rate = search.best_params_["estimator__learning_rate"]
    assert search.best_estimator_.estimator_.estimator_.learning_rate == rate


# ------------------------------------------------------------------ settings of trees


def test_monotone_constraints(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(boosted(monotonic_cst=[-1, 0, 0])).fit(X, y)
    grid = np.zeros((50, 3))
    grid[:, 0] = np.linspace(-2, 2, 50)
    assert np.all(np.diff(model.predict(grid)) <= 0)
    free = TrajectoryEarlyStoppingCV(boosted()).fit(X, y)
    assert np.any(np.diff(free.predict(grid)) > 0)


def test_weights_of_rows(data, rng):
    X, y = data
    weights = rng.uniform(0.1, 2.0, 80)
    model = TrajectoryEarlyStoppingCV(boosted()).fit(X, y, sample_weight=weights)
    found = by_hand(boosted(), model.estimator_, X, y, sample_weight=weights)
    errors = np.average((found - y) ** 2, axis=1, weights=weights)
    np.testing.assert_allclose(model.path_[1:], errors)
    refit = boosted(max_iter=model.best_iter_).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(model.predict(X), refit.predict(X))


def test_balanced_classes(labelled):
    X, y = labelled
    y[:50] = "no"
    trees = classifier(class_weight="balanced")
    model = TrajectoryEarlyStoppingCV(trees).fit(X, y)
    found = by_hand(trees, model.estimator_, X, y)
    ratio = np.mean(y == "no") / np.mean(y == "yes")
    weights = np.where(y == "yes", ratio, 1.0)
    expected = [log_loss(y == "yes", p, sample_weight=weights) for p in found]
    np.testing.assert_allclose(model.path_[1:], expected)


def test_stopping_of_the_trees_themselves_is_switched_off(data):
    X, y = data
    plain = TrajectoryEarlyStoppingCV(boosted()).fit(X, y)
    with pytest.warns(UserWarning, match="early_stopping=True of HistGradientBoosting"):
        model = TrajectoryEarlyStoppingCV(boosted(early_stopping=True)).fit(X, y)
    np.testing.assert_array_equal(model.path_, plain.path_)
    assert len(model.estimator_.validation_score_) == 0


# ------------------------------------------------------------------ folds


def test_groups(data):
    X, y = data
    groups = np.repeat(np.arange(16), 5)
    for cv in (None, 4, GroupKFold(4)):
        model = TrajectoryEarlyStoppingCV(boosted(max_iter=6), cv=cv)
        model.fit(X, y, groups=groups)
        for judged in model.estimator_.cv_indices_:
            assert not set(groups[judged]) & set(
                groups[np.setdiff1d(range(80), judged)]
            )


def test_time_series(data):
    X, y = data
    splitter = TimeSeriesSplit(3, test_size=12)
    model = TrajectoryEarlyStoppingCV(boosted(), cv=splitter).fit(X, y)
    errors = []
    for fitted, judged in splitter.split(X):
        grown = boosted().fit(X[fitted], y[fitted])
        staged = np.array(list(grown.staged_predict(X[judged])))
        errors.append(((staged - y[judged]) ** 2).mean(axis=1))
    np.testing.assert_allclose(model.path_[1:], np.mean(errors, axis=0))


def test_leave_one_out_is_refused(data):
    with pytest.raises(
        ValueError,
        match="'loo' needs loo_path_, which HistGradientBoostingRegressor does",
    ):
        TrajectoryEarlyStoppingCV(boosted(), criterion="loo").fit(*data)
    with pytest.raises(ValueError, match="'risk' needs risk_path_, which HistGradient"):
        TrajectoryEarlyStoppingCV(boosted(), criterion="risk").fit(*data)
