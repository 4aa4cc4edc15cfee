"""Warnings that a user may want to tell apart."""

__all__ = ["SeparationWarning", "SmallTrainingSetsWarning"]


class SeparationWarning(UserWarning):
    """The classes are separated, and only early stopping bounds the coefficients."""


class SmallTrainingSetsWarning(UserWarning):
    """A fold is fitted to so few of the rows that its errors are far too large."""
