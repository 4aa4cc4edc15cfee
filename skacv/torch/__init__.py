"""Runs of torch optimisers, with risk estimates for every iterate."""

from .._any_optimiser.batches import shuffled_batches
from .._any_optimiser.estimates import PathEstimate
from .acv import Run, TrajectoryACV
from .alongside import Alongside
from .estimators import TorchClassifier, TorchRegressor
from .loaders import draw

__all__ = [
    "Alongside",
    "PathEstimate",
    "Run",
    "TorchClassifier",
    "TorchRegressor",
    "TrajectoryACV",
    "draw",
    "shuffled_batches",
]
