"""Kernel machines that record every iterate and estimate its risk."""

from .classifier import KernelEigenProClassifier
from .feature_machines import (
    RecursiveFeatureMachineClassifier,
    RecursiveFeatureMachineRegressor,
)
from .regressor import KernelEigenProRegressor

__all__ = [
    "KernelEigenProClassifier",
    "KernelEigenProRegressor",
    "RecursiveFeatureMachineClassifier",
    "RecursiveFeatureMachineRegressor",
]
