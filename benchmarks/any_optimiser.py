"""Do runs of any optimiser give leave-one-out faster than refits one after the other?

And which estimate is true of which optimiser's run, beside exact leave-one-out?

Needs skacv[jax,torch]: ``make bench-extras``. On one thread, in double precision. Brute
force is the refits one after the other, compiled once, through the same code.
"""

import os
import warnings
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

from .framework import Row, arguments, medians, report, seconds

REPEATS = 3
# So many of the refits are timed, which all take as long.
N_REFITS = 50
N_ROWS, N_COLUMNS, N_STEPS = 1000, 20, 300
READINGS = {
    "exact": {},
    "linearised": {"method": "linearised", "correction": False},
    "corrected": {"method": "linearised"},
}
SIZE = f"logistic regression {N_ROWS} x {N_COLUMNS}, {N_STEPS} updates"


def linear(coef, X):
    return X @ coef


def log_loss(y, z):
    return jax.nn.softplus(z) - y * z


def squared(y, prediction):
    return (y - prediction) ** 2


def soft_threshold(size):
    """A prox, as the last transformation of a chain."""

    def update(updates, state, params):
        point = params + updates
        shrunk = jnp.sign(point) * jnp.maximum(jnp.abs(point) - size, 0)
        return shrunk - params, state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


UPDATES = {
    "sgd": optax.sgd(0.5),
    "nesterov": optax.sgd(0.2, momentum=0.8, nesterov=True),
    "clipped": optax.chain(optax.clip_by_global_norm(0.1), optax.sgd(1.0)),
    "l1": optax.chain(optax.sgd(0.5), soft_threshold(0.005)),
    "adam": optax.adam(0.02),
    "rmsprop": optax.rmsprop(0.02),
    "sign": optax.sign_sgd(0.005),
}


def drawn(n_rows, n_columns):
    """Gaussian columns that all matter, their signal, and where to draw from."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns))
    coef = 2 * rng.standard_normal(n_columns) / np.sqrt(n_columns)
    return X, X @ coef, rng


def what_holds():
    """The memory matrix over exact leave-one-out, by the optimiser."""
    for shape in ((300, 150), (200, 300)):
        X, signal, rng = drawn(*shape)
        y = (rng.random(len(X)) < 1 / (1 + np.exp(-signal))).astype(float)
        for name, optimizer in UPDATES.items():
            acv = OptaxACV(linear, log_loss, optimizer)
            run = acv.run(jnp.zeros(shape[1]), X, y, 100)
            work = f"logistic regression {shape[0]} x {shape[1]}, memory matrix, {name}"
            yield "holds", over_exact(run, work)


def over_exact(run, work):
    """A row: the memory matrix over exact leave-one-out, and what it says of itself."""
    ours, results = seconds(lambda: run.risk_path(n_checked=0))
    theirs, exact = seconds(run.loo_path)
    ratios = results.path / exact.path
    accuracy = f"over exact {ratios.min():.3g} to {ratios.max():.3g}; {verdict(run)}"
    return Row.speed(work, "exact", ours, theirs, accuracy=accuracy)


def verdict(run):
    """What the twenty rows that are left out exactly as well make of the estimate."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            run.risk_path()
        except ValueError as error:
            if "is not valid" not in str(error):
                raise
            return "refused"
    is_off = any("is not valid" in str(warning.message) for warning in said)
    return "warned of" if is_off else "accepted"


def network(params, X):
    *hidden, (weight, shift) = params
    for own_weight, own_shift in hidden:
        X = jnp.tanh(X @ own_weight + own_shift)
    return (X @ weight + shift)[:, 0]


READINGS_OF_NETWORKS = {
    "folds": lambda run: run.cv_path(5),
    "rows": lambda run: run.loo_path(),
    "memory matrix": lambda run: run.risk_path(n_probes=20, n_checked=0),
}
DESCENTS = {"sgd": (optax.sgd(0.03), 1000), "adam": (optax.adam(0.01), 300)}


