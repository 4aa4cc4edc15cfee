"""scikit-learn's own battery, on every estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from skacv import (
    IterativeRidge,
    TrajectoryEarlyStoppingCV,
    TrajectoryElasticNet,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
)

ESTIMATORS = [
    TrajectoryLasso(),
    TrajectoryLasso(solver="ista"),
    TrajectoryElasticNet(),
    IterativeRidge(),
    IterativeRidge(solver="nesterov"),
    IterativeRidge(solver="heavy_ball"),
    TrajectoryLogisticRegression(),
    TrajectoryLogisticRegression(l1_ratio=0.5),
    TrajectoryLogisticRegression(solver="sgd"),
    TrajectoryLinearSVC(),
    TrajectoryLinearSVC(loss="smoothed_hinge"),
    TrajectoryHuberRegressor(),
    TrajectoryPoissonRegressor(),
    TrajectoryEarlyStoppingCV(),
    TrajectoryEarlyStoppingCV(IterativeRidge(), rule="one_se"),
    TrajectoryEarlyStoppingCV(TrajectoryLogisticRegression()),
    TrajectoryEarlyStoppingCV(TrajectoryLinearSVC(), criterion="accuracy"),
    TrajectoryEarlyStoppingCV(
        TrajectoryElasticNet(), param_grid={"alpha": [0.01, 0.1]}
    ),
]


@parametrize_with_checks(ESTIMATORS)
def test_sklearn_compatible(estimator, check):
    check(estimator)
