"""Inference along a run: debiased coefficients and their standard errors.

``scores`` debias an iterate, one for each row; ``debiased`` combines them along
directions over the rows, one for each coefficient. For two classes the result is a
multiple of the true coefficients: ``single_index`` estimates the factor, from the
effects of labels on a run (``label_effects``) and the variance of the signal
(``signal``).
"""
