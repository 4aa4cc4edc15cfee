"""Kernel machines that keep and judge their trajectory."""

from .classifier import KernelEigenProClassifier
from .regressor import KernelEigenProRegressor

__all__ = ["KernelEigenProClassifier", "KernelEigenProRegressor"]
