"""A uniform sample of rows that does not depend on how they come, and can be merged."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class SampledRows:
    """Rows drawn at random: those that a hash of their number makes least.

    Attributes
    ----------
    numbers : ndarray of int64, shape (n,)
    priorities : ndarray of uint64, shape (n,)
    rows : ndarray of shape (n, n_columns + n_targets)
    weights : ndarray of shape (n,)
    """

    numbers: np.ndarray
    priorities: np.ndarray
    rows: np.ndarray
    weights: np.ndarray

    @classmethod
    def empty(cls, width):
        nothing = np.empty(0)
        return cls(
            nothing.astype(np.int64),
            nothing.astype(np.uint64),
            np.empty((0, width)),
            nothing,
        )

    def __len__(self):
        return len(self.numbers)

    def at(self, index):
        """Some of them."""
        return SampledRows(*(array[index] for array in self._arrays()))

    def _arrays(self):
        return self.numbers, self.priorities, self.rows, self.weights

    def with_others(self, other, size):
        """The sample of both, of that size, and what is no part of it."""
        together = SampledRows(
            *(np.concatenate(pair) for pair in zip(self._arrays(), other._arrays()))
        )
        order = np.argsort(together.priorities)
        kept = order[:size]
        kept = kept[np.argsort(together.numbers[kept])]
        return together.at(kept), together.at(order[size:])

    def would_take(self, priorities, size):
        """Which rows of these priorities may be in the sample of that size."""
        if len(self) == size:
            return np.flatnonzero(priorities < self.priorities.max())
        if len(priorities) > size:
            return np.sort(np.argpartition(priorities, size)[:size])
        return np.arange(len(priorities))


def hashed(numbers, seed):
    """A random number of 64 bits for every number: SplitMix64 (Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        z = numbers.astype(np.uint64) * np.uint64(2) + np.uint64(seed)
        z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
