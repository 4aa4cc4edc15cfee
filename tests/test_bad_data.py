"""Every public estimator refuses bad data with a clear error, and stays as it is."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import Ridge

import skacv
from skacv import (
    IterativeRidge,
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    RecursiveFeatureMachineClassifier,
    RecursiveFeatureMachineRegressor,
    RowSummary,
    SelfStoppingClassifier,
    SelfStoppingQuantileRegressor,
    SelfStoppingRegressor,
    Staged,
    TrajectoryClassifier,
    TrajectoryEarlyStoppingCV,
    TrajectoryElasticNet,
    TrajectoryGammaRegressor,
    TrajectoryGroupLasso,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryQuantileRegressor,
    TrajectoryRegressor,
    TrajectoryTweedieRegressor,
    approximate_loo,
)

from .bad_data import cases, check_refused, good
from .cases import covering

SHORT = {"max_iter": 3, "cv": 3}
REGRESSORS = {
    "lasso": TrajectoryLasso(0.1, **SHORT),
    "elastic net": TrajectoryElasticNet(0.1, **SHORT),
    "group lasso": TrajectoryGroupLasso(0.1, groups=[0, 0, 1], **SHORT),
    "ridge": IterativeRidge(**SHORT),
    "huber": TrajectoryHuberRegressor(**SHORT),
    "poisson": TrajectoryPoissonRegressor(**SHORT),
    "gamma": TrajectoryGammaRegressor(**SHORT),
    "tweedie": TrajectoryTweedieRegressor(**SHORT),
    "quantile": TrajectoryQuantileRegressor(**SHORT),
    "general": TrajectoryRegressor(**SHORT),
    "kernel": KernelEigenProRegressor(**SHORT),
    "feature machine": RecursiveFeatureMachineRegressor(n_rounds=1),
    "stopping": TrajectoryEarlyStoppingCV(TrajectoryLasso(0.1, max_iter=3)),
    "grid": TrajectoryEarlyStoppingCV(
        TrajectoryLasso(max_iter=3), param_grid={"alpha": [0.1, 0.2]}, criterion="r2"
    ),
    "list": TrajectoryEarlyStoppingCV(
        [("ridge", IterativeRidge(max_iter=3)), ("lasso", TrajectoryLasso(max_iter=3))]
    ),
    "blend": TrajectoryEarlyStoppingCV(
        [("ridge", IterativeRidge(max_iter=3)), ("lasso", TrajectoryLasso(max_iter=3))],
        rule="blend",
    ),
    "self": SelfStoppingRegressor(encoder=None),
    "quantiles": SelfStoppingQuantileRegressor(TrajectoryQuantileRegressor(**SHORT)),
}
CLASSIFIERS = {
    "logistic": TrajectoryLogisticRegression(**SHORT),
    "svc": TrajectoryLinearSVC(**SHORT),
    "general": TrajectoryClassifier(**SHORT),
    "kernel": KernelEigenProClassifier(**SHORT),
    "feature machine": RecursiveFeatureMachineClassifier(n_rounds=1),
    "stopping": TrajectoryEarlyStoppingCV(TrajectoryLogisticRegression(max_iter=3)),
    "scored": TrajectoryEarlyStoppingCV(
        TrajectoryLogisticRegression(max_iter=3), criterion="accuracy"
    ),
    "self": SelfStoppingClassifier(encoder=None),
}
TREES = {
    "staged": Staged(HistGradientBoostingRegressor(max_iter=2), cv=3),
    "stopping": TrajectoryEarlyStoppingCV(HistGradientBoostingRegressor(max_iter=2)),
    "forest": TrajectoryEarlyStoppingCV(ExtraTreesRegressor(2), cv=3),
}
TREES_OF_CLASSES = {
    "staged": Staged(HistGradientBoostingClassifier(max_iter=2), cv=3),
    "stopping": TrajectoryEarlyStoppingCV(HistGradientBoostingClassifier(max_iter=2)),
}
pytestmark = pytest.mark.filterwarnings("ignore")


def test_all_estimators_are_here():
    known = [*REGRESSORS.values(), *CLASSIFIERS.values(), *TREES.values()]
    kinds = {type(model).__name__ for model in known} | {"RowSummary", "TableEncoder"}
    kinds.add("TrajectoryCoxRegressor")  # in linear_model/test_survival.py
    estimators = {name for name in skacv.__all__ if hasattr(vars(skacv)[name], "fit")}
    assert kinds == estimators


def check(model, fitted, case, rng, of_classes=False, method="fit"):
    X, y = good(rng, of_classes)
    model = clone(model)
    if fitted:
        getattr(model, method)(X, y)
        if hasattr(model, "predict"):
            model.predict(X)  # what is left to it has been done
    check_refused(model, method, X, y, case, of_classes)


def is_left_out(name, case):
    """Trees take missing values, and feature machines have no folds and no groups."""
    of_folds = name == "feature machine" and case.startswith("groups")
    return of_folds or (name, case) == ("self", "X: NaN")


@covering(name=REGRESSORS, case=cases(), fitted=[False, True])
def test_regressors(name, case, fitted, rng, few_trees):
    if not is_left_out(name, case):
        check(REGRESSORS[name], fitted, case, rng)


@covering(name=CLASSIFIERS, case=cases(of_classes=True), fitted=[False, True])
def test_classifiers(name, case, fitted, rng, few_trees):
    if not is_left_out(name, case):
        check(CLASSIFIERS[name], fitted, case, rng, of_classes=True)


# Trees take missing values, and those of histograms infinity.
TAKEN = {"X: None", "X: NaN", "X: infinity"}


@covering(
    name=TREES,
    case=[case for case in cases() if case not in TAKEN],
    fitted=[False, True],
)
def test_trees(name, case, fitted, rng):
    check(TREES[name], fitted, case, rng)


@covering(
    name=TREES_OF_CLASSES,
    case=[case for case in cases(True) if case not in TAKEN],
    fitted=[False, True],
)
def test_trees_of_classes(name, case, fitted, rng):
    check(TREES_OF_CLASSES[name], fitted, case, rng, of_classes=True)


@covering(
    model=[RowSummary(), IterativeRidge(max_iter=3)],
    method=["fit", "partial_fit"],
    case=cases(without=["groups"]),
    fitted=[False, True],
)
def test_blocks(model, method, fitted, case, rng):
    check(model, fitted, case, rng, method=method)


class Converged(BaseEstimator):
    """``approximate_loo`` as a method."""

    def loo(self, X, y, sample_weight=None):
        ridge = Ridge().fit(*good(np.random.default_rng(0)))
        return approximate_loo(ridge, X, y, sample_weight=sample_weight)


@pytest.mark.parametrize("case", cases(without=["groups"]))
def test_converged_models(case, rng):
    check_refused(Converged(), "loo", *good(rng), case)
