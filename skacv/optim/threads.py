"""One thread for products that are so small that threads would wait for each other."""

from contextlib import ContextDecorator, nullcontext
from functools import cache
from threading import Lock, get_ident

import numpy as np
from threadpoolctl import ThreadpoolController

# Arrays of fewer entries are small.
LARGE = 1 << 17


@cache
def _controller():
    """The libraries that are loaded, which takes a while to find out."""
    return ThreadpoolController()


class OneThread(ContextDecorator):
    """Products of matrices by one thread.

    The number of threads is that of the whole process. Where fits run side by side, in
    threads of their own, the first changes it and changes it back.
    """

    def __init__(self):
        self._lock, self._owner, self._depth, self._limit = Lock(), None, 0, None

    def __enter__(self):
        with self._lock:
            if self._owner is None:
                self._owner = get_ident()
                self._limit = _controller().limit(limits=1, user_api="blas")
            self._depth += self._owner == get_ident()

    def __exit__(self, *error):
        with self._lock:
            self._depth -= self._owner == get_ident()
            if self._owner == get_ident() and not self._depth:
                self._limit.restore_original_limits()
                self._owner = None


in_one_thread = OneThread()


def threads_for(shape):
    """A context with as many threads as products with an array of that shape take."""
    return in_one_thread if np.prod(shape) < LARGE else nullcontext()
