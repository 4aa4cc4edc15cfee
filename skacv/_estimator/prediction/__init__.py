"""Predictions of fitted estimators, and their uncertainty."""
