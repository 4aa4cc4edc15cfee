"""Leave-one-out of a model at the minimum of its objective, without refits.

``approximate_loo`` is what users call, and ``fitted_models`` says what each class of
models has minimised; the other files know no estimators.

``model`` is what was minimised, ``expansion`` its objective to second order.
``newton`` is one Newton step from the fitted coefficients and stands on the Hessian
and the leverages of ``hessian``; ``randomised`` takes leverages from random probes;
``hinge`` is the limit for the hinge, which has no curvature.
"""
