"""Every keyword of every estimator changes what comes of a fit, or is refused."""

import inspect

import joblib
import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.model_selection import GroupKFold, KFold

import skacv
from skacv._compat import StrOptions
from tests.internals import keeps_data
from tests.runs import fitted_attributes

pytestmark = pytest.mark.usefixtures("few_trees")

CLASSES = [
    getattr(skacv, name)
    for name in skacv.__all__
    if hasattr(getattr(skacv, name), "get_params")
    and hasattr(getattr(skacv, name), "predict")
    # Keywords of Staged are those of what it wraps: tests/staged. Feature machines have
    # no paths of their own: tests/kernel/test_feature_machines.py.
    and not name.startswith(("Staged", "RecursiveFeatureMachine"))
]
# Keywords of several levels are in model_selection/test_quantiles.py.
STOPPING = [
    each for each in CLASSES if "param_grid" in inspect.signature(each).parameters
]
MODELS = [
    each
    for each in CLASSES
    if each not in (*STOPPING, skacv.SelfStoppingQuantileRegressor)
]

# What every fit starts from, where a class has it.
SETTINGS = {
    "max_iter": 15,
    "loo": True,
    "cv": 3,
    "random_state": 0,
    "tol": 0.0,
    "patience": None,
}
# Another value of each keyword, and what it has to be set beside to matter.
OTHER = {
    "alpha": (0.3, {}),
    "C": (0.1, {}),
    "batch_size": (20, {"solver": "sgd", "n_components": 2}),
    "class_weight": ({0: 1.0, 1: 3.0}, {}),
    "coef0": (2.0, {"kernel": "polynomial"}),
    "cv": (4, {}),
    "degree": (2, {"kernel": "polynomial"}),
    "epsilon": (2.0, {}),
    "fit_intercept": (False, {}),
    "gamma": (0.01, {}),
    "group_weights": ([3.0, 1.0, 1.0, 1.0], {"alpha": 0.1}),
    "groups": (2, {"alpha": 0.1, "penalty": "group_lasso"}),
    "keep_data": (True, {}),
    "kernel": ("laplacian", {}),
    "l1_ratio": (0.9, {"C": 1.0, "alpha": 0.1, "penalty": "elasticnet"}),
    "loo": (10, {}),
    "loo_correction": (False, {"loss": "huber"}),
    "loss": (None, {}),
    "max_iter": (9, {}),
    "memory_budget": (0.001, {"loo": "auto"}),
    "momentum": (0.2, {"solver": "heavy_ball"}),
    "n_centers": (7, {}),
    "n_components": (2, {"solver": "eigenpro"}),
    "n_probes": (10, {"batch_size": 30}),
    "patience": (1, {"max_iter": 100}),
    "penalty": ("elasticnet", {"alpha": 0.1}),
    "penalty_weights": ([1.0, 0.0, 2.0, 3.0], {"alpha": 0.1}),
    "power": (1.2, {}),
    "power_t": (0.5, {"solver": "sgd"}),
    "quantile": (0.7, {}),
    "random_state": (5, {"batch_size": 30, "loo": 10, "solver": "sgd"}),
    "risk": (False, {"risk": True}),
    "risk_row_scales": (False, {"risk": True}),
    "scale": (3.0, {}),
    "schedule": ("gd", {}),
    "smoothing": (0.1, {"loss": "smoothed_hinge"}),
    "solver": (None, {}),
    "standardize": (True, {}),
    "step_size": (1e-4, {}),
    "store_every": (4, {}),
    "subsample_size": (12, {"solver": "eigenpro", "n_components": 2}),
    "ties": ("efron", {}),
    "tol": (0.3, {"patience": 1, "max_iter": 100}),
}
LOSSES = {
    "TrajectoryRegressor": "huber",
    "TrajectoryClassifier": "squared_hinge",
    "TrajectoryLinearSVC": "smoothed_hinge",
    "KernelEigenProClassifier": "log",
}
# What makes targets of some estimators out of real ones.
POSITIVE = {
    "TrajectoryPoissonRegressor": lambda y: np.abs(np.rint(y)),
    "TrajectoryTweedieRegressor": lambda y: np.maximum(y, 0),
    "TrajectoryGammaRegressor": np.abs,
    # Events and times, some of which are tied.
    "TrajectoryCoxRegressor": lambda y: np.column_stack([y > -1, np.rint(np.exp(-y))]),
}
# Keywords of where and how a fit is computed, which the fit does not depend on: other
# tests are of them.
HOW = {"n_jobs", "time_limit", "verbose", "warm_start"}
# A keyword that a class has as all others do, though nothing of its fits is random.
UNUSED = {("TrajectoryCoxRegressor", "random_state")}


