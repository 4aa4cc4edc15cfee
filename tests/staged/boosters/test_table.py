"""Stages equal the class of the library: by objective, categories and weights.

A stage is a fit of the same class to the same rows with so many trees. CatBoost
resolves some parameters from the number of trees, so there it is the first trees of a
fit with all that are planned.
"""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.model_selection import KFold

from skacv import Staged

from ...cases import covering
from ...runs import InParts
from .cases import LIBRARIES, PLAIN, answer, booster, rows, table

N_PLANNED, N_GROWN, N_ROWS = 220, 24, 150
STAGES = 1, 7, N_GROWN
LEVELS = np.array(["oak", "ash", "elm", "fir", "yew"])
SMALL = {
    "XGB": {"max_depth": 3, "n_jobs": 1, "enable_categorical": True},
    "LGB": {"num_leaves": 6, "min_child_samples": 5, "n_jobs": 1, "verbose": -1},
    "Cat": {"depth": 3, "thread_count": 1, "verbose": 0, "allow_writing_files": False},
    "His": {
        "max_leaf_nodes": 6,
        "min_samples_leaf": 5,
        "categorical_features": "from_dtype",
        "early_stopping": False,
    },
}
SKLEARN = {
    "HistGradientBoostingRegressor": HistGradientBoostingRegressor,
    "HistGradientBoostingClassifier": HistGradientBoostingClassifier,
}
COUNTS = {"Cat": "iterations", "His": "max_iter"}
# The library, the objective as it calls it, and the targets.
OBJECTIVES = {
    "xgboost squared": ("XGBRegressor", {}, "values"),
    "xgboost absolute": ("XGBRegressor", {"objective": "reg:absoluteerror"}, "values"),
    "xgboost poisson": ("XGBRegressor", {"objective": "count:poisson"}, "counts"),
    "xgboost gamma": ("XGBRegressor", {"objective": "reg:gamma"}, "positive"),
    "xgboost tweedie": ("XGBRegressor", {"objective": "reg:tweedie"}, "counts"),
    "xgboost logarithms": (
        "XGBRegressor",
        {"objective": "reg:squaredlogerror"},
        "positive",
    ),
    "xgboost shares": ("XGBRegressor", {"objective": "reg:logistic"}, "numbers"),
    "xgboost outputs": ("XGBRegressor", {}, "outputs"),
    "xgboost trees of outputs": (
        "XGBRegressor",
        {"multi_strategy": "multi_output_tree"},
        "outputs",
    ),
    "xgboost rows drawn": (
        "XGBRegressor",
        {"subsample": 0.6, "colsample_bylevel": 0.5, "random_state": None},
        "values",
    ),
    "xgboost one hot": ("XGBRegressor", {"max_cat_to_onehot": 9}, "values"),
    "xgboost two": ("XGBClassifier", {}, "numbers"),
    "xgboost booleans": ("XGBClassifier", {}, "booleans"),
    "xgboost three": ("XGBClassifier", {}, "three numbers"),
    "lightgbm squared": ("LGBMRegressor", {}, "values"),
    "lightgbm huber": ("LGBMRegressor", {"objective": "huber"}, "values"),
    "lightgbm fair": ("LGBMRegressor", {"objective": "fair"}, "values"),
    "lightgbm poisson": ("LGBMRegressor", {"objective": "poisson"}, "counts"),
    "lightgbm gamma": ("LGBMRegressor", {"objective": "gamma"}, "positive"),
    "lightgbm tweedie": ("LGBMRegressor", {"objective": "tweedie"}, "counts"),
    "lightgbm shares": ("LGBMRegressor", {"objective": "cross_entropy"}, "numbers"),
    "lightgbm intensity": (
        "LGBMRegressor",
        {"objective": "cross_entropy_lambda"},
        "numbers",
    ),
    "lightgbm rows drawn": (
        "LGBMRegressor",
        {"subsample": 0.6, "subsample_freq": 1, "random_state": None},
        "values",
    ),
    "lightgbm two": ("LGBMClassifier", {}, "words"),
    "lightgbm booleans": ("LGBMClassifier", {}, "booleans"),
    "lightgbm three": ("LGBMClassifier", {}, "three words"),
    "catboost squared": ("CatBoostRegressor", {}, "values"),
    "catboost absolute": ("CatBoostRegressor", {"loss_function": "MAE"}, "values"),
    "catboost expectile": (
        "CatBoostRegressor",
        {"loss_function": "Expectile:alpha=0.3"},
        "values",
    ),
    "catboost huber": (
        "CatBoostRegressor",
        {"objective": "Huber:delta=0.5", "eta": 0.1},
        "values",
    ),
    "catboost poisson": ("CatBoostRegressor", {"loss_function": "Poisson"}, "counts"),
    "catboost tweedie": (
        "CatBoostRegressor",
        {"objective": "Tweedie:variance_power=1.3"},
        "counts",
    ),
    "catboost outputs": (
        "CatBoostRegressor",
        {"loss_function": "MultiRMSE"},
        "outputs",
    ),
    "catboost average asked for": (
        "CatBoostRegressor",
        {"boost_from_average": True},
        "values",
    ),
    "catboost ordered": ("CatBoostRegressor", {"boosting_type": "Ordered"}, "values"),
    "catboost two": ("CatBoostClassifier", {}, "words"),
    "catboost booleans": ("CatBoostClassifier", {}, "booleans"),
    "catboost rate": ("CatBoostClassifier", {"learning_rate": 0.03}, "numbers"),
    "catboost focal": (
        "CatBoostClassifier",
        {"loss_function": "Focal:focal_alpha=0.4;focal_gamma=1.5"},
        "numbers",
    ),
    "catboost three": ("CatBoostClassifier", {}, "three words"),
    "catboost one versus all": (
        "CatBoostClassifier",
        {"loss_function": "MultiClassOneVsAll"},
        "three numbers",
    ),
    "catboost bayesian": (
        "CatBoostClassifier",
        {"bootstrap_type": "Bayesian"},
        "three numbers",
    ),
    "scikit-learn squared": ("HistGradientBoostingRegressor", {}, "values"),
    "scikit-learn poisson": (
        "HistGradientBoostingRegressor",
        {"loss": "poisson"},
        "counts",
    ),
    "scikit-learn three": ("HistGradientBoostingClassifier", {}, "three words"),
}
CATEGORIES = "none", "words", "rare", "numbers", "missing"


