"""With which powers of rows, columns and updates does the time of an estimate grow?"""

from functools import partial
from typing import NamedTuple

import numpy as np

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)

from ..framework import header, line, seconds


class Cost(NamedTuple):
    """An estimate, what it should cost, and how it is timed.

    ``fit(X, y, T, on)`` fits with the estimate, or without it where ``on`` is false.
    """

    name: str
    time: str
    memory: str
    fit: object
    base: tuple  # n, p, T that are doubled one at a time


def linear(model, X, y, T, on, **estimates):
    settings = {"risk": False, "loo": False, "cv": None} | (estimates if on else {})
    settings |= {"max_iter": T, "tol": 0, "fit_intercept": False, "random_state": 0}
    return model.set_params(**settings).fit(X, y)


def ridge(X, y, T, on, **estimates):
    return linear(IterativeRidge(0.0, solver="gd"), X, y, T, on, **estimates)


def lasso(X, y, T, on, **estimates):
    alpha = 0.5
    return linear(TrajectoryLasso(alpha, solver="ista"), X, y, T, on, **estimates)


def logistic(X, y, T, on, **estimates):
    model = TrajectoryLogisticRegression(solver="fista")
    return linear(model, X, np.where(y > 0, 1, 0), T, on, **estimates)


def kernel(X, y, T, on):
    settings = {"gamma": 0.1, "max_iter": T, "patience": None, "random_state": 0}
    return KernelEigenProRegressor(**settings, loo=on, cv=None).fit(X, y)


COSTS = [
    Cost("the run", "n p T", "(n + p) T", logistic, (8000, 800, 50)),
    Cost(
        "cv_path_, K folds",
        "K n p T",
        "K p + n T",
        partial(logistic, cv=5),
        (8000, 800, 50),
    ),
    Cost(
        "loo_path_, linear updates",
        "n p r + r^3 + n r T",
        "n (r + T)",
        partial(ridge, loo=True),
        (2000, 500, 1000),
    ),
    Cost(
        "loo_path_, a prox",
        "n s^2 T",
        "n T + B s",
        partial(lasso, loo=True),
        (1500, 1000, 200),
    ),
    Cost(
        "loo_path_, curved loss",
        "n p^2 T + n^2 p log T",
        "n T + B p",
        partial(logistic, loo=True),
        (1500, 50, 400),
    ),
    Cost(
        "risk_path_, linear updates",
        "n p r + r^3 + (n + r) m T",
        "(n + T) m",
        partial(ridge, risk="exact"),
        (2000, 500, 1000),
    ),
    Cost(
        "risk_path_, a prox, q probes",
        "min(n, s) s m q T",
        "(n + p) m q",
        partial(lasso, risk=80),
        (2000, 1000, 400),
    ),
    Cost(
        "loo_path_, kernel machine",
        "n^3 + n^2 T",
        "n^2 + n T",
        kernel,
        (1200, 20, 400),
    ),
]


def least_seconds(cost, n, p, T, n_repeats):
    """The least time of the estimate alone."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    # As many coefficients are nonzero, whatever n and p.
    y = X[:, :100].sum(axis=1) + rng.standard_normal(n)
    times = [
        [seconds(cost.fit, X, y, T, on)[0] for on in (True, False)]
        for _ in range(n_repeats)
    ]
    with_it, without = np.min(times, axis=0)
    return with_it - without if cost.name != "the run" else without


def costs(n_repeats=3, scale=1.0):
    """With which power of rows n, columns p and updates T does the time grow?

    n, p and T are doubled one at a time, from the sizes in brackets; the power is log2
    of the ratio of seconds, the least of three fits with the estimate less the least of
    three without it, on one thread. r is the smaller of n and p, s the number of
    nonzero coefficients, m that of temporal modes (a dozen), B that of rows left out at
    a time. Where terms are added, powers are between those of each.
    """
    yield from header("estimate", "time", "memory", "n", "p", "T", "seconds at first")
    for cost in COSTS:
        first = [max(int(size * scale), 8) for size in cost.base]
        times = [least_seconds(cost, *first, n_repeats)]
        for doubled in range(3):
            sizes = [size * (1 + (k == doubled)) for k, size in enumerate(first)]
            times.append(least_seconds(cost, *sizes, n_repeats))
        powers = [f"{np.log2(later / times[0]):.1f}" for later in times[1:]]
        shape = " x ".join(map(str, first[:2]))
        at_first = f"{times[0]:.2g} ({shape}, T = {first[2]})"
        yield line(cost.name, cost.time, cost.memory, *powers, at_first)
    yield ""
