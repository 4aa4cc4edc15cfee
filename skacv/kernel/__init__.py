"""Kernel machines that keep and judge their trajectory."""

from .estimators import KernelEigenProClassifier, KernelEigenProRegressor

__all__ = ["KernelEigenProClassifier", "KernelEigenProRegressor"]