def estimator_of(name, n_stages=N_PLANNED, **settings):
    short = name[:3]
    if short == "His":
        cls = SKLEARN[name]
    else:
        cls = getattr(pytest.importorskip(LIBRARIES[short]), name)
    return cls(
        **{COUNTS.get(short, "n_estimators"): n_stages} | SMALL[short] | settings
    )


def table_of(categories, targets, is_catboost):
    """A table with a column of categories, and targets that depend on it."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.standard_normal((N_ROWS, 3)), columns=list("abc"))
    level = rng.integers(len(LEVELS), size=N_ROWS)
    if categories == "rare":  # in one fold alone
        level = np.where(np.arange(N_ROWS) < 3, 4, level % 4)
    signal = X.a + np.sin(3 * X.b) + level / 2 + 0.3 * rng.standard_normal(N_ROWS)
    signal = (signal - signal.mean()).to_numpy()
    X.loc[::17, "c"] = np.nan
    if categories == "numbers":
        X["k"] = pd.Categorical(10 - 2 * level)
    elif categories != "none":
        X["k"] = pd.Categorical(LEVELS[level])
    if categories == "missing":
        if is_catboost:  # which has none
            X["k"] = X.k.cat.add_categories("none")
        X.loc[::11, "k"] = "none" if is_catboost else None
    three = np.digitize(signal, np.quantile(signal, [0.3, 0.6]))
    return X, {
        "values": signal,
        "counts": np.round(np.exp(signal)),
        "positive": np.exp(signal),
        "outputs": np.column_stack([signal, -(signal**2)]),
        "numbers": (signal > 0).astype(int),
        "booleans": signal > 0,
        "words": np.where(signal > 0, "yes", "no"),
        "three numbers": three,
        "three words": np.array(["top", "mid", "low"])[three],
    }[targets]


def listed_otherwise(X):
    """Some rows, whose categories are listed in another order and without others."""
    X = X.iloc[5:12].copy()
    if "k" in X:
        present = X.k.cat.remove_unused_categories()
        # XGBoost reads categories of numbers wrongly where they are a reversed view.
        X["k"] = present.cat.reorder_categories(list(present.cat.categories)[::-1])
    return X


class OfTheClass:
    """Fits of the class itself, to the same rows."""

    def __init__(self, inner, X, y, weights):
        self.inner, self.is_catboost = inner, type(inner).__module__[:8] == "catboost"
        self.passed, self.weights, self.known = (X, y), weights, {}

    def fitted(self, which, t):
        key = (*which,) + (() if self.is_catboost else (t,))
        if key not in self.known:
            params = self.inner.get_params()
            if not self.is_catboost:
                params[COUNTS.get(type(self.inner).__name__[:3], "n_estimators")] = t
            weights = None if self.weights is None else self.weights[which]
            own = [rows(each, which) for each in self.passed]
            new = type(self.inner)(**params)
            self.known[key] = new.fit(*own, sample_weight=weights)
        return self.known[key]

    def predicted(self, X, which, t):
        fitted = self.fitted(which, t)
        if not self.is_catboost:
            return answer(fitted, X)
        name = "predict_proba" if is_classifier(fitted) else "predict"
        return getattr(fitted, name)(X, ntree_end=t)


def assert_is_its_class(inner, X, y, weights):
    model = Staged(inner, cv=KFold(3))
    of_class, everything = OfTheClass(inner, X, y, weights), np.arange(len(y))
    parts = InParts(model, X, y, sample_weight=weights)
    for n_stages in (5, N_GROWN):  # in blocks
        parts.go_on(n_stages)
    others = [X, X.iloc[[2]], listed_otherwise(X)]
    stored = pickle.loads(pickle.dumps(model))
    response = "predict_proba" if is_classifier(inner) else "predict"
    staged = [list(getattr(stored, f"staged_{response}")(other)) for other in others]
    for t in STAGES:
        stopped = model.at_iteration(t)
        again = pickle.loads(pickle.dumps(stopped))
        for place, other in enumerate(others):
            expected = of_class.predicted(other, everything, t)
            for found in (
                answer(stopped, other),
                answer(again, other),
                answer(stored.at_iteration(t), other),
                staged[place][t - 1],
            ):
                np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    begin = 0
    for judged in model.cv_indices_:
        fitted, end = np.setdiff1d(everything, judged), begin + len(judged)
        for t in STAGES:
            expected = of_class.predicted(rows(X, judged), fitted, t)
            found = model.cv_prediction_path_[t][begin:end]
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
        begin = end


@covering(objective=OBJECTIVES, categories=CATEGORIES, is_weighted=[False, True])
def test_stages_are_those_of_the_class(objective, categories, is_weighted):
    name, settings, targets = OBJECTIVES[objective]
    is_catboost = name.startswith("Cat")
    X, y = table_of(categories, targets, is_catboost)
    if is_catboost and categories != "none":
        settings = settings | {"cat_features": ["k"]}
    weights = np.random.default_rng(4).uniform(0.2, 3.0, len(y))
    inner = estimator_of(name, **settings)
    if objective == "xgboost trees of outputs" and categories != "none":
        pytest.importorskip("xgboost", minversion="3")  # which refuses it itself
        with pytest.raises(Exception, match="Categorical features"):
            Staged(inner).fit(X, y)
        return
    assert_is_its_class(inner, X, y, weights if is_weighted else None)


DAYS = np.arange("2024-01-01", "2024-05-30", dtype="datetime64[D]")
NO_NUMBERS = {
    "dates": lambda X: np.stack([DAYS, DAYS], axis=1),
    "complex": lambda X: X + 1j,
    "objects": lambda X: X.astype(str).astype(object),
    "a column of dates": lambda X: pd.DataFrame({"a": DAYS, "b": X[:, 0]}),
}


# CatBoost may be told that objects are categories.
REFUSED = [(name, what) for name in PLAIN[:2] for what in NO_NUMBERS]
REFUSED += [("CatBoostRegressor", "dates"), ("CatBoostRegressor", "complex")]


@pytest.mark.parametrize(("name", "what"), REFUSED)
def test_rows_that_are_no_numbers(name, what):
    """Whatever the library would make of them."""
    X, y = table()
    model = Staged(booster(name, 2))
    with pytest.raises(ValueError, match="must be numbers, got"):
        model.fit(NO_NUMBERS[what](X), y)
    assert not hasattr(model, "n_iter_")
