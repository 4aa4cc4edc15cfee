"""Costs of computations, from which the cheaper of two methods is chosen.

The unit is one multiplication and addition of a large matrix product in double
precision, in one thread. ``python -m benchmarks.costs`` measures every constant. On
different processors the constants differ by up to a factor of two, and methods whose
costs differ by less are equally good.
"""

# Seconds of the unit.
SECONDS = 4e-11
# An entry of X in a product with one vector, whose time is that of reading memory.
ENTRY = 7
# An entry of an array in a loss, in its derivative or in a prox.
DERIVATIVE = 30
# A call of NumPy on arrays of a few entries.
CALL = 20_000
