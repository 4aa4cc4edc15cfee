"""Which estimate is true of which optimiser's run, beside exact leave-one-out?

Rows of ``python -m benchmarks.any_optimiser``, without a bar: the memory matrix by the
optimiser, readings of networks, and runs of other rounding.
"""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from skacv._any_optimiser.folds import Folds
from skacv._any_optimiser.linearised import linearised_predictions
from skacv.jax import TrajectoryACV

from .framework import Row, seconds


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
# Long after all rows are fitted.
LATE = {
    "sgd": (optax.sgd(0.1), 1500),
    "adam": (optax.adam(0.02), 1500),
    "rmsprop": (optax.rmsprop(0.01), 500),
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
            acv = TrajectoryACV(linear, log_loss, optimizer)
            run = acv.run(jnp.zeros(shape[1]), X, y, 100)
            work = f"logistic regression {shape[0]} x {shape[1]}, memory matrix, {name}"
            yield "holds", over_exact(run, work)


def of_late_iterates():
    """The same of least squares that fit all rows."""
    X, signal, rng = drawn(200, 300)
    y = signal + rng.standard_normal(len(X))
    for name, (optimizer, n_steps) in LATE.items():
        run = TrajectoryACV(linear, squared, optimizer)
        run = run.run(jnp.zeros(X.shape[1]), X, y, n_steps)
        work = f"least squares 200 x 300, {n_steps} updates, memory matrix, {name}"
        yield "late", over_exact(run, work)


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
            if "does not hold" not in str(error):
                raise
            return "refused"
    is_off = any("does not hold" in str(warning.message) for warning in said)
    return "warned of" if is_off else "accepted"


def network(params, X):
    *hidden, (weight, shift) = params
    for own_weight, own_shift in hidden:
        X = jnp.tanh(X @ own_weight + own_shift)
    return (X @ weight + shift)[:, 0]


def folds(run, y):
    return run.cv_path(5).path


def rows(run, y):
    return run.loo_path().path


def memory_matrix(run, y):
    return run.risk_path(n_probes=20, n_checked=0).path


def linearised(run, y):
    """As of convex losses; ``loo_path`` refuses networks."""
    every = Folds.of_rows(None, len(y))
    errors = squared(y, linearised_predictions(run, every, True, None)).mean(axis=1)
    return np.nan_to_num(errors, nan=np.inf)


# Of the smaller network also what is refused, or warned of.
READINGS = {32: (folds, rows), 8: (folds, rows, memory_matrix, linearised)}
DESCENTS = {"sgd": (optax.sgd(0.03), 1000), "adam": (optax.adam(0.01), 300)}


def networks():
    """Readings of small networks, against their errors on test rows."""
    for width, readings in READINGS.items():
        for name, (optimizer, n_steps) in DESCENTS.items():
            begun = [begin(optimizer, n_steps, width, seed) for seed in range(3)]
            size = f"network 5-{width}-{width}-1, 200 rows, {n_steps} updates"
            for reading in readings:
                accuracy = beside_test([(reading(run, y), t) for run, y, t in begun])
                if reading is memory_matrix:
                    accuracy += f"; {', '.join(verdict(run) for run, *_ in begun)}"
                work = f"{size}, {reading.__name__.replace('_', ' ')}"
                yield "networks", Row(work, name, accuracy=accuracy)


def beside_test(pairs):
    """What pairs of an estimated path and the errors on test rows have in common."""
    ratios = np.array([path / test for path, test in pairs])
    chosen = max(test[path.argmin()] / test.min() for path, test in pairs)
    return (
        f"over the truth {ratios.min():.2g} to {ratios.max():.3g}; test error at the "
        f"chosen iterate over the least {chosen:.3f} at most"
    )


def network_data(n_rows, rng):
    X = rng.standard_normal((n_rows, 5))
    signal = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3]
    return X, signal + 0.5 * rng.standard_normal(n_rows)


def network_start(width, rng, dtype=np.float64):
    sizes = (5, width), (width, width), (width, 1)
    return [
        (
            (rng.standard_normal(size) / np.sqrt(size[0])).astype(dtype),
            np.zeros(size[1], dtype),
        )
        for size in sizes
    ]


def begin(optimizer, n_steps, width, seed):
    """A run, its targets, and the error of its iterates on 10,000 test rows."""
    rng = np.random.default_rng(seed)
    X, y = network_data(10_200, rng)
    acv = TrajectoryACV(network, squared, optimizer)
    run = acv.run(network_start(width, rng), X[:200], y[:200], n_steps)
    return run, y[:200], np.asarray(_errors(run.params_path, X[200:], y[200:]))


@jax.jit
def _errors(path, X, y):
    return jax.lax.map(lambda params: squared(y, network(params, X)).mean(), path)


ROUNDED = {
    "SGD, steps of 0.03": optax.sgd(0.03),
    "SGD, steps of 0.1": optax.sgd(0.1),
    "SGD, steps of 0.3": optax.sgd(0.3),
    "Adam, steps of 0.01": optax.adam(0.01),
}
N_ROUNDED = 1000
APART = 1e-3, 0.05


def of_other_rounding():
    """Runs of a network, one parameter of whose start is the next number."""
    for dtype in (np.float32, np.float64):
        for name, optimizer in ROUNDED.items():
            rng = np.random.default_rng(0)
            X, y = (part.astype(dtype) for part in network_data(200, rng))
            start = network_start(32, rng, dtype)
            acv = TrajectoryACV(network, squared, optimizer)
            one, second = (
                _vectors(acv.run(begun, X, y, N_ROUNDED))
                for begun in (start, rounded_up(start))
            )
            gone = np.linalg.norm(one - one[0], axis=1)[1:]
            apart = np.linalg.norm(one - second, axis=1)[1:] / gone
            said = [f"after {apart[-1]:.1e}", f"most {apart.max():.1e}"]
            for share in APART:
                first = f"update {(apart > share).argmax() + 1}"
                reached = first if (apart > share).any() else "never"
                said.append(f"over {share:g}: {reached}")
            work = f"network 5-32-32-1, {N_ROUNDED} updates, {name}, {dtype.__name__}"
            accuracy = "; ".join(said)
            yield "rounding", Row(work, "itself", accuracy=accuracy)


def rounded_up(params):
    """The same start, but for the last bit of one number."""
    (weight, shift), *rest = params
    weight = weight.copy()
    weight[0, 0] = np.nextafter(weight[0, 0], np.inf, dtype=weight.dtype)
    return [(weight, shift), *rest]


def _vectors(run):
    """Parameters of all iterates, (n_steps + 1, n_parameters), in double precision."""
    flat = jax.vmap(lambda params: ravel_pytree(params)[0])
    return np.asarray(flat(run.params_path), np.float64)
