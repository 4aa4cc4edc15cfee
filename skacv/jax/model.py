"""The backend of JAX: a model, a loss of single rows and an optimiser."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from .._any_optimiser.backend import Backend
from .._any_optimiser.data import pad_batches
from . import linearised
from .data import JaxRows, as_arrays, path_losses, take_rows
from .losses import row_loss

compiled = partial(jax.jit, static_argnums=0)
# Compiled for a model and a number of steps, the first two arguments.
compiled_run = partial(jax.jit, static_argnums=(0, 1))


def scan(step, read, carry, n_steps):
    """``read(carry)`` before every step and after the last, along a first axis."""

    def advance(carry, t):
        return step(carry, t), read(carry)

    carry, path = jax.lax.scan(advance, carry, jnp.arange(n_steps))
    return jax.tree.map(
        lambda before, last: jnp.concatenate([before, last[None]]), path, read(carry)
    )


def params_at(path, t):
    """Parameters of iterate t."""
    return jax.tree.map(lambda array: array[t], path)


@dataclass(frozen=True)
class JaxBackend(Backend):
    """A carry is the parameters and the state of the optimiser.

    In the carry of replicas each array has a first axis of replicas.
    """

    # Backends of the same functions are equal and have one hash: runs that differ in
    # their data are compiled once.

    predict: Callable
    loss: Callable
    optimizer: optax.GradientTransformation
    penalty: Callable | None = None

    functions = linearised

    def begin(self, start):
        return start, self.optimizer.init(start)

    def step(self, carry, X, y, weights):
        return self.descend(carry, lambda params: self.objective(params, X, y, weights))

    def descend(self, carry, objective):
        """One update by an objective, which line searches may evaluate."""
        params, state = carry
        value, gradient = jax.value_and_grad(objective)(params)
        optimizer = optax.with_extra_args_support(self.optimizer)
        updates, state = optimizer.update(
            gradient, state, params, value=value, grad=gradient, value_fn=objective
        )
        return optax.apply_updates(params, updates), state

    def begin_replicas(self, start, weights):
        return jax.vmap(lambda _: self.begin(start))(weights)

    @compiled
    def step_replicas(self, carry, X, y, weights):
        return jax.vmap(self.step, (0, None, None, 0))(carry, X, y, weights)

    def follow_replicas(self, carry, gradients):
        params, state = carry
        try:
            updates, state = jax.vmap(self.optimizer.update)(gradients, state, params)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "method='linearised' gives the optimiser gradients alone, and this one "
                "asks for more, as line searches do: use method='exact'."
            ) from error
        return optax.apply_updates(params, updates), state

    def params_of(self, carry):
        return carry[0]

    @partial(jax.jit, static_argnums=(0, 3))
    def predictions(self, carry, X, first=0):
        params = jax.tree.map(lambda array: array[first:], carry[0])
        return jax.vmap(self.predict)(params, X)

    def reset_first(self, carry, last, loop_params):
        params, state = carry
        *norms, eps, params = _distances(params, last, loop_params)
        distance, length, size = map(float, norms)
        return (params, state), distance, length, size * float(eps)

    # ---- runs, compiled as a whole

    scan = staticmethod(scan)
    record = compiled_run(Backend.record)
    held_out = compiled_run(Backend.held_out)
    hessian = compiled(Backend.hessian)
    linearised_path = compiled(Backend.linearised_path)

    @compiled
    def predict_path(self, path, X):
        return jax.lax.map(lambda params: self.predict(params, X), path)

    # ---- arrays

    to_numpy = staticmethod(np.asarray)
    rows_of = staticmethod(take_rows)
    losses = staticmethod(path_losses)
    row_loss = staticmethod(row_loss)

    def arrays(self, params, *values):
        return as_arrays(values)

    def weights(self, params, data, weights):
        dtype = jax.eval_shape(self.predict, params, data.X).dtype
        return jnp.asarray(weights, dtype)

    def arrays_by_name(self, name, values):
        pairs, _ = jax.tree_util.tree_flatten_with_path(values)
        return {f"{name}{jax.tree_util.keystr(key)}": array for key, array in pairs}

    def data(self, X, y, batches):
        if batches is not None:
            batches = jnp.asarray(pad_batches(batches, len(y)))
        return JaxRows(X, y, batches)

    iterate = staticmethod(params_at)


@jax.jit
def _distances(replicas, last, loop_params):
    """Norms, the unit of rounding, and replicas of which the first is the loop."""
    replica = ravel_pytree(jax.tree.map(lambda array: array[0], replicas))[0]
    last, loop = (ravel_pytree(params)[0] for params in (last, loop_params))
    differences = loop - replica, replica - last, loop
    norms = [jnp.linalg.norm(difference) for difference in differences]
    updated = jax.tree.map(lambda all_, new: all_.at[0].set(new), replicas, loop_params)
    return *norms, jnp.finfo(replica.dtype).eps, updated