def table(rng, model, n_rows=60):
    X = rng.standard_normal((n_rows, 4)) * [1.0, 2.0, 0.5, 1.0] + [0, 1.0, 0, -1]
    X *= np.exp(rng.standard_normal((n_rows, 1)))  # rows of very different leverage
    signal = X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(n_rows) + 1
    if is_classifier(model):
        return X, (signal > 0).astype(int)
    return X, POSITIVE.get(type(model).__name__, np.asarray)(signal)


def observed(model):
    """Everything that a fit leaves, by name."""
    found = {
        name: joblib.hash(getattr(model, name)) for name in fitted_attributes(model)
    }
    return {**found, "keeps data": keeps_data(model)}


def settings_for(cls, name, beside):
    own = inspect.signature(cls).parameters
    settings = {**SETTINGS, **beside}
    if name == "risk":
        settings = {**settings, "risk": True}
    settings = {key: value for key, value in settings.items() if key in own}
    if settings.get("solver") not in solvers_of(cls):
        settings.pop("solver", None)
    if "n_components" in settings and "eigenpro" in solvers_of(cls):
        settings["solver"] = "eigenpro"
    if settings.get("loss") not in names_of(cls, "loss"):
        settings.pop("loss", None)
    return settings


def solvers_of(cls):
    return names_of(cls, "solver")


def names_of(cls, keyword):
    """The names that a keyword takes."""
    names = cls._parameter_constraints.get(keyword, [StrOptions(set())])[0]
    return sorted(names.options)


def other_value(cls, name):
    if name == "loss":
        return LOSSES[cls.__name__]
    if name == "solver":
        default = inspect.signature(cls).parameters["solver"].default
        # On few rows "auto" is "fista".
        others = {default, "auto", "fista", "sgd", "eigenpro"}
        return next(each for each in solvers_of(cls) if each not in others)
    return OTHER[name][0]


def keywords(classes):
    """Every keyword of every class; but for the first class that has it, slow."""
    params, seen = [], set()
    for cls in classes:
        for name in inspect.signature(cls).parameters:
            if name not in HOW and (cls.__name__, name) not in UNUSED:
                marks = [pytest.mark.slow] * (name in seen)
                params.append(
                    pytest.param(cls, name, marks=marks, id=f"{cls.__name__}-{name}")
                )
                seen.add(name)
    return params


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("cls", "name"), keywords(MODELS))
def test_every_keyword_of_a_model_matters(cls, name, rng):
    settings = settings_for(cls, name, OTHER[name][1])
    X, y = table(rng, cls())
    plain = observed(cls(**settings).fit(X, y))
    other = observed(cls(**{**settings, name: other_value(cls, name)}).fit(X, y))
    assert plain != other, f"{name} has changed nothing"


STOPPING_OTHER = {
    "estimator": "a list",
    "criterion": "neg_mean_absolute_error",
    "cv": KFold(3),
    "rule": "one_se",
    "patience": 3,
    "min_delta": 100.0,
    "param_grid": {"max_iter": [30, 40]},
    "search": "race",
    "n_candidates": 1,
    "class_weight": {0: 1.0, 1: 3.0},
    "encoder": skacv.TableEncoder(),
    "random_state": 3,
    "task": "regression",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("cls", "name"), keywords(STOPPING))
def test_every_keyword_of_a_stopping_estimator_matters(cls, name, rng):
    is_of_classes = cls.__name__ == "SelfStoppingClassifier" or name == "class_weight"
    model, grid = skacv.IterativeRidge(0.0, max_iter=900), STOPPING_OTHER
    if is_of_classes:
        model = skacv.TrajectoryLogisticRegression(10.0, max_iter=80)
    X, y = table(rng, model)
    X = np.hstack([X, rng.standard_normal((len(y), 40))])
    if name == "loss":
        members = set(cls(loss="poisson").fit(X, np.abs(y)).member_paths_)
        assert members == {"lasso", "ridge", "boosted trees", "extra trees"}
        return
    value = [("a", model), ("b", model)] if name == "estimator" else grid[name]
    if name == "task":
        with pytest.raises(ValueError, match="may be targets or class labels"):
            cls().fit(X, np.rint(y))
        assert cls(task=value).fit(X, np.rint(y)).task_ == value
        return
    settings = {"estimator": model, "random_state": 0}
    if name == "min_delta":
        settings["patience"] = 30
    if name in ("search", "n_candidates"):  # settings of a grid
        grid_of_model = {"C": [1e-6, 10]} if is_of_classes else {"max_iter": [1, 40]}
        settings |= {"param_grid": grid_of_model, "criterion": "cv"}
    plain = cls(**settings).fit(X, y)
    if name == "criterion" and is_of_classes:
        value = "accuracy"
    other = cls(**{**settings, name: value}).fit(X, y)
    facts = [
        (
            each.best_iter_,
            each.best_score_,
            getattr(each, "best_score_corrected_", None),
            str(each.best_params_),
            len(each.path_),
            list(each.member_paths_),
            each.criterion_,
            each.encoder_ is None,
            each.results_["left_out"],
        )
        for each in (plain, other)
    ]
    assert facts[0] != facts[1], f"{name} has changed nothing"


