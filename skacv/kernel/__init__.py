"""Kernel machines that record every iterate and estimate its risk."""

from .classifier import KernelEigenProClassifier
from .regressor import KernelEigenProRegressor

__all__ = ["KernelEigenProClassifier", "KernelEigenProRegressor"]
