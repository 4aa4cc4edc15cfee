"""Choosing an iterate without refitting."""

from .._estimator.recording import RecordsTrajectory
from .approximate_loo import ApproximateLOO, approximate_loo
from .early_stopping import TrajectoryEarlyStoppingCV

__all__ = [
    "ApproximateLOO",
    "RecordsTrajectory",
    "TrajectoryEarlyStoppingCV",
    "approximate_loo",
]
