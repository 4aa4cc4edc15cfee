"""Choosing an iterate without refitting."""

from .approximate_loo import ApproximateLOO, approximate_loo
from .early_stopping import TrajectoryEarlyStoppingCV

__all__ = ["ApproximateLOO", "TrajectoryEarlyStoppingCV", "approximate_loo"]
