"""Paths that are read like arrays, and computed an iterate at a time."""

from abc import ABC, abstractmethod
from operator import index

import numpy as np


class ArrayPath(ABC):
    """A quantity of every iterate, computed when an iterate of it is asked for.

    It is read like an array whose first axis are the iterates: ``path[t]`` computes one
    of them, ``np.asarray(path)``, and any other index, all. A subclass sets ``shape``
    and ``dtype``, and says ``_at(t)``.
    """

    _last = (None, None)

    @abstractmethod
    def _at(self, t):
        """The quantity of iterate t."""

    @property
    def ndim(self):
        """Number of axes."""
        return len(self.shape)

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, key):
        try:
            t = range(len(self))[index(key)]
        except TypeError:
            return np.asarray(self)[key]
        if self._last[0] != t:
            self._last = t, self._at(t)
        return self._last[1]

    def __array__(self, dtype=None, copy=None):
        found = np.empty(self.shape, self.dtype if dtype is None else dtype)
        for t in range(len(self)):
            found[t] = self._at(t)
        return found

    def __repr__(self):
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype})"
