"""The default on tables that nobody tuned it to: ``python -m benchmarks.unseen``."""
