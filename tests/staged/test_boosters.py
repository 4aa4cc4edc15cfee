"""XGBoost, LightGBM and CatBoost against clones that the libraries fit on their own."""

import pickle
import sys
import warnings
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier
from sklearn.datasets import load_diabetes
from sklearn.impute import SimpleImputer
from sklearn.metrics import mean_pinball_loss, mean_poisson_deviance
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from skacv import Staged, TrajectoryEarlyStoppingCV, TrajectoryLasso
from skacv.optim.losses import Poisson, SquaredError
from skacv.staged import recorded
from skacv.staged.boosters import Boosters
from skacv.staged.kind import response_of
from skacv.staged.kinds import kind_of
from skacv.staged.losses import AbsoluteError, HalfDeviance, Pinball, regression_loss

DRAWN = {"subsample": 0.7, "random_state": 1, "n_jobs": 1}
# What keeps the libraries small, quiet, and drawing rows and columns.
SETTINGS = {
    "xgboost": {"max_depth": 3, "colsample_bytree": 0.6, **DRAWN},
    "lightgbm": {
        "num_leaves": 7,
        "min_child_samples": 5,
        "subsample_freq": 1,
        "colsample_bytree": 0.6,
        "verbose": -1,
        **DRAWN,
    },
    "catboost": {
        "depth": 3,
        "bootstrap_type": "Bernoulli",
        "subsample": 0.7,
        "rsm": 0.6,
        "learning_rate": 0.1,
        "random_seed": 1,
        "thread_count": 1,
        "logging_level": "Silent",
        "allow_writing_files": False,
    },
}
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
# One of each library.
PLAIN = ["XGBRegressor", "LGBMRegressor", "CatBoostRegressor"]
LIBRARIES = {"XGB": "xgboost", "LGB": "lightgbm", "Cat": "catboost"}


def booster(name, n_stages=12, **settings):
    library = LIBRARIES[name[:3]]
    cls = getattr(pytest.importorskip(library), name)
    count = "iterations" if library == "catboost" else "n_estimators"
    return cls(**{count: n_stages} | SETTINGS[library] | settings)


def named(case):
    return "-".join(map(str, case)) if isinstance(case, tuple) else str(case)


def table(targets="values", n_rows=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 4))
    signal = X[:, 0] + np.sin(3 * X[:, 1]) + 0.3 * rng.standard_normal(n_rows)
    X[rng.random(X.shape) < 0.05] = np.nan
    three = np.digitize(signal, np.quantile(signal, [1 / 3, 2 / 3]))
    return X, {
        "values": signal,
        "counts": np.round(np.exp(signal)),
        "positive": np.exp(signal),
        "two outputs": np.column_stack([signal, -(signal**2)]),
        "two numbers": (signal > 0).astype(int),
        "three numbers": three,
        "two words": np.where(signal > 0, "yes", "no"),
        "three words": np.array(["low", "mid", "top"])[three],
    }[targets]


def frame(X, as_words=False):
    """Columns with categories and missing values."""
    found = pd.DataFrame(X, columns=list("abcd"))
    letters = np.random.default_rng(1).choice(list("uvwxyz"), len(X))
    found["e"] = letters if as_words else pd.Categorical(letters)
    return found


def rows(X, which):
    return X.iloc[which] if hasattr(X, "iloc") else X[which]


def by_hand(estimator, t, X, y, which, **params):
    """A fit of the library with so many trees, on some rows."""
    kind = kind_of(estimator)
    found = kind.cloned().set_params(**{kind.count_name(): t})
    own = {
        name: value[which] if len(value) == len(y) else value
        for name, value in params.items()
    }
    return found.fit(rows(X, which), y[which], **own)


def answer(estimator, X):
    return getattr(estimator, response_of(estimator))(X)


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
        count = kind_of(inner).count_name()
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


@pytest.mark.parametrize(("name", "settings", "targets"), ALL, ids=named)
def test_stages_are_fits_with_so_many_trees(name, settings, targets):
    X, y = table(targets)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, len(y))
    model = Staged(booster(name, **settings), cv=3)
    model.fit(X, y, sample_weight=weights)
    assert model.n_iter_ == 12
    exactly = not takes_exponentials(name, settings, targets)
    assert_as_by_hand(model, X, y, (1, 5, 12), exactly, sample_weight=weights)


