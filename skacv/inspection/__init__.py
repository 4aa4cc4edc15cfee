"""Displays of a recorded trajectory."""

from .coefficient_path import CoefficientPathDisplay
from .risk_path import RiskPathDisplay

__all__ = ["CoefficientPathDisplay", "RiskPathDisplay"]
