"""Blocks of large arrays, the memory that they take, and the threads that call on them.

This is the only place that says how much memory a step may take.
"""

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache
from threading import Lock

import numpy as np
from threadpoolctl import ThreadpoolController

# Bytes of a block that is read several times: the cache of one core.
CACHE_BYTES = 1 << 20
# Larger arrays do not fit in the caches of all cores together.
LARGE_BYTES = 1 << 24
# Bytes that a computation may allocate besides X and the record of a run.
MEMORY_BYTES = 1 << 28


def n_per_block(bytes_each, budget=CACHE_BYTES):
    """Number of items of ``bytes_each`` bytes that fit in a budget, at least one."""
    return max(1, int(budget // max(bytes_each, 1)))


def slices(n, size):
    """Consecutive slices of ``size`` out of ``n`` items; the last may be shorter."""
    size = max(1, int(size))
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]


def blocks(n, bytes_each, budget=CACHE_BYTES, least=1):
    """Slices of ``n`` items, each as long as a budget allows and at least ``least``."""
    return slices(n, max(least, n_per_block(bytes_each, budget)))


@cache
def _controller():
    """The loaded libraries of threads. The search for them is slow: it is done once."""
    return ThreadpoolController()


# The number of threads is a setting of the process: one caller at a time changes it.
_thread_count_lock = Lock()


@contextmanager
def in_one_thread():
    """A context or decorator in which matrix products use one thread."""
    if not _thread_count_lock.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _thread_count_lock.release()


def threads_for(shape):
    """A context for products with an array of ``shape``: one thread if it is small."""
    return in_one_thread() if 8 * np.prod(shape) < CACHE_BYTES else nullcontext()


def tree_threads_for(shape):
    """A context for trees on an array of ``shape``: one thread if it is small."""
    if 8 * np.prod(shape) >= CACHE_BYTES:
        return nullcontext()
    # Threads that share little work wait for one another, and do so busily: where other
    # programs run on the same cores, trees take a hundred times as long. OpenMP counts
    # the threads of each calling thread by itself, so that no lock is needed.
    return _controller().limit(limits=1, user_api="openmp")


def in_threads(function, items):
    """Results of a function for all items, in their order."""
    libraries = [
        item for item in _controller().lib_controllers if item.user_api == "blas"
    ]
    n_threads = max((item.num_threads for item in libraries), default=1)
    if n_threads == 1 or len(items) == 1:
        yield from map(function, items)
        return
    error_settings = np.geterr()  # NumPy's settings are per thread

    def call(item):
        with np.errstate(**error_settings):
            return function(item)

    with in_one_thread(), ThreadPoolExecutor(n_threads) as pool:
        futures: deque[Future] = deque()
        for item in items:
            futures.append(pool.submit(call, item))
            if len(futures) > 2 * n_threads:  # so that few results are in memory
                yield futures.popleft().result()
        for item in futures:
            yield item.result()
