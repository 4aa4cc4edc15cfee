"""Runs of any optax optimiser, with risk estimates for every iterate."""

from importlib.util import find_spec

if find_spec("optax") is None:
    raise ModuleNotFoundError(
        "skacv.jax needs jax and optax: pip install 'skacv[jax]'.", name="optax"
    )

from .._any_optimiser.data import shuffled_batches
from .._any_optimiser.estimates import PathEstimate
from .acv import Alongside, Run, TrajectoryACV
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
