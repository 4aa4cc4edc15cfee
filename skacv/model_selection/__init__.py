"""Choosing an iterate without refitting."""

from .early_stopping import TrajectoryEarlyStoppingCV

__all__ = ["TrajectoryEarlyStoppingCV"]
