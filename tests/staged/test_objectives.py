"""Every objective of the libraries: the loss that judges stages, by brute force.

A case has a plain estimator of a library, targets, and the loss of its objective as the
library documents it, written out here. Clones are fitted by hand to the same folds, and
the means of their losses are the path. Where the library evaluates its objective
itself, the formula is compared with that too.
"""

import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import (
    GammaRegressor,
    PoissonRegressor,
    SGDClassifier,
    SGDRegressor,
    TweedieRegressor,
)
from sklearn.model_selection import KFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.tree import DecisionTreeRegressor

from skacv import Staged, TrajectoryEarlyStoppingCV
from skacv.optim.losses import Poisson
from skacv.staged.adapters import Forests, Passes, staged_adapter_of
from skacv.staged.catboost_boosters import CatBoost
from skacv.staged.gradient_boosting import HistBoosting, PlainBoosting
from skacv.staged.lightgbm_boosters import LightGBM
from skacv.staged.xgboost_boosters import XGBoost

N_ROWS, N_STAGES, FOLDS = 90, 9, KFold(3)
STAGES = 2, N_STAGES


def table(targets):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((N_ROWS, 3))
    signal = X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.standard_normal(N_ROWS)
    return X, {
        "values": 3 * signal,
        "counts": np.round(np.exp(signal)),
        "positive": np.exp(signal),
        "shares": 1 / (1 + np.exp(-signal)),
        "labels": (signal > 0).astype(int),
        "classes": np.digitize(signal, [-0.7, 0.7]),
        "outputs": np.column_stack([signal, signal**2]),
    }[targets]


# ------------------------------------------------------------------ losses written out


def squared(y, p):
    return (y - p) ** 2


def absolute(y, p):
    return abs(y - p)


def pinball(level):
    return lambda y, p: np.where(y > p, level * (y - p), (1 - level) * (p - y))


def expectile(level):
    return lambda y, p: abs(level - (y < p)) * (y - p) ** 2


def huber(delta):
    def loss(y, p):
        r = abs(y - p)
        return np.where(r <= delta, r**2 / 2, delta * (r - delta / 2))

    return loss


def pseudo_huber(slope):
    return lambda y, p: slope**2 * (np.sqrt(1 + ((y - p) / slope) ** 2) - 1)


def fair(c):
    return lambda y, p: c * abs(y - p) - c**2 * np.log(1 + abs(y - p) / c)


def log_cosh(y, p):
    return np.log(np.cosh(y - p))


def relative(y, p):
    return abs(y - p) / np.maximum(1, abs(y))


def squared_relative(y, p):
    return relative(y, p) ** 2


def power(q):
    return lambda y, p: abs(y - p) ** q


def insensitive(epsilon, q=1):
    return lambda y, p: np.maximum(abs(y - p) - epsilon, 0) ** q


def squared_log(y, p):
    return (np.log(p + 1) - np.log(y + 1)) ** 2 / 2


def of_roots(loss):
    def signed_root(x):
        return np.sign(x) * np.sqrt(abs(x))

    return lambda y, p: loss(signed_root(y), signed_root(p))


def poisson(y, p):
    logarithm = np.log(np.where(y > 0, y, 1) / p)
    return y * logarithm - y + p


def gamma(y, p):
    return y / p - np.log(y / p) - 1


def tweedie(q):
    return lambda y, p: (
        y ** (2 - q) / ((1 - q) * (2 - q))
        - y * p ** (1 - q) / (1 - q)
        + p ** (2 - q) / (2 - q)
    )


def cross_entropy(y, p):
    return -y * np.log(p) - (1 - y) * np.log(1 - p)


def intensity(y, p):
    return cross_entropy(y, 1 - np.exp(-p))


def log_loss(y, p):
    return -np.log(p[np.arange(len(y)), y])


def one_versus_all(y, p):
    return cross_entropy(np.eye(p.shape[1])[y], p).mean(axis=1)


def focal(alpha, g):
    def loss(y, p):
        right = p[np.arange(len(y)), y]
        weight = np.where(y == 1, alpha, 1 - alpha)
        return -weight * (1 - right) ** g * np.log(right)

    return loss


def exponential(y, p):
    raw = np.log(p[:, 1] / p[:, 0]) / 2
    return np.exp(-(2 * y - 1) * raw)


def wrong(y, decision):
    return (decision > 0) != (y == 1)


# ------------------------------------------------------------------ the cases

