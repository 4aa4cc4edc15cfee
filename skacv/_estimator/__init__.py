"""What every estimator of this package shares."""
