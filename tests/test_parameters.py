"""What users may pass for switches."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skacv import (
    IterativeRidge,
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    TrajectoryClassifier,
    TrajectoryEarlyStoppingCV,
    TrajectoryElasticNet,
    TrajectoryGroupLasso,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryQuantileRegressor,
    TrajectoryRegressor,
    TrajectoryTweedieRegressor,
)

WITH_RISK = [
    TrajectoryLasso(0.1),
    TrajectoryElasticNet(0.1),
    TrajectoryGroupLasso(0.1, groups=2),
    TrajectoryRegressor(0.1),
    IterativeRidge(),
    IterativeRidge(solver="eigenpro", n_components=3),
    IterativeRidge(solver="eigenpro", n_components=3, batch_size=8),
]
ALL = [
    *WITH_RISK,
    TrajectoryLogisticRegression(),
    TrajectoryLogisticRegression(solver="sgd"),
    TrajectoryLinearSVC(),
    TrajectoryHuberRegressor(),
    TrajectoryPoissonRegressor(),
    TrajectoryTweedieRegressor(),
    TrajectoryQuantileRegressor(),
    TrajectoryRegressor(0.1, loss="huber", risk=False),
    TrajectoryClassifier(),
    KernelEigenProRegressor(),
    KernelEigenProClassifier(),
]
PATHS = ("loo_path_", "loo_prediction_path_", "risk_path_")


@pytest.fixture
def data(rng):
    X = rng.standard_normal((30, 6))
    return X, (X[:, 0] + 0.3 * rng.standard_normal(30) > 0).astype(int)


def assert_same_paths(found, expected):
    for name in PATHS:
        assert hasattr(found, name) == hasattr(expected, name)
        if hasattr(found, name):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def compare(estimator, name, value, data):
    estimator = clone(estimator).set_params(max_iter=5, random_state=0)
    found, expected = (
        clone(estimator).set_params(**{name: switch}).fit(*data)
        for switch in (np.bool_(value), value)
    )
    assert_same_paths(found, expected)


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("estimator", ALL, ids=str)
def test_loo_may_be_a_boolean_of_numpy(estimator, value, data):
    compare(estimator, "loo", value, data)


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("estimator", WITH_RISK, ids=str)
def test_risk_may_be_a_boolean_of_numpy(estimator, value, data):
    compare(estimator, "risk", value, data)


def test_a_grid_of_switches_in_an_array(data):
    switches = np.array([True, False])
    grid = {"loo": switches, "risk": switches}
    search = GridSearchCV(
        IterativeRidge(max_iter=5), grid, cv=2, error_score="raise"
    ).fit(*data)
    assert len(search.cv_results_["params"]) == 4


@pytest.mark.parametrize(
    "params",
    [
        {"loo": True},
        {"loo": False},
        {"loo": False, "risk": False},
        {"loo": True, "risk": False},
    ],
    ids=str,
)
def test_the_automatic_criterion_reads_both_alike(params, data):
    ours = {name: np.bool_(value) for name, value in params.items()}
    found, expected = (
        TrajectoryEarlyStoppingCV(IterativeRidge(max_iter=5, **some)).fit(*data)
        for some in (ours, params)
    )
    assert found.criterion_ == expected.criterion_
    assert found.best_iter_ == expected.best_iter_


@pytest.mark.parametrize("criterion", ["loo", "risk"])
def test_a_criterion_that_is_switched_off_is_named(criterion, data):
    inner = IterativeRidge(max_iter=5).set_params(**{criterion: np.False_})
    with pytest.raises(ValueError, match=f"does not compute with {criterion}=False"):
        TrajectoryEarlyStoppingCV(inner, criterion=criterion).fit(*data)