# ------------------------------------------------------------------- what fit takes


def fitted_by(cls, X, y, **params):
    settings = {"max_iter": 15, "random_state": 0, "cv": 3}
    own = inspect.signature(cls).parameters
    model = cls(**{key: value for key, value in settings.items() if key in own})
    if cls.__name__ == "TrajectoryEarlyStoppingCV":
        model.set_params(task="regression")
    return model.fit(X, y, **params)


def of_class(cls):
    return cls.__name__ if cls is not skacv.TrajectoryEarlyStoppingCV else "stopping"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cls", CLASSES, ids=of_class)
def test_unknown_keywords_of_fit_are_refused(cls, rng):
    X, y = table(rng, cls())
    y = y + 0.5 if cls is skacv.TrajectoryEarlyStoppingCV else y
    with pytest.raises(TypeError, match="colour"):
        fitted_by(cls, X, y, colour=np.ones(len(y)))


def one_of(model):
    """What has the paths of a model: itself, or the first of its levels and members."""
    model = getattr(model, "models_", [model])[0]
    return next(iter(getattr(model, "members_", {"": model}).values()))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cls", CLASSES, ids=of_class)
def test_weights_and_groups_are_used(cls, rng):
    X, y = table(rng, cls())
    if cls is skacv.TrajectoryEarlyStoppingCV:
        y = np.abs(y) + 0.5 * rng.uniform(size=len(y))
    plain = fitted_by(cls, X, y)
    weighted = fitted_by(cls, X, y, sample_weight=rng.uniform(0.1, 3, len(y)))
    grouped = fitted_by(cls, X, y, groups=np.repeat(np.arange(15), 4))
    plain, weighted, grouped = map(one_of, (plain, weighted, grouped))
    paths = [model.cv_path_ for model in (plain, weighted, grouped)]
    shortest = min(map(len, paths))
    for other in paths[1:]:
        assert not np.allclose(paths[0][:shortest], other[:shortest], rtol=1e-6)
    folds = [set(fold) for fold in grouped.cv_indices_]
    for group in np.arange(60).reshape(15, 4):
        assert any(set(group) & fold == set(group) for fold in folds) or not any(
            set(group) & fold for fold in folds
        )


@pytest.mark.parametrize("cls", CLASSES, ids=of_class)
@pytest.mark.parametrize("cv", [KFold(3), list(KFold(3).split(np.zeros(60)))])
def test_groups_that_a_splitter_ignores_are_refused(cls, cv, rng):
    X, y = table(rng, cls())
    y = y + 0.5 if cls is skacv.TrajectoryEarlyStoppingCV else y
    model = cls(cv=cv)
    with pytest.raises(ValueError, match=r"groups, which cv=.* ignores"):
        model.fit(X, y, groups=np.repeat(np.arange(15), 4))
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize("cls", CLASSES, ids=of_class)
def test_splitters_of_groups_ask_for_groups(cls, rng):
    X, y = table(rng, cls())
    y = y + 0.5 if cls is skacv.TrajectoryEarlyStoppingCV else y
    with pytest.raises(ValueError, match="needs groups: pass fit"):
        cls(cv=GroupKFold(3)).fit(X, y)


@pytest.mark.parametrize("criterion", ["loo", "risk"])
def test_criteria_without_folds_refuse_groups_and_folds(criterion, rng):
    X, y = table(rng, skacv.IterativeRidge())
    model = skacv.TrajectoryEarlyStoppingCV(skacv.IterativeRidge(), criterion=criterion)
    with pytest.raises(ValueError, match="would ignore groups: use criterion='cv'"):
        model.fit(X, y, groups=np.repeat(np.arange(15), 4))
    with pytest.raises(ValueError, match="would ignore cv"):
        model.set_params(cv=3).fit(X, y)


def test_folds_are_given_once(rng):
    X, y = table(rng, skacv.IterativeRidge())
    for estimator in (
        skacv.IterativeRidge(cv=3),
        [("a", skacv.IterativeRidge()), ("b", skacv.IterativeRidge(cv=3))],
    ):
        model = skacv.TrajectoryEarlyStoppingCV(estimator, cv=4)
        with pytest.raises(ValueError, match="cv is set twice"):
            model.fit(X, y)


FOREIGN = [
    (cls, keyword)
    for cls in STOPPING
    for keyword in ("scoring", "class_weight", "groups")
    if keyword not in inspect.signature(cls).parameters
]


@pytest.mark.parametrize(("cls", "keyword"), FOREIGN)
def test_keywords_of_other_packages_say_what_to_write(cls, keyword):
    with pytest.raises(TypeError, match=f"has no parameter '{keyword}': .+"):
        cls(**{keyword: 1})
    with pytest.raises(TypeError, match="has no parameter 'colour'"):
        cls(colour=1)
