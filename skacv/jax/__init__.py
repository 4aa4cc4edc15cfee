"""Runs of any optax optimiser, and what every iterate of them costs on unseen rows."""

from .._any_optimiser.batches import shuffled_batches
from .._any_optimiser.estimates import PathEstimate
from .acv import Run, TrajectoryACV
from .alongside import Alongside
from .estimators import OptaxClassifier, OptaxRegressor
from .replicas import cv_path

__all__ = [
    "Alongside",
    "OptaxClassifier",
    "OptaxRegressor",
    "PathEstimate",
    "Run",
    "TrajectoryACV",
    "cv_path",
    "shuffled_batches",
]
