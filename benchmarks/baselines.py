"""What do users run today on a table? Peers of the default, tuned as they would.

A peer is a function of the task, and of settings of its library, that gives an
estimator of raw frames, with its view of them (``views.py``): libraries of boosted
trees take categories and missing values as they are, the others have numbers. Those of
a library import it when called.
"""

from functools import partial

import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LassoCV, LogisticRegression, RidgeCV
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from .views import Viewed, categories, categories_and_means, indicators, text

SEED = 0
EVALUATED = 0.2  # of the training rows, by the early stopping of libraries
PATIENCE = 50
GAMMAS = np.array([0.1, 0.3, 1.0, 3.0])


def of_task(task, regressor, classifier, **parameters):
    """The class of a task, with parameters and a seed."""
    kind = regressor if task == "regression" else classifier
    return kind(random_state=SEED, **parameters)


def scaled(model):
    return make_pipeline(StandardScaler(), model)


def negative_log_loss(model, X, y):
    """A scorer that stands folds without one of the classes."""
    return -log_loss(y, model.predict_proba(X), labels=model.classes_)


def linear(task):
    """RidgeCV, or logistic regression of 10 values of C by five folds."""

    def peer(p):
        if task == "regression":
            return scaled(RidgeCV(np.logspace(-3, 5, 25)))
        model, grid = LogisticRegression(max_iter=1000), {"C": np.logspace(-4, 4, 10)}
        return scaled(GridSearchCV(model, grid, cv=5, scoring=negative_log_loss))

    return Viewed(indicators(task), peer)


def lasso(task):
    """LassoCV by five folds: of numbers only."""
    return Viewed(indicators(task), lambda p: scaled(LassoCV(random_state=SEED)))


def support_vectors(task):
    """An SVM, 4 gammas x 4 values of C, five folds; probabilities are calibrated."""

    def peer(p):
        grid = {"gamma": GAMMAS / p, "C": np.logspace(-1, 2, 4)}
        if task == "classification":
            return Calibrated(scaled(GridSearchCV(SVC(), grid, cv=5)))
        search = GridSearchCV(SVR(), grid, cv=5)
        return scaled(TransformedTargetRegressor(search, transformer=StandardScaler()))

    return Viewed(indicators(task), peer)


class Calibrated(BaseEstimator):
    """Labels of a search, and probabilities of what it has found by five more folds."""

    def __init__(self, pipeline):
        self.pipeline = pipeline

    def fit(self, X, y):
        self.labels_ = clone(self.pipeline).fit(X, y)
        results = scaled(clone(self.labels_[-1].best_estimator_))
        folds = int(np.clip(np.bincount(y).min(), 2, 5))  # of each class a row in each
        self.probabilities_ = CalibratedClassifierCV(results, cv=folds).fit(X, y)
        return self

    def predict(self, X):
        return self.labels_.predict(X)

    def predict_proba(self, X):
        return self.probabilities_.predict_proba(X)


def forest(task):
    classes = RandomForestRegressor, RandomForestClassifier
    model = of_task(task, *classes, n_estimators=500)
    return Viewed(indicators(task), lambda p: model)


def histograms(task, is_frame=True, **settings):
    """Boosted trees of scikit-learn that set rows aside."""
    settings = {"max_iter": 1000, "early_stopping": True} | settings
    classes = HistGradientBoostingRegressor, HistGradientBoostingClassifier
    model = of_task(task, *classes, categorical_features="from_dtype", **settings)
    return Viewed(categories_and_means(task), lambda p: model) if is_frame else model


class Stopped(BaseEstimator):
    """A library's estimator, stopped by a fifth of the training rows."""

    def __init__(self, model, names_categories=False, **options):
        self.model = model
        self.names_categories = names_categories
        self.options = options

    def fit(self, X, y):
        labels = y if hasattr(self.model, "predict_proba") else None
        options = dict(self.options)
        if self.names_categories:
            options["cat_features"] = list(X.select_dtypes(exclude="number"))
        X, aside, y, y_aside = train_test_split(
            X, y, test_size=EVALUATED, random_state=SEED, stratify=labels
        )
        self.model.fit(X, y, eval_set=[(aside, y_aside)], **options)
        return self

    def predict(self, X):
        return self.model.predict(X)

    def predict_proba(self, X):
        return self.model.predict_proba(X)


def lightgbm(task, is_frame=True, n_jobs=1, **settings):
    """LightGBM with the usual early stopping."""
    from lightgbm import LGBMClassifier, LGBMRegressor, early_stopping

    settings = {"n_estimators": 2000, "n_jobs": n_jobs, "verbose": -1} | settings
    model = of_task(task, LGBMRegressor, LGBMClassifier, **settings)
    model = Stopped(model, callbacks=[early_stopping(PATIENCE, verbose=False)])
    return Viewed(categories(task), lambda p: model) if is_frame else model


N_TRIALS = 30


def tuned_lightgbm(task):
    """LightGBM of the best of 30 random settings, by five folds."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    constant = {"subsample_freq": 1, "n_jobs": 1, "verbose": -1}
    settings = {
        "learning_rate": loguniform(0.01, 0.3),
        "n_estimators": randint(50, 501),
        "num_leaves": randint(4, 64),
        "min_child_samples": randint(2, 41),
        "reg_lambda": loguniform(1e-3, 10),
        "subsample": uniform(0.5, 0.5),
        "colsample_bytree": uniform(0.4, 0.6),
    }
    is_class = task == "classification"
    search = RandomizedSearchCV(
        of_task(task, LGBMRegressor, LGBMClassifier, **constant),
        settings,
        n_iter=N_TRIALS,
        scoring=negative_log_loss if is_class else "neg_mean_squared_error",
        cv=5 if is_class else KFold(5, shuffle=True, random_state=SEED),
        random_state=SEED,
    )
    return Viewed(categories(task), lambda p: search)


def catboost(task, is_frame=True, n_jobs=1, **settings):
    """CatBoost with its own learning rate and the usual early stopping."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    settings = {"thread_count": n_jobs, "verbose": False} | settings
    settings["allow_writing_files"] = False
    model = of_task(task, CatBoostRegressor, CatBoostClassifier, **settings)
    model = Stopped(model, is_frame, early_stopping_rounds=PATIENCE)
    return Viewed(text(task), lambda p: model) if is_frame else model


SIX = {
    "CatBoost": catboost,
    "LightGBM": partial(lightgbm, learning_rate=0.05),
    "HistGradientBoosting": histograms,
    "random forest": forest,
    "linear": linear,
    "SVM": support_vectors,
}