# By the class and its settings: targets, the loss, and the name of the library's own
# metric if it evaluates the objective, with the function of the mean loss that it is.
MEAN, ROOT = (lambda m: m), np.sqrt
XGB, LGB, CAT = "xgboost.XGB", "lightgbm.LGBM", "catboost.CatBoost"
LGB_SHARED = {"num_leaves": 4, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}
SMALL = {
    "xgboost": {"max_depth": 2, "n_jobs": 1, "n_estimators": N_STAGES},
    "lightgbm": LGB_SHARED | {"n_estimators": N_STAGES},
    "catboost": {
        "depth": 2,
        "thread_count": 1,
        "verbose": 0,
        "allow_writing_files": False,
        "iterations": N_STAGES,
        "learning_rate": 0.3,
    },
}
EVALUATED = {
    ("XGBRegressor", "reg:squarederror"): ("values", squared, "rmse", ROOT),
    ("XGBRegressor", "reg:squaredlogerror"): (
        "positive",
        squared_log,
        "rmsle",
        lambda m: np.sqrt(2 * m),
    ),
    ("XGBRegressor", "reg:absoluteerror"): ("values", absolute, "mae", MEAN),
    ("XGBRegressor", "reg:pseudohubererror", "huber_slope=0.5"): (
        "values",
        pseudo_huber(0.5),
        "mphe",
        MEAN,
    ),
    ("XGBRegressor", "reg:quantileerror", "quantile_alpha=0.8"): (
        "values",
        pinball(0.8),
        "quantile",
        MEAN,
    ),
    ("XGBRegressor", "reg:logistic"): ("shares", cross_entropy, "logloss", MEAN),
    ("XGBRegressor", "binary:logistic"): ("shares", cross_entropy, "logloss", MEAN),
    ("XGBRegressor", "count:poisson"): ("counts", poisson, None, None),
    ("XGBRegressor", "reg:gamma"): (
        "positive",
        gamma,
        "gamma-deviance",
        lambda m: 2 * m,
    ),
    ("XGBRegressor", "reg:tweedie", "tweedie_variance_power=1.3"): (
        "counts",
        tweedie(1.3),
        None,
        None,
    ),
    ("XGBClassifier", "binary:logistic"): ("labels", log_loss, "logloss", MEAN),
    ("XGBClassifier", "multi:softprob"): ("classes", log_loss, "mlogloss", MEAN),
    ("XGBClassifier", "multi:softmax"): ("classes", log_loss, "mlogloss", MEAN),
    ("LGBMRegressor", "regression"): ("values", squared, "l2", MEAN),
    ("LGBMRegressor", "rmse"): ("values", squared, "l2", MEAN),
    ("LGBMRegressor", "regression", "reg_sqrt=True"): (
        "positive",
        of_roots(squared),
        None,
        None,
    ),
    ("LGBMRegressor", "quantile", "reg_sqrt=True", "alpha=0.7"): (
        "values",
        of_roots(pinball(0.7)),
        None,
        None,
    ),
    ("LGBMRegressor", "huber", "reg_sqrt=True"): ("values", huber(0.9), "huber", MEAN),
    ("LGBMRegressor", "regression_l1"): ("values", absolute, "l1", MEAN),
    ("LGBMRegressor", "huber", "alpha=0.5"): ("values", huber(0.5), "huber", MEAN),
    ("LGBMRegressor", "fair", "fair_c=0.5"): ("values", fair(0.5), "fair", MEAN),
    ("LGBMRegressor", "quantile", "alpha=0.8"): (
        "values",
        pinball(0.8),
        "quantile",
        MEAN,
    ),
    ("LGBMRegressor", "mape"): ("values", relative, "mape", MEAN),
    ("LGBMRegressor", "poisson"): ("counts", poisson, None, None),
    ("LGBMRegressor", "gamma"): (
        "positive",
        gamma,
        "gamma_deviance",
        lambda m: 2 * m * N_ROWS,
    ),
    ("LGBMRegressor", "tweedie", "tweedie_variance_power=1.3"): (
        "counts",
        tweedie(1.3),
        None,
        None,
    ),
    ("LGBMRegressor", "cross_entropy"): (
        "shares",
        cross_entropy,
        "cross_entropy",
        MEAN,
    ),
    ("LGBMRegressor", "cross_entropy_lambda"): (
        "shares",
        intensity,
        "cross_entropy_lambda",
        MEAN,
    ),
    ("LGBMRegressor", "binary"): ("labels", cross_entropy, "binary_logloss", MEAN),
    ("LGBMClassifier", "binary"): ("labels", log_loss, "binary_logloss", MEAN),
    ("LGBMClassifier", "multiclass"): ("classes", log_loss, "multi_logloss", MEAN),
    ("LGBMClassifier", "multiclassova"): ("classes", one_versus_all, None, None),
    ("LGBMClassifier", "cross_entropy"): ("labels", log_loss, "cross_entropy", MEAN),
    ("CatBoostRegressor", "RMSE"): ("values", squared, "RMSE", ROOT),
    ("CatBoostRegressor", "MultiRMSE"): (
        "outputs",
        lambda y, p: squared(y, p).mean(axis=1),
        "MultiRMSE",
        lambda m: np.sqrt(2 * m),
    ),
    ("CatBoostRegressor", "MAE"): ("values", absolute, "MAE", MEAN),
    ("CatBoostRegressor", "Quantile:alpha=0.8"): (
        "values",
        pinball(0.8),
        "Quantile:alpha=0.8",
        MEAN,
    ),
    ("CatBoostRegressor", "Expectile:alpha=0.9"): (
        "values",
        expectile(0.9),
        "Expectile:alpha=0.9",
        MEAN,
    ),
    ("CatBoostRegressor", "Huber:delta=0.5"): (
        "values",
        huber(0.5),
        "Huber:delta=0.5",
        MEAN,
    ),
    ("CatBoostRegressor", "LogCosh"): ("values", log_cosh, "LogCosh", MEAN),
    ("CatBoostRegressor", "Lq:q=3"): ("values", power(3), "Lq:q=3", MEAN),
    ("CatBoostRegressor", "MAPE"): ("values", relative, "MAPE", MEAN),
    ("CatBoostRegressor", "RMSPE"): ("values", squared_relative, "RMSPE", ROOT),
    ("CatBoostRegressor", "Poisson"): ("counts", poisson, None, None),
    ("CatBoostRegressor", "Tweedie:variance_power=1.3"): (
        "counts",
        tweedie(1.3),
        None,
        None,
    ),
    ("CatBoostClassifier", "Logloss"): ("labels", log_loss, "Logloss", MEAN),
    ("CatBoostClassifier", "CrossEntropy"): ("labels", log_loss, "CrossEntropy", MEAN),
    ("CatBoostClassifier", "Focal:focal_alpha=0.4;focal_gamma=1.5"): (
        "labels",
        focal(0.4, 1.5),
        "Focal:focal_alpha=0.4;focal_gamma=1.5",
        MEAN,
    ),
    ("CatBoostClassifier", "MultiClass"): ("classes", log_loss, "MultiClass", MEAN),
    ("CatBoostClassifier", "MultiClassOneVsAll"): (
        "classes",
        one_versus_all,
        "MultiClassOneVsAll",
        MEAN,
    ),
}
LIBRARIES = {"XGB": "xgboost", "LGB": "lightgbm", "Cat": "catboost"}


