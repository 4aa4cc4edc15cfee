"""A model, a loss of single rows and an optimiser: what one update is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax


def no_penalty(params):
    """Zero, whatever the parameters."""
    return 0.0


class Data(NamedTuple):
    """What a run is on.

    Attributes
    ----------
    X : array, or pytree of arrays, of n_rows rows
    y : array of n_rows rows
    batches : int array of shape (n_batches, size), or None
        Rows of every update, gone through again and again; n_rows fills them up. None
        is all rows.
    """

    X: object
    y: jax.Array
    batches: jax.Array | None

    @property
    def n_rows(self):
        return self.y.shape[0]

    def at_update(self, t, weights):
        """X, y and the rows' weights of update ``t``.

        A batch weighs as much as all rows: what is left of it in a replica estimates
        the mean over all rows that are left, without bias.
        """
        if self.batches is None:
            return self.X, self.y, weights
        rows = self.batches[t % len(self.batches)]
        share = self.n_rows / (rows < self.n_rows).sum()
        own = weights.at[rows].get(mode="fill", fill_value=0.0) * share
        return *rows_of((self.X, self.y), rows), own


def as_arrays(tree):
    """A pytree with arrays of JAX for leaves; lists of numbers are arrays."""
    return jax.tree.map(jnp.asarray, tree, is_leaf=lambda part: isinstance(part, list))


def rows_of(tree, rows):
    """Some rows of all arrays of a pytree."""
    return jax.tree.map(lambda array: array.at[rows].get(mode="clip"), tree)


@dataclass(frozen=True)
class Model:
    """What is minimised, and how: nothing in it is of one data set.

    It is hashable, and equal to one of the same functions: compiled once for both.
    """

    predict: Callable
    loss: Callable
    optimizer: optax.GradientTransformation
    penalty: Callable = no_penalty

    def start(self, params):
        """Parameters and the state of the optimiser."""
        return params, self.optimizer.init(params)

    def mean_loss(self, params, X, y, weights):
        """Weighted sum of what the rows cost."""
        return weights @ self.loss(y, self.predict(params, X))

    def objective(self, params, X, y, weights):
        """What is minimised."""
        return self.mean_loss(params, X, y, weights) + self.penalty(params)

    def step(self, data, carry, weights, t):
        """Parameters and state after update ``t``, with rows weighted one's own way."""
        X, y, own = data.at_update(t, weights)
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
