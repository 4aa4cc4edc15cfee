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
# The eigendecomposition of a symmetric matrix of n rows, over n**3.
EIGEN = 8
# A QR decomposition, over n_rows * n_columns**2.
QR = 5


def product(n_rows, n_columns, n_vectors=1):
    """Cost of the product of a matrix with ``n_vectors`` vectors."""
    return n_rows * n_columns * max(n_vectors, min(ENTRY, 2 * n_vectors))


def eigh(size):
    """Cost of the eigendecomposition of a symmetric matrix of ``size`` rows."""
    return EIGEN * size**3