def networks(width=8):
    """Readings of small networks, over their errors on test rows."""
    for name, (optimizer, n_steps) in DESCENTS.items():
        runs = [run_of_network(optimizer, n_steps, width, seed) for seed in range(3)]
        size = f"network 5-{width}-{width}-1, 200 rows, {n_steps} updates"
        for reading, read in READINGS_OF_NETWORKS.items():
            ratios = np.array([read(run).path / test for run, test in runs])
            said = f"over the truth {ratios.min():.2g} to {ratios.max():.3g}"
            if reading == "memory matrix":
                said += f"; {', '.join(verdict(run) for run, _ in runs)}"
            yield "networks", Row(f"{size}, {reading}", name, accuracy=said)


def network_data(n_rows, rng):
    X = rng.standard_normal((n_rows, 5))
    signal = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3]
    return X, signal + 0.5 * rng.standard_normal(n_rows)


def network_start(width, rng):
    sizes = (5, width), (width, width), (width, 1)
    return [
        (rng.standard_normal(size) / np.sqrt(size[0]), np.zeros(size[1]))
        for size in sizes
    ]


def run_of_network(optimizer, n_steps, width, seed):
    """A run, and the error of its iterates on 10,000 test rows."""
    rng = np.random.default_rng(seed)
    X, y = network_data(10_200, rng)
    acv = OptaxACV(network, squared, optimizer)
    run = acv.run(network_start(width, rng), X[:200], y[:200], n_steps)
    return run, np.asarray(_errors(run.params_path, X[200:], y[200:]))


@jax.jit
def _errors(path, X, y):
    return jax.lax.map(lambda params: squared(y, network(params, X)).mean(), path)


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


def held_out(work, run, begin, prefix="", repeats=REPEATS):
    """Rows: readings against refits one after the other, and folds against a run."""
    refits = partial(run.loo_path, np.arange(N_REFITS), block_size=1)
    exact = None
    for name, settings in READINGS.items():
        read = partial(run.loo_path, **settings)
        if repeats > 1:  # compiled
            read(), refits()
        (took, results), (few, _) = medians(read, refits, repeats=repeats)
        exact, brute = exact or results, few * N_ROWS / N_REFITS
        accuracy = f"off exact by {worst(results, exact):.1e}"
        against = f"{N_ROWS} refits one by one"
        row = Row.speed(f"{work}, {name}", against, took, brute, accuracy)
        yield prefix + name, row
    run.cv_path(10)
    folds, ours = medians(lambda: run.cv_path(10), begin, repeats=repeats)
    row = Row.speed(f"{work}, ten folds", "the run", folds[0], ours[0])
    yield f"{prefix}folds", row


def speed(optimizer, name, loss=log_loss, prefix=""):
    """Leave-one-out and folds of a run by optax."""
    X, y = logistic_data(N_ROWS, N_COLUMNS)
    acv = OptaxACV(linear, loss, optimizer, lambda coef: 5e-5 * coef @ coef)
    begin = partial(acv.run, jnp.zeros(N_COLUMNS), X, y, N_STEPS)
    yield from held_out(f"{SIZE}, {name}", begin(), begin, prefix)


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
    yield from held_out(f"{SIZE}, Adam", begin(), begin, "torch-", repeats=1)


BENCHMARKS = {
    "sgd": lambda: speed(optax.sgd(1.0), "SGD"),
    "adam": lambda: speed(optax.adam(0.02), "Adam"),
    "own": own_speed,
    "torch": torch_speed,
    "holds": what_holds,
    "networks": networks,
}


if __name__ == "__main__":
    args = arguments(__doc__, BENCHMARKS)
    jax.config.update("jax_enable_x64", True)
    torch.set_num_threads(1)
    rows = (row for name in args.names or BENCHMARKS for row in BENCHMARKS[name]())
    report("Any optimiser", rows, args.output, ["jax", "optax", "torch"])
