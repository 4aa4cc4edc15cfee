"""Inference along a run: debiased coefficients and their standard errors.

``scores`` are what debiases an iterate, row by row; ``debiased`` is what comes of them
along directions over the rows, one for each coefficient. Of two classes that is a
multiple of the truth: ``label_effects`` says what labels do in a run, ``signal`` how
large the coefficients are together, ``single_index`` which multiple.
"""
