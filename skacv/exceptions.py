"""Warnings that a user may want to tell apart."""

__all__ = ["SeparationWarning"]


class SeparationWarning(UserWarning):
    """The classes are separated, and only early stopping bounds the coefficients."""
