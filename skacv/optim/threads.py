"""One thread for products that are so small that threads would wait for each other."""

from contextlib import contextmanager, nullcontext
from functools import cache
from threading import Lock

import numpy as np
from threadpoolctl import ThreadpoolController

# Arrays of fewer entries are small.
LARGE = 1 << 17


@cache
def _controller():
    """The libraries that are loaded, which takes a while to find out."""
    return ThreadpoolController()


# Held by whoever has changed the number of threads, which is that of the process.
_changed = Lock()


@contextmanager
def in_one_thread():
    """A context, or a decorator, in which matrices are multiplied by one thread.

    Where some are nested, or fits run side by side in threads of their own, the first
    changes the number of threads and changes it back.
    """
    if not _changed.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _changed.release()


def threads_for(shape):
    """A context with as many threads as products with an array of that shape take."""
    return in_one_thread() if np.prod(shape) < LARGE else nullcontext()
