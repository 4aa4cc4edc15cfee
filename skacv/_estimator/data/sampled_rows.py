"""A uniform sample of rows that does not depend on how they come, and can be merged.

Drawn are the rows whose numbers have the least hashes. A sample is an array with fields
``number``, ``priority``, that hash, ``weight``, and ``row``, the numbers of [X y].
"""

import numpy as np


def as_sample(numbers, priorities, weights, rows):
    fields = [
        ("number", np.int64),
        ("priority", np.uint64),
        ("weight", np.float64),
        ("row", np.float64, rows.shape[1:]),
    ]
    sample = np.empty(len(rows), fields)
    sample["number"], sample["priority"] = numbers, priorities
    sample["weight"], sample["row"] = weights, rows
    return sample


def draw_sample(sample, rows, size):
    """A sample of that size of a sample and more rows, in their order; and the rest."""
    together = np.concatenate([sample, rows])
    order = np.argsort(together["priority"])
    kept = together[order[:size]]
    return kept[np.argsort(kept["number"])], together[order[size:]]


def may_be_drawn(sample, priorities, size):
    """Indices of the priorities whose rows may be in a sample of that size."""
    if len(sample) == size:
        return np.flatnonzero(priorities < sample["priority"].max())
    if len(priorities) > size:
        return np.sort(np.argpartition(priorities, size)[:size])
    return np.arange(len(priorities))


def hash_numbers(numbers, seed):
    """A random number of 64 bits for every number: SplitMix64 (Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        z = numbers.astype(np.uint64) * np.uint64(2) + np.uint64(seed)
        z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
