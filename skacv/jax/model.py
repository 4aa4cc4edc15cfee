"""A model, a loss of single rows and an optimiser: what one update is, and a run."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from .._any_optimiser.backend import Backend
from .._any_optimiser.batches import padded_batches
from . import linearised, replicas
from .data import Data, as_arrays, equal_weights, row_losses, rows_of


@dataclass(frozen=True)
class Model(Backend):
    """The objective and the optimiser, independent of the data.

    It is hashable, and equal to one of the same functions: compiled once for both.
    """

    predict: Callable
    loss: Callable
    optimizer: optax.GradientTransformation
    penalty: Callable | None = None

    def begin(self, params, weights=None):
        """Parameters and the state of the optimiser, whatever rows weigh."""
        return params, self.optimizer.init(params)

    def step(self, data, carry, weights, t):
        """Parameters and state after update ``t``, with rows weighted one's own way."""
        return self.step_on(carry, *data.at_update(t, weights))

    def step_on(self, carry, X, y, own):
        """The same on some rows, whose weights are their own."""
        return self.descend(carry, lambda params: self.objective(params, X, y, own))

    def descend(self, carry, objective):
        """One update on an objective, which line searches may ask for its values."""
        params, state = carry
        value, gradient = jax.value_and_grad(objective)(params)
        optimizer = optax.with_extra_args_support(self.optimizer)
        updates, state = optimizer.update(
            gradient, state, params, value=value, grad=gradient, value_fn=objective
        )
        return optax.apply_updates(params, updates), state

    def follow(self, carry, gradient):
        """One update by a gradient alone."""
        params, state = carry
        updates, state = self.optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state

    def predicted(self, carry, X):
        """Predictions by the parameters of a carry."""
        return self.predict(carry[0], X)

    # ---- what a backend supplies besides

    to_numpy = staticmethod(np.asarray)
    leaves = staticmethod(jax.tree.leaves)
    rows_of = staticmethod(rows_of)
    losses = staticmethod(row_losses)
    held_out = replicas.held_out
    hessian = linearised.hessian_of
    replayed = linearised.replayed

    def arrays(self, params, *values):
        return as_arrays(values)

    def named(self, params):
        pairs, _ = jax.tree_util.tree_flatten_with_path(params)
        return {f"params{jax.tree_util.keystr(key)}": value for key, value in pairs}

    def data(self, X, y, batches):
        if batches is not None:
            batches = jnp.asarray(padded_batches(batches, len(y)))
        return Data(X, y, batches)

    @staticmethod
    def iterate(path, t):
        return jax.tree.map(lambda array: array[t], path)

    def predict_path(self, path, X):
        return np.asarray(_predictions(self, path, X))

    def record(self, start, data, n_steps):
        path, train_path = _recorded(self, n_steps, start, data)
        return path, np.asarray(train_path, np.float64)

    def replicas(self, start, data, weights):
        return replicas.Replicas(self, start, data, weights)


@partial(jax.jit, static_argnums=0)
def _predictions(model, path, X):
    return jax.lax.map(lambda params: model.predict(params, X), path)


@partial(jax.jit, static_argnums=(0, 1))
def _recorded(model, n_steps, params, data):
    """Parameters of every iterate, and their mean losses on all rows."""
    weights = equal_weights(model, params, data)

    def recorded(carry):
        return carry[0], model.mean_loss(carry[0], data.X, data.y, weights)

    def advance(carry, t):
        return model.step(data, carry, weights, t), recorded(carry)

    carry, found = jax.lax.scan(advance, model.begin(params), jnp.arange(n_steps))
    return jax.tree.map(
        lambda path, last: jnp.concatenate([path, last[None]]), found, recorded(carry)
    )
