"""Iterative models that stop themselves."""

from .inspection import CoefficientPathDisplay, RiskPathDisplay
from .kernel import KernelEigenProClassifier, KernelEigenProRegressor
from .linear_model import (
    IterativeRidge,
    TrajectoryElasticNet,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
)
from .model_selection import TrajectoryEarlyStoppingCV, approximate_loo

__version__ = "0.1.0"

__all__ = [
    "CoefficientPathDisplay",
    "IterativeRidge",
    "KernelEigenProClassifier",
    "KernelEigenProRegressor",
    "RiskPathDisplay",
    "TrajectoryEarlyStoppingCV",
    "TrajectoryElasticNet",
    "TrajectoryHuberRegressor",
    "TrajectoryLasso",
    "TrajectoryLinearSVC",
    "TrajectoryLogisticRegression",
    "TrajectoryPoissonRegressor",
    "approximate_loo",
]
