"""Displays of a recorded trajectory."""

from .coefficient_interval import CoefficientIntervalDisplay
from .coefficient_path import CoefficientPathDisplay
from .risk_path import RiskPathDisplay

__all__ = ["CoefficientIntervalDisplay", "CoefficientPathDisplay", "RiskPathDisplay"]
