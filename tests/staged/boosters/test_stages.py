"""Stages of XGBoost, LightGBM and CatBoost are fits with so many trees."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold

from skacv import Staged, TrajectoryEarlyStoppingCV
from skacv.staged.adapter import response_of
from skacv.staged.adapters import staged_adapter_of
from skacv.staged.fits import StagedFit
from skacv.testing import check_staged_adapter
from tests.internals import rows_of_staged_run
from tests.runs import InParts, run_after_laps

from .cases import LIBRARIES, PLAIN, answer, booster, by_hand, named, rows, table

# The class, its settings, its targets, and whether predictions are sums as they are.
REGRESSORS = [
    ("XGBRegressor", {}, "values"),
    ("XGBRegressor", {"tree_method": "exact", "num_parallel_tree": 2}, "values"),
    ("XGBRegressor", {"objective": "count:poisson"}, "counts"),
    ("XGBRegressor", {"objective": "reg:gamma"}, "positive"),
    ("XGBRegressor", {"objective": "reg:absoluteerror"}, "values"),
    (
        "XGBRegressor",
        {"objective": "reg:quantileerror", "quantile_alpha": 0.8},
        "values",
    ),
    ("XGBRegressor", {}, "two outputs"),
    ("XGBRegressor", {"monotone_constraints": (1, 0, 0, 0)}, "values"),
    ("LGBMRegressor", {}, "values"),
    ("LGBMRegressor", {"data_sample_strategy": "goss", "subsample_freq": 0}, "values"),
    ("LGBMRegressor", {"linear_tree": True}, "values"),
    ("LGBMRegressor", {"reg_sqrt": True}, "counts"),
    ("LGBMRegressor", {"objective": "poisson"}, "counts"),
    ("LGBMRegressor", {"objective": "gamma"}, "positive"),
    ("LGBMRegressor", {"objective": "quantile", "alpha": 0.8}, "values"),
    ("LGBMRegressor", {"monotone_constraints": [1, 0, 0, 0]}, "values"),
    ("CatBoostRegressor", {}, "values"),
    ("CatBoostRegressor", {"bootstrap_type": "MVS"}, "values"),
    ("CatBoostRegressor", {"boosting_type": "Ordered"}, "values"),
    ("CatBoostRegressor", {"loss_function": "Poisson"}, "counts"),
    (
        "CatBoostRegressor",
        {"loss_function": "Tweedie:variance_power=1.5"},
        "counts",
    ),
    ("CatBoostRegressor", {"loss_function": "Quantile:alpha=0.8"}, "values"),
    ("CatBoostRegressor", {"loss_function": "MultiRMSE"}, "two outputs"),
    (
        "CatBoostRegressor",
        {"monotone_constraints": "(1,0,0,0)", "model_shrink_rate": 0},
        "values",
    ),
    ("CatBoostRegressor", {"langevin": True, "model_shrink_rate": 0}, "values"),
]
CLASSIFIERS = [
    ("XGBClassifier", {}, "two numbers"),
    ("XGBClassifier", {"scale_pos_weight": 3.0}, "two numbers"),
    ("XGBClassifier", {}, "three numbers"),
    ("XGBClassifier", {"objective": "multi:softmax"}, "three numbers"),
    ("LGBMClassifier", {}, "two words"),
    ("LGBMClassifier", {"is_unbalance": True, "sigmoid": 0.7}, "two words"),
    ("LGBMClassifier", {"class_weight": "balanced"}, "three words"),
    ("LGBMClassifier", {"objective": "multiclassova"}, "three words"),
    ("CatBoostClassifier", {}, "two words"),
    ("CatBoostClassifier", {"auto_class_weights": "Balanced"}, "three words"),
    ("CatBoostClassifier", {"loss_function": "MultiClassOneVsAll"}, "three words"),
]
ALL = REGRESSORS + CLASSIFIERS


def frame(X, as_words=False):
    """Columns with categories and missing values."""
    found = pd.DataFrame(X, columns=list("abcd"))
    letters = np.random.default_rng(1).choice(list("uvwxyz"), len(X))
    found["e"] = letters if as_words else pd.Categorical(letters)
    return found


def assert_as_by_hand(model, X, y, stages, exactly=True, **params):
    """Held-out predictions and the model, at some stages, against fits of the library.

    Where exponentials are taken the last bit may be another.
    """
    inner, place, everything = model.estimator, 0, np.arange(len(y))
    for judged in model.cv_indices_:
        fitted = np.setdiff1d(everything, judged)
        end = place + len(judged)
        for t in stages:
            expected = answer(
                by_hand(inner, t, X, y, fitted, **params), rows(X, judged)
            )
            found = model.cv_prediction_path_[t][place:end]
            if exactly:
                np.testing.assert_array_equal(found, expected)
            np.testing.assert_allclose(found, expected, rtol=1e-13)
        place = end
    response = "predict_proba" if is_classifier(inner) else "predict"
    staged = list(getattr(model, f"staged_{response}")(X))
    for t in stages:
        fresh = by_hand(inner, t, X, y, everything, **params)
        stopped = model.at_iteration(t).estimator_
        count = staged_adapter_of(inner).count
        assert stopped.get_params()[count] == t
        for method in ("predict", response_of(fresh)):
            expected = getattr(fresh, method)(X)
            np.testing.assert_array_equal(getattr(stopped, method)(X), expected)
        np.testing.assert_array_equal(
            stopped.feature_importances_, fresh.feature_importances_
        )
        np.testing.assert_allclose(staged[t - 1], answer(fresh, X), rtol=1e-13)


def takes_exponentials(name, settings, targets):
    exponents = {"poisson", "gamma", "Poisson", "Tweedie:variance_power=1.5"}
    named = exponents & {*map(str, settings.values())}
    return "XGB" not in name and bool(named or "words" in targets)


# ------------------------------------------------------------------ exactness


@pytest.mark.filterwarnings("ignore:.* weights classes in the fits")
@pytest.mark.parametrize(("name", "settings", "targets"), ALL, ids=named)
def test_stages_are_fits_with_so_many_trees(name, settings, targets):
    X, y = table(targets)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, len(y))
    model = Staged(booster(name, **settings), cv=3)
    model.fit(X, y, sample_weight=weights)
    assert model.n_iter_ == 12
    exactly = not takes_exponentials(name, settings, targets)
    assert_as_by_hand(model, X, y, (1, 5, 12), exactly, sample_weight=weights)


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_adapter_is_what_it_says(library):
    """Sums of trees may be rounded otherwise than by the library."""
    names = {"XGB": "XGB", "LGB": "LGBM", "Cat": "CatBoost"}
    for kind, targets in (("Regressor", "values"), ("Classifier", "two numbers")):
        X, y = table(targets)
        made = booster(names[library] + kind, 5)
        check_staged_adapter(made, X, y, rtol=1e-12)
        weights = np.random.default_rng(2).uniform(0.5, 2.0, len(y))
        check_staged_adapter(made, X, y, sample_weight=weights, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:.* weights classes in the fits")
@pytest.mark.parametrize(("name", "settings", "targets"), ALL, ids=named)
def test_growth_in_blocks_is_growth_at_once(name, settings, targets):
    X, y = table(targets)
    at_once = Staged(booster(name, 60, **settings), cv=2).fit(X, y)
    in_blocks = Staged(booster(name, 60, **settings), cv=2)
    parts = InParts(in_blocks, X, y)
    assert [parts.go_on(t) for t in (10, 25, 60)] == [False, False, True]
    for path in ("cv_path_", "cv_prediction_path_"):
        np.testing.assert_array_equal(getattr(in_blocks, path), getattr(at_once, path))
    np.testing.assert_array_equal(answer(in_blocks, X), answer(at_once, X))


@pytest.mark.parametrize("name", [*PLAIN, "LGBMClassifier", "CatBoostClassifier"])
def test_fits_of_folds_go_on_in_a_run_of_more_folds(name, note_calls):
    X, y = table("three words" if "Classifier" in name else "values")
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    whole, model = Staged(booster(name), cv=splits).fit(X, y), Staged(booster(name))
    begun = note_calls(StagedFit, "begin", size=lambda *_: 1)
    run_after_laps(model, splits, X, y, 12)
    assert len(begun) == 4  # the model, and each fold
    for path in ("cv_path_", "cv_se_path_", "cv_prediction_path_", "train_path_"):
        np.testing.assert_array_equal(getattr(model, path), getattr(whole, path))
    np.testing.assert_array_equal(answer(model, X), answer(whole, X))


@pytest.mark.parametrize("name", [*PLAIN, "LGBMClassifier", "CatBoostClassifier"])
def test_tables_with_categories(name):
    X, y = table("three words" if "Classifier" in name else "values")
    as_words = name.startswith("CatBoost")
    X = frame(X, as_words)
    own = {"enable_categorical": True} if name.startswith("XGB") else {}
    own |= {"cat_features": ["e"], "one_hot_max_size": 2} if as_words else {}
    model = Staged(booster(name, **own), cv=3).fit(X, y)
    assert_as_by_hand(model, X, y, (1, 7, 12), "Regressor" in name)
    assert list(model.feature_names_in_) == list("abcde")


@pytest.mark.parametrize("name", [*PLAIN, "LGBMClassifier", "CatBoostClassifier"])
def test_sums_of_stages_are_made_again_in_blocks(name, set_limits):
    X, y = table("three numbers" if name.endswith("Classifier") else "values")
    kept = Staged(booster(name), cv=2).fit(X, y)
    expected = np.asarray(kept.cv_prediction_path_)
    n_outputs = 3 if name.endswith("Classifier") else 1
    # Two stages at a time of a fold, and one of all folds.
    set_limits(MEMORY_BYTES=4 * 2 * 4 * 8 * 75 * n_outputs, MOST_KEPT=expected.size)
    again = Staged(booster(name), cv=2)
    InParts(again, X, y).go_on(12)
    path = again.cv_prediction_path_
    for t in (9, 2, 12, 0, 5):
        np.testing.assert_array_equal(path[t], expected[t])
    for stages in (slice(4, 9), slice(9, 12)):
        np.testing.assert_array_equal(path[stages], expected[stages])
    np.testing.assert_array_equal(again.cv_path_, kept.cv_path_)


@pytest.mark.parametrize("name", PLAIN[:2])
def test_rows_are_not_kept_beside_those_of_the_library(name):
    X, y = table()
    model = Staged(booster(name), cv=2)
    parts = InParts(model, X, y)
    parts.go_on(3)
    assert rows_of_staged_run(parts.run) == [None] * 3
    parts.go_on(12)
    whole = Staged(booster(name), cv=2).fit(X, y)
    np.testing.assert_array_equal(model.cv_path_, whole.cv_path_)


def test_leaves_of_a_tree_are_read_once(note_calls):
    lightgbm = pytest.importorskip("lightgbm")
    read = note_calls(lightgbm.Booster, "get_leaf_output", size=lambda *_: 1)
    X, y = table()
    model = Staged(booster("LGBMRegressor")).fit(X, y)
    n_leaves = model.estimator_.booster_.trees_to_dataframe()["left_child"].isna().sum()
    assert len(read) == n_leaves


def test_categories_of_catboost_may_be_named_in_fit():
    X, y = table()
    X = frame(X, as_words=True)
    in_fit = Staged(booster("CatBoostRegressor"), cv=3).fit(X, y, cat_features=["e"])
    model = Staged(booster("CatBoostRegressor", cat_features=["e"]), cv=3).fit(X, y)
    np.testing.assert_array_equal(in_fit.cv_path_, model.cv_path_)
    stopping = TrajectoryEarlyStoppingCV(booster("CatBoostRegressor"), cv=3)
    stopping.fit(X, y, cat_features=["e"]).predict(X)


@pytest.mark.parametrize("with_categories", [False, True])
def test_catboost_chooses_parameters_for_all_iterations(with_categories):
    # A rate by their number, and combinations of categories from 200 on.
    X, y = table()
    words = {"cat_features": ["e"]} if with_categories else {}
    X = frame(X, as_words=True)[list("abcde" if with_categories else "abcd")]
    inner = booster("CatBoostRegressor", 210, learning_rate=None, **words)
    model = Staged(inner)
    parts = InParts(model, X, y)
    for t in (20, 60, 210):
        parts.go_on(t)
    library = staged_adapter_of(inner).clone_estimator().fit(X, y)
    np.testing.assert_array_equal(model.predict(X), library.predict(X))
    stopped = model.at_iteration(40).estimator_
    assert stopped.get_params()["learning_rate"] == library.learning_rate_
    fresh = staged_adapter_of(stopped).clone_estimator().fit(X, y)
    np.testing.assert_array_equal(stopped.predict(X), fresh.predict(X))


@pytest.mark.parametrize("name", PLAIN)
def test_sparse_rows(name):
    X, y = table()
    X = sparse.csr_matrix(np.nan_to_num(X))
    model = Staged(booster(name), cv=3).fit(X, y)
    assert_as_by_hand(model, X, y, (1, 12))


@pytest.mark.parametrize("name", ["XGBRegressor", "LGBMRegressor"])
def test_objectives_of_the_user(name):
    def squared(target, predicted):
        return predicted - target, np.ones_like(target)

    X, y = table()
    model = Staged(booster(name, objective=squared), cv=2).fit(X, y)
    assert_as_by_hand(model, X, y, (1, 12))


def test_objectives_that_give_no_probabilities():
    inner = booster("LGBMClassifier", objective=lambda target, predicted: None)
    with pytest.raises(ValueError, match="has no probabilities if the objective"):
        Staged(inner).fit(*table("two words"))


@pytest.mark.parametrize(
    ("name", "settings", "targets"),
    [
        ("XGBRegressor", {}, "values"),
        ("XGBClassifier", {}, "three numbers"),
        ("LGBMClassifier", {}, "three words"),
        ("CatBoostRegressor", {}, "values"),
    ],
    ids=named,
)
def test_folds_in_threads(name, settings, targets):
    X, y = table(targets)
    inner = booster(name, 30, **settings)
    one, two = (Staged(inner, cv=4, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.cv_path_, two.cv_path_)
    np.testing.assert_array_equal(answer(one, X), answer(two, X))


def test_lightgbm_ends_where_it_finds_no_split():
    # A stage may have no tree, and others follow, as other columns are drawn for them.
    X, y = table()
    inner = booster("LGBMRegressor", 400, min_split_gain=5.0, subsample_freq=0)
    model = Staged(inner, cv=3).fit(X, y)
    assert 50 < model.n_iter_ < 400
    assert len(model.cv_path_) == model.n_iter_ + 1
    assert clone(inner).fit(X, y).n_estimators_ < model.n_iter_
    assert_as_by_hand(model, X, y, (1, 10, 15, 20, model.n_iter_))
    # Rows too few for any.
    model = Staged(booster("LGBMRegressor", min_child_samples=20)).fit(X[:20], y[:20])
    np.testing.assert_allclose(model.predict(X), y[:20].mean())
    X, y = table("three words", n_rows=20)
    model = Staged(booster("LGBMClassifier", min_child_samples=20), cv=2).fit(X, y)
    assert_as_by_hand(model, X, y, (1, 12), exactly=False)


# ------------------------------------------------------------------ classes


@pytest.mark.parametrize("name", ["LGBMClassifier", "CatBoostClassifier"])
def test_folds_that_lack_a_class(name):
    X, y = table("three words")
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    folds = [(np.flatnonzero(y != each), np.flatnonzero(y == each)) for each in set(y)]
    model = Staged(booster(name), cv=folds).fit(X, y)
    assert model.cv_prediction_path_.shape == (13, len(y), 3)
    place = 0
    for _, judged in folds:
        own = model.cv_prediction_path_[1:, place : place + len(judged)]
        lacking = list(model.classes_).index(y[judged[0]])
        np.testing.assert_array_equal(own[..., lacking], 0)
        np.testing.assert_allclose(own.sum(axis=2), 1)
        place += len(judged)


def test_errors_of_xgboost_about_classes_are_raised():
    X, y = table("three words")
    with pytest.raises(ValueError, match="Invalid classes inferred"):
        Staged(booster("XGBClassifier")).fit(X, y)
    X, y = table("three numbers")
    folds = [(np.flatnonzero(y != 1), np.flatnonzero(y == 1))]
    with pytest.raises(ValueError, match="Invalid classes inferred"):
        Staged(booster("XGBClassifier"), cv=folds).fit(X, y)
