"""Blocks of large arrays: the only place that says how much memory a step may take."""

# Bytes of the arrays of a block that is worked on several times: the cache of a core.
CACHE_BYTES = 1 << 20
# Arrays beyond that are not in the caches of all cores together.
LARGE_BYTES = 1 << 24
# Bytes of the arrays that a computation may hold beside X and the record of a run.
MEMORY_BYTES = 1 << 28


def n_per_block(bytes_each, budget=CACHE_BYTES):
    """Number of items of ``bytes_each`` that fit in a budget, at least one."""
    return max(1, int(budget // max(bytes_each, 1)))


def slices(n, size):
    """Consecutive slices of ``size`` out of ``n`` items; the last may be shorter."""
    size = max(1, int(size))
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]


def blocks(n, bytes_each, budget=CACHE_BYTES, least=1):
    """Slices of ``n`` items, of as many as a budget holds and at least ``least``."""
    return slices(n, max(least, n_per_block(bytes_each, budget)))
