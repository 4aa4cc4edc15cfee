"""Runs of any optimiser: the part that all libraries share."""
