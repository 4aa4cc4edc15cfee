"""Fits on rows that stay on workers."""
