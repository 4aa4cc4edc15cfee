"""Costs of computations, by which one way or another is chosen.

The unit is one multiplication and addition of a large matrix product in double
precision, in one thread. ``python -m benchmarks.costs`` measures every constant; they
hold within a factor of two on different processors, so a choice that depends on less
than that does not matter.
"""

# Seconds of the unit.
SECONDS = 4e-11
# An entry of X in a product with one vector, which is limited by memory.
ENTRY = 7
# An entry of an array in a loss, its derivative or a prox: an exponential, a few sums.
DERIVATIVE = 30
# A call of NumPy on arrays of a few entries.
CALL = 20_000
