"""Runs of any optax optimiser, with risk estimates for every iterate."""

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
