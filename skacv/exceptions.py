"""Warnings that a user may want to tell apart."""

from sklearn.exceptions import ConvergenceWarning

__all__ = ["SeparationWarning", "SmallTrainingSetsWarning", "UnevenColumnsWarning"]


class SeparationWarning(UserWarning):
    """The classes are separated, and only early stopping bounds the coefficients."""


class SmallTrainingSetsWarning(UserWarning):
    """A fold is fitted to so few of the rows that its errors are far too large."""


class UnevenColumnsWarning(ConvergenceWarning):
    """Large columns limit the step, and small ones are far from their limits."""