def booster(name, objective, *settings):
    library = LIBRARIES[name[:3]]
    cls = getattr(pytest.importorskip(library), name)
    pairs = (setting.split("=") for setting in settings)
    settings = {key: value == "True" or float(value) for key, value in pairs}
    return cls(objective=objective, **SMALL[library], **settings)


def staged(fitted, X):
    """Predictions, or probabilities, of every stage, by the library's own means."""
    kind = type(fitted).__name__
    response = "predict_proba" if is_classifier(fitted) else "predict"
    stages = np.arange(1, N_STAGES + 1)
    if kind.startswith("Cat"):
        yield from (getattr(fitted, response)(X, ntree_end=t) for t in stages)
    elif kind.startswith("LGB"):
        yield from (getattr(fitted, response)(X, num_iteration=t) for t in stages)
    elif fitted.get_params().get("objective") == "multi:softmax":
        # Its predictions are labels, and its margins those of "multi:softprob".
        for t in stages:
            raw = fitted.predict(X, output_margin=True, iteration_range=(0, t))
            yield np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True)
    else:
        yield from (
            getattr(fitted, response)(X, iteration_range=(0, t)) for t in stages
        )


def path_by_hand(estimator, X, y, loss, staged):
    """The mean loss of every stage on held-out rows, by clones on the same folds."""
    total = 0
    for fitted, held_out in FOLDS.split(X):
        copy = clone(estimator).fit(X[fitted], y[fitted])
        total = total + np.array(
            [
                np.sum(loss(y[held_out], np.asarray(p, dtype=float)))
                for p in staged(copy, X[held_out])
            ]
        )
    return total / len(y)


