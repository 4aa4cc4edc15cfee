"""Linear models that record every iterate and estimate its risk."""

from .classifiers import TrajectoryLinearSVC, TrajectoryLogisticRegression
from .general import TrajectoryClassifier, TrajectoryRegressor
from .lasso import TrajectoryElasticNet, TrajectoryGroupLasso, TrajectoryLasso
from .regressors import (
    TrajectoryGammaRegressor,
    TrajectoryHuberRegressor,
    TrajectoryPoissonRegressor,
    TrajectoryQuantileRegressor,
    TrajectoryTweedieRegressor,
)
from .ridge import IterativeRidge
from .survival import TrajectoryCoxRegressor

__all__ = [
    "IterativeRidge",
    "TrajectoryClassifier",
    "TrajectoryCoxRegressor",
    "TrajectoryElasticNet",
    "TrajectoryGammaRegressor",
    "TrajectoryGroupLasso",
    "TrajectoryHuberRegressor",
    "TrajectoryLasso",
    "TrajectoryLinearSVC",
    "TrajectoryLogisticRegression",
    "TrajectoryPoissonRegressor",
    "TrajectoryQuantileRegressor",
    "TrajectoryRegressor",
    "TrajectoryTweedieRegressor",
]
