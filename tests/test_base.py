"""What all trajectory models share: what is planned is what is recorded."""

import pytest
from sklearn.base import clone

from skacv import (
    IterativeRidge,
    TrajectoryElasticNet,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
)
from skacv.optim.trajectory import Trajectory
from skacv.risk.costs import Run

MODELS = [
    TrajectoryLasso(0.1),
    TrajectoryLasso([0.1, 0.01], solver="ista"),
    TrajectoryElasticNet(0.1),
    IterativeRidge(),
    IterativeRidge("path", solver="nesterov"),
    IterativeRidge(solver="heavy_ball", fit_intercept=False),
    IterativeRidge(solver="eigenpro", n_components=2),
    IterativeRidge([2.0, 1.0], solver="eigenpro", n_components=2),
    IterativeRidge(solver="eigenpro", n_components=2, batch_size=8),
    IterativeRidge(solver="eigenpro", n_components=2, batch_size=40),
    TrajectoryLogisticRegression(),
    TrajectoryLogisticRegression(l1_ratio=0.5, loo_correction=False),
    TrajectoryLogisticRegression(solver="newton", fit_intercept=False),
    TrajectoryLogisticRegression([0.1, 1.0], solver="sgd", batch_size=7),
    TrajectoryLinearSVC(),
    TrajectoryLinearSVC(loss="smoothed_hinge", solver="sgd", batch_size=100),
    TrajectoryHuberRegressor(),
    TrajectoryPoissonRegressor(),
    TrajectoryPoissonRegressor(solver="newton"),
]


def drawn(rng, shape=(40, 6)):
    X = rng.standard_normal(shape)
    return X, (X[:, 0] + 0.5 * rng.standard_normal(shape[0]) > 0).astype(int)


def fitted(model, data):
    model = clone(model).set_params(max_iter=5, tol=0, random_state=0)
    model.keep_data = True  # of classifiers it is no parameter
    return model.fit(*data)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_rows_are_left_out_of_what_was_planned(model, rng):
    """What a criterion is chosen by beforehand, and what happens then, agree."""
    X, y = drawn(rng)
    model = fitted(model, (X, y))
    data = model._data
    coef = data.iterates(model.coef_path_, model.intercept_path_)
    trajectory = Trajectory.recorded(data.problem, coef, model._phases)
    recorded = Run.recorded(data.problem, trajectory, model.loo_correction)
    assert model._planned_run(X.shape) == recorded
    assert model._is_quadratic == model._loss.is_quadratic
