"""Displays of a recorded trajectory."""

from .coefficients import CoefficientIntervalDisplay, CoefficientPathDisplay
from .risk_path import RiskPathDisplay

__all__ = [
    "CoefficientIntervalDisplay",
    "CoefficientPathDisplay",
    "RiskPathDisplay",
]
