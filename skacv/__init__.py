"""Iterative models that stop themselves."""

from .linear_model import IterativeRidge, TrajectoryElasticNet, TrajectoryLasso

__version__ = "0.1.0"

__all__ = [
    "IterativeRidge",
    "TrajectoryElasticNet",
    "TrajectoryLasso",
]
