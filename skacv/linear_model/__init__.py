"""Linear models that keep and judge their trajectory."""

from .elastic_net import TrajectoryElasticNet
from .huber import TrajectoryHuberRegressor
from .lasso import TrajectoryLasso
from .logistic import TrajectoryLogisticRegression
from .poisson import TrajectoryPoissonRegressor
from .ridge import IterativeRidge
from .svm import TrajectoryLinearSVC

__all__ = [
    "IterativeRidge",
    "TrajectoryElasticNet",
    "TrajectoryHuberRegressor",
    "TrajectoryLasso",
    "TrajectoryLinearSVC",
    "TrajectoryLogisticRegression",
    "TrajectoryPoissonRegressor",
]
