"""Displays of a recorded trajectory, and of importances of features."""

from .coefficients import CoefficientIntervalDisplay, CoefficientPathDisplay
from .permutation_importance import PermutationImportanceDisplay
from .risk_path import RiskPathDisplay

__all__ = [
    "CoefficientIntervalDisplay",
    "CoefficientPathDisplay",
    "PermutationImportanceDisplay",
    "RiskPathDisplay",
]
