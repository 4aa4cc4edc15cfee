"""Choosing an iterate without refitting."""

from .approximate_loo import approximate_loo
from .early_stopping import TrajectoryEarlyStoppingCV

__all__ = ["TrajectoryEarlyStoppingCV", "approximate_loo"]