@pytest.mark.parametrize("case", EVALUATED, ids="-".join)
def test_stages_of_boosters_are_judged_by_their_objective(case):
    targets, loss, metric, of_mean = EVALUATED[case]
    (X, y), estimator = table(targets), booster(*case)
    found = Staged(estimator, cv=FOLDS).fit(X, y).cv_path_[1:]
    expected = path_by_hand(estimator, X, y, loss, staged)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    if metric is None:
        return
    # The formula is the library's own.
    name, fitted = case[0], clone(estimator)
    if name.startswith("Cat"):
        fitted.set_params(custom_metric=metric).fit(X, y, eval_set=[(X, y)])
        values = fitted.get_evals_result()["validation"][metric]
    elif name.startswith("LGB"):
        fitted.set_params(metric=metric).fit(X, y, eval_set=[(X, y)])
        (results,) = fitted.evals_result_.values()
        values = results[metric]
    else:
        fitted.set_params(eval_metric=metric)
        fitted.fit(X, y, eval_set=[(X, y)], verbose=False)
        values = next(iter(fitted.evals_result()["validation_0"].values()))
    means = np.array([loss(y, np.asarray(p, float)).mean() for p in staged(fitted, X)])
    # CatBoost computes log(cosh(r)) in single precision where r is large.
    rtol = 1e-4 if metric == "LogCosh" else 1e-5
    np.testing.assert_allclose(of_mean(means), values, rtol=rtol)


# ------------------------------------------------------------------ scikit-learn

BOOSTED = {"max_iter": N_STAGES, "min_samples_leaf": 5, "max_leaf_nodes": 4}
PLAIN = {"n_estimators": N_STAGES, "max_depth": 2, "random_state": 0}
PASSES = {"max_iter": N_STAGES, "random_state": 0}
SCIKIT_LEARN = {
    "hist squared": (HistGradientBoostingRegressor(**BOOSTED), "values", squared),
    "hist absolute": (
        HistGradientBoostingRegressor(loss="absolute_error", **BOOSTED),
        "values",
        absolute,
    ),
    "hist poisson": (
        HistGradientBoostingRegressor(loss="poisson", **BOOSTED),
        "counts",
        poisson,
    ),
    "hist gamma": (
        HistGradientBoostingRegressor(loss="gamma", **BOOSTED),
        "positive",
        gamma,
    ),
    "hist quantile": (
        HistGradientBoostingRegressor(loss="quantile", quantile=0.8, **BOOSTED),
        "values",
        pinball(0.8),
    ),
    "hist classes": (HistGradientBoostingClassifier(**BOOSTED), "classes", log_loss),
    "plain squared": (GradientBoostingRegressor(**PLAIN), "values", squared),
    "plain absolute": (
        GradientBoostingRegressor(loss="absolute_error", **PLAIN),
        "values",
        absolute,
    ),
    "plain huber": (
        GradientBoostingRegressor(loss="huber", **PLAIN),
        "values",
        absolute,
    ),
    "plain quantile": (
        GradientBoostingRegressor(loss="quantile", alpha=0.8, **PLAIN),
        "values",
        pinball(0.8),
    ),
    "plain quantile by default": (
        GradientBoostingRegressor(loss="quantile", **PLAIN),
        "values",
        pinball(0.9),
    ),
    "plain classes": (GradientBoostingClassifier(**PLAIN), "classes", log_loss),
    "plain exponential": (
        GradientBoostingClassifier(loss="exponential", **PLAIN),
        "labels",
        exponential,
    ),
    "forest squared": (RandomForestRegressor(**PLAIN), "values", squared),
    "forest absolute": (
        ExtraTreesRegressor(criterion="absolute_error", **PLAIN),
        "values",
        absolute,
    ),
    "forest poisson": (
        RandomForestRegressor(criterion="poisson", **PLAIN),
        "counts",
        poisson,
    ),
    "bagging of boosted quantiles": (
        BaggingRegressor(
            GradientBoostingRegressor(loss="quantile", alpha=0.8, n_estimators=4),
            n_estimators=N_STAGES,
            random_state=0,
        ),
        "values",
        pinball(0.8),
    ),
    "bagging of trees": (
        BaggingRegressor(
            DecisionTreeRegressor(criterion="absolute_error", max_depth=2),
            n_estimators=N_STAGES,
            random_state=0,
        ),
        "values",
        absolute,
    ),
    "adaboost": (
        AdaBoostRegressor(loss="exponential", n_estimators=N_STAGES, random_state=0),
        "values",
        squared,
    ),
    "sgd squared": (SGDRegressor(**PASSES), "values", squared),
    "sgd huber": (SGDRegressor(loss="huber", **PASSES), "values", huber(0.1)),
    "sgd insensitive": (
        SGDRegressor(loss="epsilon_insensitive", epsilon=0.3, **PASSES),
        "values",
        insensitive(0.3),
    ),
    "sgd squared insensitive": (
        SGDRegressor(loss="squared_epsilon_insensitive", epsilon=0.3, **PASSES),
        "values",
        insensitive(0.3, 2),
    ),
    "sgd log loss": (SGDClassifier(loss="log_loss", **PASSES), "labels", log_loss),
    "sgd hinge": (SGDClassifier(loss="hinge", **PASSES), "labels", wrong),
    "sgd perceptron": (SGDClassifier(loss="perceptron", **PASSES), "labels", wrong),
    "network": (MLPRegressor(hidden_layer_sizes=(4,), **PASSES), "values", squared),
    "network of classes": (
        MLPClassifier(hidden_layer_sizes=(4,), **PASSES),
        "classes",
        log_loss,
    ),
    "glm poisson": (PoissonRegressor(max_iter=N_STAGES), "counts", poisson),
    "glm gamma": (GammaRegressor(max_iter=N_STAGES), "positive", gamma),
    "glm tweedie": (
        TweedieRegressor(power=1.7, max_iter=N_STAGES),
        "positive",
        tweedie(1.7),
    ),
    "glm inverse gaussian": (
        TweedieRegressor(power=3, link="log", max_iter=N_STAGES),
        "positive",
        tweedie(3),
    ),
}


