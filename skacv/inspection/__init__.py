"""Displays of a recorded trajectory, and SHAP values of blends."""

from .coefficients import CoefficientIntervalDisplay, CoefficientPathDisplay
from .risk_path import RiskPathDisplay
from .shap_values import blend_shap_values

__all__ = [
    "CoefficientIntervalDisplay",
    "CoefficientPathDisplay",
    "RiskPathDisplay",
    "blend_shap_values",
]
