"""What do users run today on a table, tuned as they would? Peers of the default.

A peer is a function of the task and the number of columns that gives an estimator on
one thread. Those of a library import it when called. ``PEERS`` has each with its view
of the raw frame, see ``views.py``: libraries of boosted trees take categories and
missing values as they are, the others have numbers.
"""

from functools import partial

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from ..studies.default_call import GAMMAS, regression_peers
from .views import Viewed, categories, categories_and_means, indicators, text

SEED = 0
N_TREES = 500
EVALUATED = 0.2  # of the training rows, by the early stopping of libraries
ROUNDS = {"n_estimators": 2000, "learning_rate": 0.05}
PATIENCE = 50
STAGES = {"max_iter": [50, 100, 200, 400], "learning_rate": [0.05, 0.1]}
STRENGTHS = np.logspace(-1, 2, 4)  # values of an SVM's C
AUTOML_SECONDS = 8
AUTOML = f"FLAML, {AUTOML_SECONDS} s"


def negative_log_loss(model, X, y):
    """A scorer that stands folds without one of the classes."""
    return -log_loss(y, model.predict_proba(X), labels=model.classes_)


def scaled(model):
    return make_pipeline(StandardScaler(), model)


class Wrapped(BaseEstimator):
    """Predicts as its model does, which subclasses fit."""

    def predict(self, X):
        return self.model.predict(X)

    def predict_proba(self, X):
        return self.model.predict_proba(X)


def of_task(regressor, classifier, **parameters):
    """A peer that is a class for each task."""

    def peer(task, p):
        kind = regressor if task == "regression" else classifier
        return kind(random_state=SEED, **parameters)

    return peer


def scaled_peer(name):
    """A regression of the study of defaults, with its columns scaled."""

    def peer(task, p):
        return scaled(regression_peers(p)[name])

    return peer


def support_vectors(task, p):
    """An SVM, 4 gammas x 4 values of C, five folds; probabilities are calibrated."""
    grid = {"gamma": GAMMAS / p, "C": STRENGTHS}
    if task == "classification":
        return Calibrated(scaled(GridSearchCV(SVC(), grid, cv=5)))
    search = GridSearchCV(SVR(), grid, cv=5)
    return scaled(TransformedTargetRegressor(search, transformer=StandardScaler()))


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


def logistic(task, p):
    """Logistic regression, 10 values of C, five folds."""
    grid = {"C": np.logspace(-4, 4, 10)}
    model = LogisticRegression(max_iter=1000)
    return scaled(GridSearchCV(model, grid, cv=5, scoring=negative_log_loss))


boosting = of_task(
    HistGradientBoostingRegressor,
    HistGradientBoostingClassifier,
    categorical_features="from_dtype",
)


def stopped_boosting(task, p):
    """Boosted trees that set a tenth of the rows aside."""
    return boosting(task, p).set_params(early_stopping=True, max_iter=1000)


def searched_boosting(task, p):
    """Boosted trees, 4 numbers of them x 2 learning rates, five folds."""
    model = boosting(task, p).set_params(early_stopping=False)
    scoring = negative_log_loss if task == "classification" else None
    return GridSearchCV(model, STAGES, cv=5, scoring=scoring)


class Stopped(Wrapped):
    """A library's estimator, stopped by a fifth of the training rows."""

    def __init__(self, model, **options):
        self.model = model
        self.options = options

    def fit(self, X, y):
        labels = y if hasattr(self.model, "predict_proba") else None
        X, aside, y, y_aside = train_test_split(
            X, y, test_size=EVALUATED, random_state=SEED, stratify=labels
        )
        self.model.fit(X, y, eval_set=[(aside, y_aside)], **self.options)
        return self


def xgboost(task, p):
    """XGBoost with the usual early stopping."""
    from xgboost import XGBClassifier, XGBRegressor

    peer = of_task(XGBRegressor, XGBClassifier, n_jobs=1, **ROUNDS)
    model = peer(task, p).set_params(
        early_stopping_rounds=PATIENCE, enable_categorical=True
    )
    return Stopped(model, verbose=False)


def lightgbm(task, p):
    """LightGBM with the usual early stopping."""
    from lightgbm import LGBMClassifier, LGBMRegressor, early_stopping

    peer = of_task(LGBMRegressor, LGBMClassifier, n_jobs=1, verbose=-1, **ROUNDS)
    return Stopped(peer(task, p), callbacks=[early_stopping(PATIENCE, verbose=False)])


class StoppedCatBoost(Stopped):
    """The same, which needs the names of columns of text."""

    def fit(self, X, y):
        self.options["cat_features"] = list(X.select_dtypes(exclude="number"))
        return super().fit(X, y)


def catboost(task, p):
    """CatBoost with its own learning rate and the usual early stopping."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    options = {"thread_count": 1, "verbose": False, "allow_writing_files": False}
    peer = of_task(CatBoostRegressor, CatBoostClassifier, **options)
    return StoppedCatBoost(peer(task, p), early_stopping_rounds=PATIENCE)


class Automatic(Wrapped):
    """FLAML with a budget of time."""

    def __init__(self, model, task):
        self.model = model
        self.task = task

    def fit(self, X, y):
        metric = "mse" if self.task == "regression" else "log_loss"
        self.model.fit(
            X_train=X,
            y_train=y,
            task=self.task,
            metric=metric,
            time_budget=AUTOML_SECONDS,
            n_jobs=1,
            seed=SEED,
            verbose=0,
        )
        return self


def flaml(task, p):
    from flaml import AutoML

    return Automatic(AutoML(), task)


def after(view, peer):
    """A peer of raw frames, as a function of the task."""

    def of_frames(task):
        return Viewed(view(task), partial(peer, task))

    return of_frames


ON_NUMBERS = {
    "regression": {
        **{
            name: scaled_peer(name)
            for name in ("LassoCV", "ElasticNetCV", "RidgeCV", "KernelRidge")
        },
        "SVR": support_vectors,
    },
    "classification": {"logistic": logistic, "SVC": support_vectors},
}
FORESTS = {
    "random forest": of_task(
        RandomForestRegressor, RandomForestClassifier, n_estimators=N_TREES
    ),
    "extra trees": of_task(
        ExtraTreesRegressor, ExtraTreesClassifier, n_estimators=N_TREES
    ),
}
BOOSTED = {
    "HistGB, stopped": after(categories_and_means, stopped_boosting),
    "HistGB, folds": after(categories_and_means, searched_boosting),
    "XGBoost": after(categories, xgboost),
    "LightGBM": after(categories, lightgbm),
    "CatBoost": after(text, catboost),
    AUTOML: after(categories, flaml),
}
PEERS = {
    task: {name: after(indicators, peer) for name, peer in (numbers | FORESTS).items()}
    | BOOSTED
    for task, numbers in ON_NUMBERS.items()
}
# Those that the claim about raw frames names, and what it calls them.
SIX = {
    "CatBoost": "CatBoost",
    "LightGBM": "LightGBM",
    "HistGB, stopped": "HistGradientBoosting",
    "random forest": "random forest",
    **dict.fromkeys(["RidgeCV", "logistic"], "linear"),
    **dict.fromkeys(["SVR", "SVC"], "SVM"),
}
