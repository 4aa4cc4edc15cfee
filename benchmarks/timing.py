"""Taking times."""

from time import perf_counter

import numpy as np


def seconds(work, *arguments):
    begun = perf_counter()
    result = work(*arguments)
    return perf_counter() - begun, result


def medians(*works, repeats):
    """Median seconds and last result of each work, taken in turn."""
    times = [[] for _ in works]
    results = [None] * len(works)
    for _ in range(repeats):
        for i, work in enumerate(works):
            elapsed, results[i] = seconds(work)
            times[i].append(elapsed)
    return [(float(np.median(t)), r) for t, r in zip(times, results)]
