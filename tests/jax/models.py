"""Models, losses, optimisers and their refits by a plain loop."""

import jax
import jax.numpy as jnp
import numpy as np
import optax


def linear(params, X):
    return X @ params["coef"] + params["intercept"]


def start(n_columns):
    return {"coef": jnp.zeros(n_columns), "intercept": jnp.zeros(())}


def log_loss(y, z):
    return jnp.logaddexp(0, z) - y * z


def squared(y, prediction):
    return (y - prediction) ** 2


def ridge(params):
    return 0.05 * params["coef"] @ params["coef"]


def refitted(acv, params, X, y, n_steps, batches=None, weight=None):
    """Parameters of every iterate by a loop that knows no replicas.

    ``weight`` is that of each row, by default one over their number in a batch.
    """

    def objective(params, X, y, weight):
        losses = acv.loss(y, acv.predict(params, X))
        penalty = 0.0 if acv.penalty is None else acv.penalty(params)
        return (weight * losses).sum() + penalty

    optimizer = optax.with_extra_args_support(acv.optimizer)

    @jax.jit
    def update(params, state, X, y, weight):
        def value_fn(params):
            return objective(params, X, y, weight)

        value, grad = jax.value_and_grad(value_fn)(params)
        extra = {"value": value, "grad": grad, "value_fn": value_fn}
        updates, state = optimizer.update(grad, state, params, **extra)
        return optax.apply_updates(params, updates), state

    state, path = optimizer.init(params), [params]
    for t in range(n_steps):
        rows = np.arange(len(y)) if batches is None else batches[t % len(batches)]
        own = 1 / len(rows) if weight is None else weight[rows]
        params, state = update(params, state, X[rows], y[rows], own)
        path.append(params)
    return path


def refitted_without(acv, params, X, y, n_steps, rows, batches=None, weights=None):
    """Predictions of some rows by a refit that never had them.

    With batches, what is left of one has the weight of the whole batch in the mean over
    the rows that are left. ``weights`` are of the rows of X, by default equal.
    """
    kept = np.setdiff1d(np.arange(len(y)), rows)
    weights = np.ones(len(y)) if weights is None else weights
    weight = weights[kept] / weights[kept].sum()
    if batches is not None:
        size = len(batches[0])
        batches = [np.searchsorted(kept, np.setdiff1d(each, rows)) for each in batches]
        weight = weight * len(y) / size
    path = refitted(acv, params, X[kept], y[kept], n_steps, batches, weight)
    return np.stack([acv.predict(each, X[rows]) for each in path])
