"""Do the costs in skacv/optim/costs.py hold here? ``python -m benchmarks.costs``."""

from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from skacv.optim import costs


def least_seconds(call, n_repeats=7):
    call()
    times = []
    for _ in range(n_repeats):
        begun = perf_counter()
        call()
        times.append(perf_counter() - begun)
    return min(times)


def measured():
    """Seconds of the unit, and every other constant in that unit."""
    rng = np.random.default_rng(0)
    square, tall = rng.standard_normal((1000, 1000)), rng.standard_normal((20_000, 200))
    vector, block = rng.standard_normal((200, 1)), rng.standard_normal(1 << 16)
    small = rng.standard_normal((4, 4))
    unit = least_seconds(lambda: square @ square) / 1000**3

    def cost(call, n):
        return least_seconds(call) / n / unit

    return {
        "SECONDS": unit,
        "ENTRY": cost(lambda: tall @ vector, tall.size),
        "DERIVATIVE": cost(lambda: np.exp(block) - block, block.size),
        "CALL": cost(lambda: small @ small, 1),
    }


if __name__ == "__main__":
    with threadpool_limits(1):
        for name, value in measured().items():
            print(f"{name:12s} measured {value:10.3g}   used {getattr(costs, name):g}")