@pytest.mark.parametrize(("name", "settings", "targets"), ALL, ids=named)
def test_growth_in_blocks_is_growth_at_once(name, settings, targets):
    X, y = table(targets)
    at_once = Staged(booster(name, 60, **settings), cv=2).fit(X, y)
    in_blocks = Staged(booster(name, 60, **settings), cv=2)
    assert [in_blocks.fit_up_to(t, X, y) for t in (10, 25, 60)] == [False, False, True]
    for path in ("cv_path_", "cv_prediction_path_"):
        np.testing.assert_array_equal(getattr(in_blocks, path), getattr(at_once, path))
    np.testing.assert_array_equal(answer(in_blocks, X), answer(at_once, X))


@pytest.mark.parametrize("name", PLAIN)
def test_stages_may_be_read_in_any_order(name):
    X, y = table()
    model = Staged(booster(name)).fit(X, y)
    stages = model._model.stages
    whole, _ = stages.predictions(X, 0, 12)
    part, carried = stages.predictions(X, 4, 9)
    np.testing.assert_array_equal(part, whole[4:9])
    rest, _ = stages.predictions(X, 9, 12, carried)
    np.testing.assert_array_equal(rest, whole[9:])


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
    for t in (20, 60, 210):
        model.fit_up_to(t, X, y)
    library = kind_of(inner).cloned().fit(X, y)
    np.testing.assert_array_equal(model.predict(X), library.predict(X))
    stopped = model.at_iteration(40).estimator_
    assert stopped.get_params()["learning_rate"] == library.learning_rate_
    fresh = kind_of(stopped).cloned().fit(X, y)
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
    with pytest.raises(ValueError, match="has no probabilities where the objective"):
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


def test_what_xgboost_says_of_classes_comes_through():
    X, y = table("three words")
    with pytest.raises(ValueError, match="Invalid classes inferred"):
        Staged(booster("XGBClassifier")).fit(X, y)
    X, y = table("three numbers")
    folds = [(np.flatnonzero(y != 1), np.flatnonzero(y == 1))]
    with pytest.raises(ValueError, match="Invalid classes inferred"):
        Staged(booster("XGBClassifier"), cv=folds).fit(X, y)


# ------------------------------------------------------------------ the stage kept


@pytest.mark.parametrize("name", PLAIN)
def test_the_best_stage_is_kept(name):
    X, y = load_diabetes(return_X_y=True)
    inner = booster(name, 400, learning_rate=0.2)
    model = TrajectoryEarlyStoppingCV(inner, cv=KFold(4), patience=20).fit(X, y)
    t, count = model.best_iter_, kind_of(inner).count_name()
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
    for other in (pickle.loads(pickle.dumps(model)), deepcopy(model)):
        np.testing.assert_array_equal(answer(other, X), answer(model, X))
        assert other.at_iteration(3).iteration_ == 3
    # In the middle of a run, which then begins anew.
    begun = Staged(booster(name), cv=3)
    begun.fit_up_to(5, X, y)
    other = pickle.loads(pickle.dumps(begun))
    np.testing.assert_array_equal(answer(other, X), answer(begun, X))
    other.fit_up_to(9, X, y)
    begun.fit_up_to(9, X, y)
    np.testing.assert_array_equal(other.cv_path_, begun.cv_path_)


@pytest.mark.parametrize("name", PLAIN)
def test_training_rows_are_freed(name):
    X, y = table()
    model = Staged(booster(name), cv=3).fit(X, y)
    assert model._live is None
    stages = model._model.stages
    assert isinstance(stages, Boosters)
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


