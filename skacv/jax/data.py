"""The rows of a run as arrays of JAX, and what they weigh and cost."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._any_optimiser.batches import checked_batches, padded_batches
from .._any_optimiser.checks import (
    check_data,
    check_loss,
    check_parameters,
    check_rows_are_independent,
)
from .._any_optimiser.folds import Folds
from .._compat import check_in_memory


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
        """X, y and the rows' weights of update ``t``."""
        return self.on(self.rows_at(t), weights)

    def rows_at(self, t):
        """Rows of update ``t``; None is all."""
        return None if self.batches is None else self.batches[t % len(self.batches)]

    def counts(self, n_steps):
        """How often every row is in the batch of every update, (n_steps, n_rows)."""
        if self.batches is None:
            return np.ones((n_steps, self.n_rows))
        n_rows, batches = self.n_rows, np.asarray(self.batches)
        found = [np.bincount(rows, minlength=n_rows + 1)[:n_rows] for rows in batches]
        return np.array(found, float)[np.arange(n_steps) % len(found)]

    def on(self, rows, weights):
        """The same of some rows; None is all.

        A batch weighs as much as all rows: what is left of it in a replica estimates
        the mean over all rows that are left, without bias.
        """
        if rows is None:
            return self.X, self.y, weights
        share = self.n_rows / (rows < self.n_rows).sum()
        own = weights.at[..., rows].get(mode="fill", fill_value=0.0) * share
        return *rows_of((self.X, self.y), rows), own


def as_arrays(tree):
    """A pytree with arrays of JAX for leaves; lists of numbers are arrays."""
    return jax.tree.map(jnp.asarray, tree, is_leaf=lambda part: isinstance(part, list))


def rows_of(tree, rows):
    """Some rows of all arrays of a pytree."""
    return jax.tree.map(lambda array: array.at[rows].get(mode="clip"), tree)


def checked(model, params, X, y, batches=None):
    """Where a run starts, and its data, once they are what they must be.

    Returns
    -------
    params : pytree of arrays
    data : Data
    """
    check_in_memory(X, y)
    params, (X, y) = jax.tree.map(jnp.asarray, params), as_arrays((X, y))
    check_data([np.asarray(part) for part in jax.tree.leaves(X)], np.asarray(y))
    batches = checked_batches(batches, len(y))
    if batches is not None:
        batches = jnp.asarray(padded_batches(batches, len(y)))
    named, _ = jax.tree_util.tree_flatten_with_path(params)
    check_parameters(
        {f"params{jax.tree_util.keystr(k)}": str(leaf.dtype) for k, leaf in named}
    )
    prediction = model.predict(params, X)
    check_loss(jnp.shape(model.loss(y, prediction)), len(y), prediction.shape)
    half = len(y) - len(y) // 2
    alone = model.predict(params, rows_of(X, jnp.arange(half)))
    check_rows_are_independent(np.asarray(alone), np.asarray(prediction[:half]))
    return params, Data(X, y, batches)


def equal_weights(model, params, data):
    """The rows' weights in the mean over all of them, in their loss's precision."""
    prediction = jax.eval_shape(model.predict, params, data.X)
    return jnp.full(data.n_rows, 1 / data.n_rows, prediction.dtype)


def folds_of(folds, data):
    """The folds that a user has named, of some data."""
    return Folds.of(folds, np.zeros((data.n_rows, 0)), np.asarray(data.y))


def costs_of(loss, y, predictions):
    """What rows cost, (n_iterates, n_rows), in float64."""
    return np.asarray(_costs(loss, y, jnp.asarray(predictions)), np.float64)


@partial(jax.jit, static_argnums=0)
def _costs(loss, y, predictions):
    return jax.vmap(loss, (None, 0))(y, predictions)
