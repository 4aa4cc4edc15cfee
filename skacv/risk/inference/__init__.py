"""Inference along a run: debiased coefficients and their standard errors.

``scores`` are what debiases an iterate, row by row; ``debiased`` is what comes of them
along directions over the rows, one for each coefficient.
"""
