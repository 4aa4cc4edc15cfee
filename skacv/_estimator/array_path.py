"""Paths that are read like arrays, and computed a few iterates at a time."""

from abc import ABC, abstractmethod
from operator import index

import numpy as np
from sklearn.utils import gen_batches

ENTRIES_PER_BLOCK = 1 << 20


class ArrayPath(ABC):
    """A quantity of every iterate, computed when an iterate of it is asked for.

    It is read like an array whose first axis are the iterates: ``path[t]`` and a slice
    compute those, ``np.asarray(path)``, and any other index, all. A subclass sets
    ``shape`` and ``dtype``, and says ``_of(iterates)``.
    """

    _last = (None, None)

    @abstractmethod
    def _of(self, iterates):
        """The quantity of some iterates, the first axis of the result.

        Parameters
        ----------
        iterates : slice
        """

    @property
    def ndim(self):
        """Number of axes."""
        return len(self.shape)

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, key):
        if isinstance(key, slice):
            return self._of(key)
        try:
            t = range(len(self))[index(key)]
        except TypeError:
            return np.asarray(self)[key]
        if self._last[0] != t:
            self._last = t, self._of(slice(t, t + 1))[0]
        return self._last[1]

    def __array__(self, dtype=None, copy=None):
        found = np.empty(self.shape, self.dtype if dtype is None else dtype)
        n_entries = max(1, int(np.prod(self.shape[1:])))
        for iterates in gen_batches(len(self), max(1, ENTRIES_PER_BLOCK // n_entries)):
            found[iterates] = self._of(iterates)
        return found

    def __repr__(self):
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype})"
