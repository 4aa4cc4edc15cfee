"""Choosing an iterate without refitting."""

from .._estimator.estimates.readers import (
    Estimate,
    FinishedRun,
    register_estimate,
    unregister_estimate,
)
from .._estimator.run.recording import RecordsTrajectory
from ..converged.approximate_loo import ApproximateLOO, approximate_loo
from .defaults.pipeline import TablePipeline
from .early_stopping import TrajectoryEarlyStoppingCV
from .quantiles import SelfStoppingQuantileRegressor
from .self_stopping import SelfStoppingClassifier, SelfStoppingRegressor
from .tuning import run_in_trial

__all__ = [
    "ApproximateLOO",
    "Estimate",
    "FinishedRun",
    "RecordsTrajectory",
    "SelfStoppingClassifier",
    "SelfStoppingQuantileRegressor",
    "SelfStoppingRegressor",
    "TablePipeline",
    "TrajectoryEarlyStoppingCV",
    "approximate_loo",
    "register_estimate",
    "run_in_trial",
    "unregister_estimate",
]
