"""Do runs of any optimiser give leave-one-out faster than refits one after the other?

Twice as fast exactly, ten times with a correction, a hundred times without; ten folds
in two runs' time.

Needs skacv[jax,torch]: ``make bench-extras``. On one thread, in double precision. Brute
force is the refits one after the other, compiled once, through the same code.
"""

import os
from functools import partial

# Before JAX is there: it takes as many threads as this says that there are processors.
os.environ.setdefault("NPROC", "1")

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch

from skacv.jax import TrajectoryACV as OptaxACV
from skacv.jax.estimators import log_loss as own_log_loss
from skacv.torch import TrajectoryACV as TorchACV

from .any_optimiser_truth import (
    linear,
    log_loss,
    networks,
    of_late_iterates,
    of_other_rounding,
    what_holds,
)
from .framework import Row, arguments, medians, report

REPEATS = 3
# So many of the refits are timed, which all take as long.
N_REFITS = 50
N_ROWS, N_COLUMNS, N_STEPS = 1000, 20, 300
READINGS = [
    ("exact", {}, "2"),
    ("linearised", {"method": "linearised", "correction": False}, "100"),
    ("corrected", {"method": "linearised"}, "10"),
]
SIZE = f"logistic regression {N_ROWS} x {N_COLUMNS}, {N_STEPS} updates"


def logistic_data(n_rows, n_columns, seed=0, strength=1.0):
    """Gaussian columns, five of which matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_columns))
    coef = strength * rng.standard_normal(n_columns) * (np.arange(n_columns) < 5)
    return X, (rng.random(n_rows) < 1 / (1 + np.exp(-X @ coef))).astype(float)


def torch_log_loss(y, z):
    return torch.nn.functional.softplus(z) - y * z


def worst(results, expected):
    """Largest relative difference of two paths."""
    return np.abs(results.path / expected.path - 1).max()


def held_out(work, run, begin, readings, prefix="", repeats=REPEATS):
    """Rows: every reading against refits one after the other, and folds against a run.

    ``readings`` are (name, settings of loo_path, ratio to reach), exact ones first.
    """
    refits = partial(run.loo_path, np.arange(N_REFITS), block_size=1)
    exact = None
    for name, settings, required in readings:
        read = partial(run.loo_path, **settings)
        if repeats > 1:  # compiled
            read(), refits()
        (took, results), (few, _) = medians(read, refits, repeats=repeats)
        exact, brute = exact or results, few * N_ROWS / N_REFITS
        accuracy = f"off exact by {worst(results, exact):.1e}"
        against = f"{N_ROWS} refits one by one"
        row = Row.speed(f"{work}, {name}", against, took, brute, required, accuracy)
        yield prefix + name, row
    run.cv_path(10)
    folds, ours = medians(lambda: run.cv_path(10), begin, repeats=repeats)
    row = Row.speed(f"{work}, ten folds", "the run", folds[0], ours[0], "0.5")
    yield f"{prefix}folds", row


def speed(optimizer, name, loss=log_loss, prefix=""):
    """Leave-one-out and folds of a run by optax."""
    X, y = logistic_data(N_ROWS, N_COLUMNS)
    acv = OptaxACV(linear, loss, optimizer, lambda coef: 5e-5 * coef @ coef)
    begin = partial(acv.run, jnp.zeros(N_COLUMNS), X, y, N_STEPS)
    yield from held_out(f"{SIZE}, {name}", begin(), begin, READINGS, prefix)


def own_speed():
    """The same with the loss of OptaxClassifier, whose slope costs little."""
    name = "SGD, loss of OptaxClassifier"
    yield from speed(optax.sgd(1.0), name, own_log_loss, "own-")


def torch_speed():
    """The same by torch, of which every update is a call from Python."""
    X, y = logistic_data(N_ROWS, N_COLUMNS)
    module = torch.nn.Linear(N_COLUMNS, 1, bias=False)
    torch.nn.init.zeros_(module.weight)
    module = torch.nn.Sequential(module, torch.nn.Flatten(0)).double()
    acv = TorchACV(module, torch_log_loss, partial(torch.optim.Adam, lr=0.02))
    begin = partial(acv.run, X, y, N_STEPS)
    yield from held_out(f"{SIZE}, Adam", begin(), begin, READINGS, "torch-", repeats=1)


BENCHMARKS = {
    "sgd": lambda: speed(optax.sgd(1.0), "SGD"),
    "adam": lambda: speed(optax.adam(0.02), "Adam"),
    "own": own_speed,
    "torch": torch_speed,
    "holds": what_holds,
    "late": of_late_iterates,
    "networks": networks,
    "rounding": of_other_rounding,
}


if __name__ == "__main__":
    args = arguments(__doc__, BENCHMARKS)
    jax.config.update("jax_enable_x64", True)
    torch.set_num_threads(1)
    rows = (row for name in args.names or BENCHMARKS for row in BENCHMARKS[name]())
    report("Any optimiser", rows, args.output, ["jax", "optax", "torch"])