# ------------------------------------------------------------------ losses


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("XGBRegressor", {"objective": "reg:quantileerror", "quantile_alpha": 0.8}),
        ("LGBMRegressor", {"objective": "quantile", "alpha": 0.8}),
        ("CatBoostRegressor", {"loss_function": "Quantile:alpha=0.8"}),
        ("XGBRegressor", {"objective": "count:poisson"}),
        ("LGBMRegressor", {"objective": "poisson"}),
        ("CatBoostRegressor", {"loss_function": "Poisson"}),
    ],
    ids=named,
)
def test_stages_are_judged_by_the_loss_of_their_trees(name, settings):
    is_poisson = "poisson" in str(settings).lower()
    X, y = table("counts" if is_poisson else "values")
    model = Staged(booster(name, **settings), cv=3).fit(X, y)
    held_out = model.cv_prediction_path_[7].astype(float)
    expected = (
        mean_poisson_deviance(model.cv_target_, held_out) / 2
        if is_poisson
        else mean_pinball_loss(model.cv_target_, held_out, alpha=0.8)
    )
    assert model.cv_path_[7] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "settings", "loss"),
    [
        ("LGBMRegressor", {"objective": "quantile"}, Pinball(0.9)),
        ("CatBoostRegressor", {"loss_function": "Quantile"}, Pinball(0.5)),
        ("LGBMRegressor", {"objective": "mape"}, AbsoluteError()),
        ("CatBoostRegressor", {"loss_function": "Huber:delta=2"}, AbsoluteError()),
        (
            "LGBMRegressor",
            {"objective": "tweedie", "tweedie_variance_power": 1.2},
            HalfDeviance(1.2),
        ),
        (
            "LGBMRegressor",
            {"objective": "tweedie", "tweedie_variance_power": 1.0},
            Poisson(),
        ),
        (
            "CatBoostRegressor",
            {"loss_function": "Tweedie:variance_power=1.2"},
            HalfDeviance(1.2),
        ),
        ("XGBRegressor", {"objective": "reg:pseudohubererror"}, AbsoluteError()),
        ("XGBRegressor", {}, SquaredError()),
        ("LGBMRegressor", {}, SquaredError()),
        ("CatBoostRegressor", {}, SquaredError()),
    ],
    ids=named,
)
def test_losses_by_their_names(name, settings, loss):
    assert regression_loss(booster(name, **settings)) == loss


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        (
            "XGBRegressor",
            {"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.9]},
        ),
        ("CatBoostRegressor", {"loss_function": "MultiQuantile:alpha=0.1,0.9"}),
    ],
    ids=named,
)
def test_several_quantiles_are_refused(name, settings):
    with pytest.raises(ValueError, match="judged by one quantile"):
        Staged(booster(name, **settings), cv=3).fit(*table())


# ------------------------------------------------------------------ what is left out


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("XGBRegressor", {"early_stopping_rounds": 3}),
        ("LGBMRegressor", {"early_stopping_round": 3}),
        ("LGBMRegressor", {"early_stopping_rounds": 3}),
        ("CatBoostRegressor", {"early_stopping_rounds": 3}),
        ("CatBoostRegressor", {"od_type": "Iter"}),
    ],
    ids=named,
)
def test_their_own_early_stopping_is_switched_off(name, settings):
    X, y = table()
    ((key, value),) = settings.items()
    message = f"{key}={value!r} of {name} is switched off"
    with pytest.warns(UserWarning, match=message):
        model = Staged(booster(name, **settings), cv=3).fit(X, y)
    plain = Staged(booster(name), cv=3).fit(X, y)
    np.testing.assert_array_equal(model.cv_path_, plain.cv_path_)
    with pytest.warns(UserWarning, match=message):
        TrajectoryEarlyStoppingCV(booster(name, 200, **settings), cv=3).fit(X, y)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("key", ["eval_set", "callbacks"])
def test_what_fit_may_not_be_passed(name, key):
    X, y = table()
    for model in (
        Staged(booster(name)),
        TrajectoryEarlyStoppingCV(booster(name), cv=2),
    ):
        with pytest.raises(ValueError, match=f"{key} cannot be passed to {name}"):
            model.fit(X, y, **{key: [(X, y)]})


