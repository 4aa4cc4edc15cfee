"""Warnings that a user may want to tell apart."""


class SeparationWarning(UserWarning):
    """The classes are separated, and only early stopping bounds the coefficients."""
