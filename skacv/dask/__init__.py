"""Fits on rows that stay on workers: linear models on Dask collections.

It is imported by estimators once they are passed a collection, and has no public names.
"""
