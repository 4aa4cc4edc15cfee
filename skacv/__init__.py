"""Iterative models with risk estimates for every iterate, and early stopping.

``TrajectoryEarlyStoppingCV().fit(X, y)`` runs a few models and keeps the best iterate
of all. ``TrajectoryEarlyStoppingCV(TrajectoryLasso("path"))`` and the like stop a model
of your choice. Every model has ``risk_path_``, ``loo_path_`` or ``cv_path_``, which
estimate the loss of each iterate on unseen rows. Scale the columns first.
"""

from ._estimator.data.row_summary import RowSummary
from .inspection import (
    CoefficientIntervalDisplay,
    CoefficientPathDisplay,
    RiskPathDisplay,
)
from .kernel import (
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    RecursiveFeatureMachineClassifier,
    RecursiveFeatureMachineRegressor,
)
from .linear_model import (
    IterativeRidge,
    TrajectoryClassifier,
    TrajectoryCoxRegressor,
    TrajectoryElasticNet,
    TrajectoryGammaRegressor,
    TrajectoryGroupLasso,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryQuantileRegressor,
    TrajectoryRegressor,
    TrajectoryTweedieRegressor,
)
from .model_selection import (
    SelfStoppingClassifier,
    SelfStoppingQuantileRegressor,
    SelfStoppingRegressor,
    TrajectoryEarlyStoppingCV,
    approximate_loo,
)
from .staged import Staged
from .tables import TableEncoder

__version__ = "0.2.0"

__all__ = [
    "CoefficientIntervalDisplay",
    "CoefficientPathDisplay",
    "IterativeRidge",
    "KernelEigenProClassifier",
    "KernelEigenProRegressor",
    "RecursiveFeatureMachineClassifier",
    "RecursiveFeatureMachineRegressor",
    "RiskPathDisplay",
    "RowSummary",
    "SelfStoppingClassifier",
    "SelfStoppingQuantileRegressor",
    "SelfStoppingRegressor",
    "Staged",
    "TableEncoder",
    "TrajectoryClassifier",
    "TrajectoryCoxRegressor",
    "TrajectoryEarlyStoppingCV",
    "TrajectoryElasticNet",
    "TrajectoryGammaRegressor",
    "TrajectoryGroupLasso",
    "TrajectoryHuberRegressor",
    "TrajectoryLasso",
    "TrajectoryLinearSVC",
    "TrajectoryLogisticRegression",
    "TrajectoryPoissonRegressor",
    "TrajectoryQuantileRegressor",
    "TrajectoryRegressor",
    "TrajectoryTweedieRegressor",
    "approximate_loo",
]
