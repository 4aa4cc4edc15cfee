"""Linear models that record every iterate and estimate its risk."""

from .elastic_net import TrajectoryElasticNet
from .general_classifier import TrajectoryClassifier
from .general_regressor import TrajectoryRegressor
from .group_lasso import TrajectoryGroupLasso
from .huber import TrajectoryHuberRegressor
from .lasso import TrajectoryLasso
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
