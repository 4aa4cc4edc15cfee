"""Runs of torch optimisers, with risk estimates for every iterate."""

from importlib.util import find_spec

if find_spec("torch") is None:
    raise ModuleNotFoundError(
        "skacv.torch needs torch: pip install 'skacv[torch]'.", name="torch"
    )

from .._any_optimiser.data import shuffled_batches
from .._any_optimiser.estimates import PathEstimate
from .acv import Alongside, Run, TrajectoryACV
from .data import draw
from .estimators import TorchClassifier, TorchRegressor

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