def fitted_by_hand(estimator, X, y):
    """Fitted estimators of the ``STAGES``: clones, or the same one gone on."""
    inner, classes = clone(estimator), {}
    if hasattr(inner, "partial_fit"):
        if is_classifier(inner):
            classes = {"classes": np.unique(y)}
        for t in range(1, N_STAGES + 1):
            inner.partial_fit(X, y, **classes)
            if t in STAGES:
                yield inner
    elif isinstance(inner, PoissonRegressor | GammaRegressor | TweedieRegressor):
        inner.set_params(warm_start=True, max_iter=1)
        for t in range(1, N_STAGES + 1):
            inner.fit(X, y)
            if t in STAGES:
                yield inner
    else:
        count = staged_adapter_of(estimator).count
        for t in STAGES:
            yield clone(estimator).set_params(**{count: t}).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("case", SCIKIT_LEARN)
def test_stages_of_scikit_learn_are_judged_by_their_loss(case):
    estimator, targets, loss = SCIKIT_LEARN[case]
    X, y = table(targets)
    response = "predict"
    if is_classifier(estimator):
        has_probabilities = hasattr(estimator, "predict_proba")
        response = "predict_proba" if has_probabilities else "decision_function"
    sums = np.zeros(len(STAGES))
    for fitted, held_out in FOLDS.split(X):
        stages = fitted_by_hand(estimator, X[fitted], y[fitted])
        for k, stage in enumerate(stages):
            sums[k] += np.sum(loss(y[held_out], getattr(stage, response)(X[held_out])))
    model = Staged(estimator, cv=FOLDS).fit(X, y)
    np.testing.assert_allclose(model.cv_path_[list(STAGES)], sums / len(y), rtol=1e-7)


def test_networks_of_counts_are_judged_by_the_deviance():
    if "loss" not in MLPRegressor().get_params():
        pytest.skip("this version of scikit-learn has no networks of counts")
    network = MLPRegressor(loss="poisson", hidden_layer_sizes=(3,))
    assert staged_adapter_of(network).regression_loss() == Poisson()


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("name", "objective"),
    [
        ("XGBRegressor", "reg:squarederror"),
        ("LGBMRegressor", "regression"),
    ],
)
def test_functions_as_objectives_need_a_scorer(name, objective):
    def fourth_power(y, p):
        return 4 * (p - y) ** 3, 12 * (p - y) ** 2 + 1e-3

    X, y = table("values")
    estimator = booster(name, objective).set_params(objective=fourth_power)
    model = TrajectoryEarlyStoppingCV(estimator, cv=FOLDS, patience=None)
    message = r"objective=<function .*fourth_power.* set criterion to a scorer"
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "estimator_")
    model.set_params(criterion="neg_mean_absolute_error").fit(X, y)
    by_hand = path_by_hand(estimator, X, y, absolute, staged)
    np.testing.assert_allclose(-model.path_[1:], by_hand, rtol=1e-5)
    assert model.best_iter_ == 1 + by_hand.argmin()


