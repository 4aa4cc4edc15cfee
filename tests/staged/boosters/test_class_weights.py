"""Parameters that weigh classes: in the fits, and in the losses that choose."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.metrics import log_loss

from skacv import Staged, TrajectoryEarlyStoppingCV
from tests.internals import row_weights

from .cases import booster, named, table

# ------------------------------------------------------------------ CatBoost

RATIO = 4.0
OF_WORDS = {"low": 1.0, "mid": 3.0, "top": 0.5}
WEIGHTED = [
    ({"class_weights": [1.0, RATIO]}, [1.0, RATIO]),
    ({"class_weights": np.array([1.0, RATIO])}, [1.0, RATIO]),
    ({"class_weights": {0: 1.0, 1: RATIO}}, [1.0, RATIO]),
    ({"scale_pos_weight": RATIO}, [1.0, RATIO]),
    ({"auto_class_weights": "Balanced"}, [1.0, 3.0]),
    ({"auto_class_weights": "SqrtBalanced"}, [1.0, 3.0**0.5]),
]


def unbalanced(n_rows=400):
    """Three of four rows, of every hundred, are of the first class."""
    X, _ = table(n_rows=n_rows)
    noise = np.random.default_rng(4).standard_normal(n_rows)
    score = (np.nan_to_num(X[:, 0]) + noise).reshape(-1, 100)
    largest = np.argsort(np.argsort(score, axis=1), axis=1) >= 75
    return X, largest.ravel().astype(int)


@pytest.mark.parametrize(("settings", "by_class"), WEIGHTED, ids=named)
def test_catboost_is_stopped_as_it_stops_itself(settings, by_class):
    X, y = unbalanced()
    fitted, judged = np.arange(200), np.arange(200, 400)
    inner = booster("CatBoostClassifier", 120, learning_rate=0.3, **settings)
    model = TrajectoryEarlyStoppingCV(inner, cv=[(fitted, judged)], patience=None)
    model.fit(X, y)
    own = booster("CatBoostClassifier", 120, learning_rate=0.3, **settings)
    own.fit(X[fitted], y[fitted], eval_set=(X[judged], y[judged]))
    assert 1 < own.get_best_iteration() + 1 < 120
    assert model.best_iter_ == own.get_best_iteration() + 1
    best = own.get_best_score()["validation"]["Logloss"]
    assert model.best_score_ == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(
        own.get_all_params()["class_weights"], by_class, rtol=1e-6
    )
    weights = np.array(by_class)[y]
    expected = log_loss(
        y[judged], own.predict_proba(X[judged]), sample_weight=weights[judged]
    )
    assert model.best_score_ == pytest.approx(expected)
    # Weights of rows are those of both as well.
    inner = booster("CatBoostClassifier", 120, learning_rate=0.3)
    by_row = TrajectoryEarlyStoppingCV(inner, cv=[(fitted, judged)], patience=None)
    by_row.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(by_row.path_[1:], model.path_[1:], rtol=1e-6)


@pytest.mark.parametrize("automatic", ["Balanced", "SqrtBalanced"])
def test_catboost_balances_classes_by_the_weights_of_rows(automatic):
    X, y = table("three words")
    rng = np.random.default_rng(5)
    weights = rng.uniform(0.5, 2.0, len(y)) * np.where(y == "low", 5.0, 1.0)
    inner = booster("CatBoostClassifier", auto_class_weights=automatic)
    model = Staged(inner, cv=3).fit(X, y, sample_weight=weights)
    by_class = np.array(model.estimator_.get_all_params()["class_weights"])
    in_loss = weights * by_class[np.searchsorted(model.classes_, y)]
    judged = np.concatenate(model.cv_indices_)
    for t in (1, 12):
        expected = log_loss(
            y[judged], model.cv_prediction_path_[t], sample_weight=in_loss[judged]
        )
        assert model.cv_path_[t] == pytest.approx(expected, rel=1e-6)
        found = model.at_iteration(t).predict_proba(X)
        expected = log_loss(y, found, sample_weight=in_loss)
        assert model.train_path_[t] == pytest.approx(expected, rel=1e-6)


def test_a_class_without_weight_is_not_held_out():
    X, y = unbalanced(100)
    y[:10] = 2
    inner = booster("CatBoostClassifier", class_weights=[1.0, 1.0, 0.0])
    model = Staged(inner, cv=3).fit(X, y)
    assert set(y[np.concatenate(model.cv_indices_)]) == {0, 1}
    assert np.isfinite(model.cv_path_).all()


def test_classes_in_another_order_are_refused():
    X, y = unbalanced(100)
    words = np.where(y == 1, "yes", "no")
    for settings, labels in [
        ({"class_weights": {"yes": RATIO, "no": 1.0}}, words),
        ({"class_names": [1, 0]}, y),
        ({"class_names": [0, 1, 2], "loss_function": "MultiClass"}, y),
    ]:
        model = Staged(booster("CatBoostClassifier", **settings), cv=3)
        with pytest.raises(ValueError, match="CatBoostClassifier has the classes"):
            model.fit(X, labels)
        assert not hasattr(model, "estimator_")
    sorted_ = {"class_weights": {"no": 1.0, "yes": RATIO}}
    model = Staged(booster("CatBoostClassifier", **sorted_), cv=3).fit(X, words)
    numbers = Staged(booster("CatBoostClassifier", class_weights=[1, RATIO]), cv=3)
    np.testing.assert_allclose(model.cv_path_, numbers.fit(X, y).cv_path_)
    model = Staged(booster("CatBoostClassifier", class_weights=[1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match="class_weights has 3 values, but y has 2"):
        model.fit(X, y)


# ------------------------------------------------------------------ all


@pytest.mark.parametrize(
    ("estimator", "settings"),
    [
        (HistGradientBoostingClassifier(max_iter=5), {"class_weight": "balanced"}),
        (RandomForestClassifier(5, random_state=0), {"class_weight": "balanced"}),
        (RandomForestClassifier(5, random_state=0), {"class_weight": OF_WORDS}),
        (ExtraTreesClassifier(5, random_state=0), {"class_weight": "balanced"}),
        ("LGBMClassifier", {"class_weight": "balanced"}),
        ("LGBMClassifier", {"class_weight": OF_WORDS}),
        ("CatBoostClassifier", {"auto_class_weights": "Balanced"}),
        ("CatBoostClassifier", {"auto_class_weights": "SqrtBalanced"}),
        ("CatBoostClassifier", {"class_weights": OF_WORDS}),
    ],
    ids=named,
)
def test_losses_weigh_rows_as_the_fit_does(estimator, settings):
    X, y = table("three words")
    X, rng = np.nan_to_num(X), np.random.default_rng(5)
    weights = rng.uniform(0.5, 2.0, len(y)) * np.where(y == "low", 5.0, 1.0)
    if isinstance(estimator, str):
        estimator = booster(estimator, 5)
    weighed = clone(estimator).set_params(**settings)
    model = Staged(weighed, cv=3).fit(X, y, sample_weight=weights)
    # The weights of the loss, as weights of rows, make the same fit.
    by_row = clone(estimator).fit(X, y, sample_weight=row_weights(model))
    expected = by_row.predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-4)
    loss = log_loss(y, expected, sample_weight=row_weights(model))
    assert model.train_path_[5] == pytest.approx(loss, rel=1e-5)
    rows = np.concatenate(model.cv_indices_)
    loss = log_loss(
        y[rows], model.cv_prediction_path_[5], sample_weight=row_weights(model)[rows]
    )
    assert model.cv_path_[5] == pytest.approx(loss)


# ------------------------------------------------------------------ XGBoost, LightGBM


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("XGBClassifier", {"scale_pos_weight": 3.0}),
        ("XGBRegressor", {"scale_pos_weight": 3.0, "objective": "reg:logistic"}),
        ("LGBMClassifier", {"scale_pos_weight": 3.0}),
        ("LGBMClassifier", {"is_unbalance": True}),
        ("LGBMClassifier", {"unbalance": True}),
        ("LGBMClassifier", {"unbalanced_sets": True}),
        ("LGBMRegressor", {"class_weight": "balanced"}),
    ],
    ids=named,
)
def test_weights_of_the_fits_alone_are_warned_of(name, settings):
    X, y = unbalanced(100)
    ((key, value), *_) = settings.items()
    message = f"{key}={value!r} of {name} weights classes in the fits.*sample_weight"
    with pytest.warns(UserWarning, match=message):
        model = Staged(booster(name, **settings), cv=3).fit(X, y)
    if "Classifier" in name:  # as their own early stopping, which counts rows
        judged = np.concatenate(model.cv_indices_)
        found = model.cv_prediction_path_[12].astype(float)
        found = found / found.sum(axis=1, keepdims=True)
        expected = log_loss(y[judged], found)
        assert model.cv_path_[12] == pytest.approx(expected, rel=1e-6)
    with pytest.warns(UserWarning, match=message) as told:
        TrajectoryEarlyStoppingCV(booster(name, 60, **settings), cv=3).fit(X, y)
    assert sum("weights classes" in str(each.message) for each in told) == 1


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("XGBClassifier", {"scale_pos_weight": 1}),
        ("LGBMClassifier", {"scale_pos_weight": 1.0}),
        ("LGBMClassifier", {"is_unbalance": False}),
        ("LGBMClassifier", {"class_weight": "balanced"}),
        ("CatBoostClassifier", {"auto_class_weights": "Balanced"}),
        ("CatBoostClassifier", {"auto_class_weights": "None"}),
    ],
    ids=named,
)
def test_nothing_is_warned_of_where_losses_are_weighed(name, settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Staged(booster(name, **settings), cv=3).fit(*unbalanced(100))


def test_losses_of_lightgbm_are_those_of_its_own_early_stopping():
    X, y = unbalanced()
    fitted, judged = np.arange(200), np.arange(200, 400)
    for settings in ({"is_unbalance": True}, {"scale_pos_weight": RATIO}):
        inner = booster("LGBMClassifier", 60, learning_rate=0.3, **settings)
        with pytest.warns(UserWarning, match="weights classes in the fits"):
            model = Staged(inner, cv=[(fitted, judged)]).fit(X, y)
        own = booster("LGBMClassifier", 60, learning_rate=0.3, **settings)
        own.fit(X[fitted], y[fitted], eval_X=X[judged], eval_y=y[judged])
        found = own.evals_result_["valid_0"]["binary_logloss"]
        np.testing.assert_allclose(model.cv_path_[1:], found)


def test_losses_of_xgboost_are_those_of_its_own_early_stopping():
    X, y = unbalanced()
    fitted, judged = np.arange(200), np.arange(200, 400)
    inner = booster("XGBClassifier", 60, scale_pos_weight=RATIO)
    with pytest.warns(UserWarning, match="weights classes in the fits"):
        model = Staged(inner, cv=[(fitted, judged)]).fit(X, y)
    own = booster("XGBClassifier", 60, scale_pos_weight=RATIO)
    own.fit(X[fitted], y[fitted], eval_set=[(X[judged], y[judged])], verbose=False)
    found = own.evals_result()["validation_0"]["logloss"]
    np.testing.assert_allclose(model.cv_path_[1:], found, rtol=1e-5)


@pytest.mark.parametrize("name", ["XGBClassifier", "LGBMClassifier"])
def test_boosters_inside_of_bagging_are_warned_of(name):
    X, y = unbalanced(100)
    inner = BaggingClassifier(booster(name, scale_pos_weight=2.0), n_estimators=2)
    with pytest.warns(UserWarning, match="estimator__scale_pos_weight=2.0 of Bagging"):
        Staged(inner, cv=2).fit(np.nan_to_num(X), y)