@pytest.mark.parametrize(
    ("name", "settings", "instead"),
    [
        ("XGBRegressor", {"booster": "dart"}, "booster='gbtree'"),
        ("XGBRegressor", {"booster": "gblinear"}, "booster='gbtree'"),
        ("XGBRegressor", {"callbacks": [print]}, "callbacks=None"),
        ("LGBMRegressor", {"boosting_type": "dart"}, "boosting_type='gbdt'"),
        ("LGBMRegressor", {"boosting": "rf"}, "boosting='gbdt'"),
        (
            "CatBoostRegressor",
            {"grow_policy": "Lossguide"},
            "grow_policy='SymmetricTree'",
        ),
        ("CatBoostRegressor", {"model_shrink_rate": 0.1}, "model_shrink_rate=0"),
        (
            "CatBoostRegressor",
            {"monotone_constraints": "(1,0,0,0)"},
            "model_shrink_rate=0",
        ),
    ],
    ids=named,
)
def test_what_cannot_be_cut_back_is_refused(name, settings, instead):
    with pytest.raises(ValueError, match=f"stage: take {instead}"):
        Staged(booster(name, **settings)).fit(*table())


@pytest.mark.parametrize(
    "name",
    [
        "XGBRFRegressor",
        "XGBRFClassifier",
        "XGBRanker",
        "LGBMRanker",
        "CatBoostRanker",
    ],
)
def test_what_is_of_no_kind(name):
    estimator = getattr(pytest.importorskip(LIBRARIES[name[:3]]), name)()
    assert kind_of(estimator) is None
    assert recorded(estimator) is estimator
    with pytest.raises(ValueError, match="cannot be fitted stage by stage"):
        Staged(estimator).fit(*table())


@pytest.mark.parametrize("name", PLAIN)
def test_nothing_is_printed_or_written(name, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    quiet = {"verbose", "verbosity", "logging_level", "allow_writing_files"}
    inner = booster(name)
    cls = type(inner)
    settings = {k: v for k, v in inner.get_params().items() if k not in quiet}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Staged(cls(**settings), cv=2).fit(*table())
    assert not capfd.readouterr().out
    assert not list(tmp_path.iterdir())


def test_silence_is_no_wish_for_lines():
    assert not recorded(booster("LGBMRegressor", verbose=-1)).verbose
    assert recorded(booster("LGBMRegressor", verbose=1)).verbose


# ------------------------------------------------------------------ numbers of trees


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("LGBMRegressor", "num_iterations"),
        ("LGBMRegressor", "num_boost_round"),
        ("CatBoostRegressor", "n_estimators"),
        ("CatBoostRegressor", "num_boost_round"),
    ],
)
def test_other_names_of_the_number_of_trees(name, count):
    X, y = table()
    estimator = type(booster(name))
    settings = booster(name).get_params()
    settings = {k: v for k, v in settings.items() if k not in ("iterations", count)}
    inner = estimator(**settings | {count: 7})
    model = TrajectoryEarlyStoppingCV(inner, cv=3).fit(X, y)
    assert model.estimator_.n_iter_ <= 7
    t = model.best_iter_
    assert model.best_params_ == {count: t}
    assert model.estimator_.estimator_.get_params()[count] == t
    fresh = clone(inner).set_params(**{count: t}).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), fresh.predict(X))


@pytest.mark.parametrize(
    ("name", "n_stages"),
    [("XGBRegressor", 100), ("LGBMRegressor", 100), ("CatBoostRegressor", 1000)],
)
def test_numbers_of_trees_by_default(name, n_stages):
    estimator = type(booster(name))()
    assert kind_of(estimator).n_planned() == n_stages


def test_they_are_recognised_without_their_libraries(monkeypatch):
    for library, names in [
        ("xgboost", ("XGBRegressor", "XGBClassifier")),
        ("lightgbm", ("LGBMRegressor", "LGBMClassifier")),
        ("catboost", ("CatBoostRegressor", "CatBoostClassifier")),
    ]:
        monkeypatch.setitem(sys.modules, library, None)  # cannot be imported
        for name in names:
            own = type(name, (), {"__module__": f"{library}.sklearn"})
            kind = kind_of(type("Mine", (own,), {})())
            assert kind is not None
            assert kind.library == library
    other = type("XGBRegressor", (RegressorMixin, BaseEstimator), {})
    assert kind_of(other()) is None
