"""Linear models that keep and judge their trajectory."""

from .elastic_net import TrajectoryElasticNet
from .lasso import TrajectoryLasso
from .ridge import IterativeRidge

__all__ = ["IterativeRidge", "TrajectoryElasticNet", "TrajectoryLasso"]
