"""Runs of torch optimisers, and what every iterate of them costs on unseen rows."""

from .._any_optimiser.batches import shuffled_batches
from .._any_optimiser.estimates import PathEstimate
from .acv import Run, TrajectoryACV
from .alongside import Alongside
from .loaders import draw

__all__ = [
    "Alongside",
    "PathEstimate",
    "Run",
    "TrajectoryACV",
    "draw",
    "shuffled_batches",
]
