"""Linear models that record every iterate and estimate its risk."""

from .general import TrajectoryClassifier, TrajectoryRegressor
from .huber import TrajectoryHuberRegressor
from .lasso import TrajectoryElasticNet, TrajectoryGroupLasso, TrajectoryLasso
from .logistic import TrajectoryLogisticRegression
from .poisson import TrajectoryPoissonRegressor
from .ridge import IterativeRidge
from .svm import TrajectoryLinearSVC

__all__ = [
    "IterativeRidge",
    "TrajectoryClassifier",
    "TrajectoryElasticNet",
    "TrajectoryGroupLasso",
    "TrajectoryHuberRegressor",
    "TrajectoryLasso",
    "TrajectoryLinearSVC",
    "TrajectoryLogisticRegression",
    "TrajectoryPoissonRegressor",
    "TrajectoryRegressor",
]
