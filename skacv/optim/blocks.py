"""Blocks of large arrays, the memory that they take, and the threads that work on them.

This is the only place that says how much memory a step may take.
"""

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache
from threading import Lock

import numpy as np
from threadpoolctl import ThreadpoolController

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


@cache
def _controller():
    """The loaded libraries; to find them takes a while."""
    return ThreadpoolController()


# Held while the number of threads, which is that of the process, is changed.
_changed = Lock()


@contextmanager
def in_one_thread():
    """A context or decorator in which products of matrices use one thread."""
    if not _changed.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _changed.release()


def threads_for(shape):
    """A context with the threads that products with an array of a shape need."""
    return in_one_thread() if 8 * np.prod(shape) < CACHE_BYTES else nullcontext()


def in_threads(function, items):
    """Results of a function for all items, in their order."""
    libraries = [
        item for item in _controller().lib_controllers if item.user_api == "blas"
    ]
    n_threads = max((item.num_threads for item in libraries), default=1)
    if n_threads == 1 or len(items) == 1:
        yield from map(function, items)
        return
    settings = np.geterr()  # which threads do not share

    def work(item):
        with np.errstate(**settings):
            return function(item)

    with in_one_thread(), ThreadPoolExecutor(n_threads) as pool:
        waiting = deque()
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > 2 * n_threads:  # few results are in memory
                yield waiting.popleft().result()
        for item in waiting:
            yield item.result()
