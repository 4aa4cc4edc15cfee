"""The common part of all estimators of this package."""
