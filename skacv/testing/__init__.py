"""Checks that parts written outside the package are what they say.

Each check raises an AssertionError with a sentence that names what is wrong. They need
nothing but the dependencies of the package, and can be called in a test of any runner.
"""

from .iterative_estimators import check_iterative_estimator
from .losses import check_loss
from .penalties import check_penalty
from .schedules import check_schedule
from .staged_adapters import check_staged_adapter

__all__ = [
    "check_iterative_estimator",
    "check_loss",
    "check_penalty",
    "check_schedule",
    "check_staged_adapter",
]
