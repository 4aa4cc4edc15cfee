"""Accuracy over repeats: tables of ``python -m benchmarks.studies``."""
