"""Paths that are indexed like arrays, and computed a few iterates at a time."""

from abc import ABC, abstractmethod
from copy import copy
from operator import index

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .blocks import slices

ENTRIES_PER_BLOCK = 1 << 20


class ArrayPath(NDArrayOperatorsMixin, ABC):
    """A quantity of every iterate, computed when it is accessed.

    It is indexed like an array with the iterates along the first axis: ``path[t]`` and
    slices compute these iterates, whereas ``np.asarray(path)``, other indices, and
    arithmetic compute all. A subclass sets ``shape`` and ``dtype``, and defines
    ``_of(iterates)``.
    """

    _last = (None, None)

    @abstractmethod
    def _of(self, iterates):
        """The quantity of some iterates, the first axis of the result.

        Parameters
        ----------
        iterates : slice
            With nonnegative ends.
        """

    @property
    def ndim(self):
        """Number of axes."""
        return len(self.shape)

    def __getstate__(self):
        return vars(self) | {"_last": (None, None)}

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, key):
        if isinstance(key, slice) and (key.step or 1) > 0:
            return self._of(slice(*key.indices(len(self))))
        try:
            t = range(len(self))[index(key)]
        except TypeError:
            return np.asarray(self)[key]
        if self._last[0] != t:
            self._last = t, self._of(slice(t, t + 1))[0]
        return self._last[1]

    def first(self, n_iterates):
        """The path of the first iterates."""
        found = copy(self)
        found.shape = n_iterates, *self.shape[1:]
        return found

    def __array__(self, dtype=None, copy=None):
        found = np.empty(self.shape, self.dtype if dtype is None else dtype)
        n_entries = max(1, int(np.prod(self.shape[1:])))
        for iterates in slices(len(self), ENTRIES_PER_BLOCK // n_entries):
            found[iterates] = self._of(iterates)
        return found

    def __array_ufunc__(self, ufunc, method, *inputs, **settings):
        arrays = (np.asarray(x) if isinstance(x, ArrayPath) else x for x in inputs)
        return getattr(ufunc, method)(*arrays, **settings)

    def __repr__(self):
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype})"


class StoredPath(ArrayPath):
    """A path whose values are in memory.

    Parameters
    ----------
    values : ndarray of shape (n_iterates, ...)
    """

    def __init__(self, values):
        self._values = values
        self.shape, self.dtype = values.shape, values.dtype

    def _of(self, iterates):
        return self._values[iterates]