def test_objects_as_objectives_need_a_scorer():
    class FourthPower:
        def calc_ders_range(self, approxes, targets, weights):
            errors = np.asarray(targets) - np.asarray(approxes)
            return list(zip(4 * errors**3, -12 * errors**2 - 1e-3))

    X, y = table("values")
    estimator = booster("CatBoostRegressor", "RMSE")
    estimator.set_params(objective=FourthPower(), eval_metric="RMSE")
    model = TrajectoryEarlyStoppingCV(estimator, cv=FOLDS)
    with pytest.raises(ValueError, match=r"CatBoostRegressor has objective=.* scorer"):
        model.fit(X, y)


@pytest.mark.parametrize(
    ("name", "objective"),
    [
        ("XGBRegressor", "rank:pairwise"),
        ("XGBRegressor", "binary:hinge"),
        ("XGBRegressor", "binary:logitraw"),
        ("XGBClassifier", "reg:squarederror"),
        ("LGBMRegressor", "lambdarank"),
        ("LGBMClassifier", "regression"),
        ("CatBoostRegressor", "RMSEWithUncertainty"),
        ("CatBoostRegressor", "LogLinQuantile"),
    ],
)
def test_other_objectives_are_refused(name, objective):
    X, y = table("labels")
    with pytest.raises(
        ValueError, match=f"objective '{objective}' cannot be evaluated"
    ):
        Staged(booster(name, objective), cv=FOLDS).fit(X, y)


def test_targets_without_the_loss_are_refused():
    X, y = table("values")
    for case, message in {
        ("XGBRegressor", "reg:squaredlogerror"): "y are -1 or less",
        ("XGBRegressor", "reg:logistic"): "y are not between 0 and 1",
        ("LGBMRegressor", "cross_entropy"): "y are not between 0 and 1",
    }.items():
        with pytest.raises(ValueError, match=message):
            Staged(booster(*case), cv=FOLDS).fit(X, y)
    with pytest.raises(ValueError, match=r"deviance of power -1: use power 0"):
        Staged(TweedieRegressor(power=-1), cv=FOLDS).fit(X, y)


# ------------------------------------------------------------------ the page

COLUMNS = {
    "scikit-learn": (HistBoosting, PlainBoosting, Forests, Passes),
    "XGBoost": (XGBoost,),
    "LightGBM": (LightGBM,),
    "CatBoost": (CatBoost,),
}


class AnyNumber(dict):
    """Parameters that are all set."""

    def get(self, name, default=None):
        return 0.5 if "alpha" in name else 1.5  # a level, or a power


def test_the_guide_lists_every_objective():
    """Its tables name all that adapters list, each with the loss that judges it."""
    guide = (Path(__file__).parents[2] / "docs/guide/boosting.md").read_text()
    _, _, rest = guide.partition("| loss | scikit-learn |")
    listed = defaultdict(set)  # pairs of an objective and a loss, by column
    for line in rest.partition("\n\n")[0].splitlines()[2:]:
        loss, *columns = (cell.strip() for cell in line.strip("|").split("|"))
        for library, cell in zip(COLUMNS, columns, strict=True):
            listed[library] |= {(name, loss) for name in re.findall("`([^`]+)`", cell)}
    for library, adapters in COLUMNS.items():
        judging = {("squared_error", "squared error"), ("log_loss", "log loss")}
        for adapter in adapters:
            for judges in (adapter.regression, adapter.classification):
                for objective, judge in judges.items():
                    judging.add((objective, judge(AnyNumber()).name))
        assert listed[library] <= judging
        if library == "LightGBM":  # which has several names for most of them
            missing = {loss for _, loss in judging} - {
                loss for _, loss in listed[library]
            }
            assert not missing
        elif library == "scikit-learn":
            assert judging == listed[library]
        else:
            assert judging - listed[library] == {
                ("squared_error", "squared error"),
                ("log_loss", "log loss"),
            }
