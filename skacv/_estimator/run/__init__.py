"""The specification of a run, and the fit."""
