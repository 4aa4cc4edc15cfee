"""The rows of a run as arrays of JAX, with their weights and losses."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.sparse import JAXSparse

from .._any_optimiser.data import RunRows


class JaxRows(RunRows):
    """Rows, targets and batches, padded by ``n_rows``; X may be a pytree."""

    def take_batch(self, rows, weights):
        rows = jnp.asarray(rows)
        share = self.n_rows / (rows < self.n_rows).sum()
        weights = weights.at[..., rows].get(mode="fill", fill_value=0.0) * share
        return *take_rows((self.X, self.y), rows), weights

    def counts(self, n_steps):
        """How often every row is in the batch of every update, (n_steps, n_rows)."""
        if self.batches is None:
            return np.ones((n_steps, self.n_rows))
        n_rows, batches = self.n_rows, np.asarray(self.batches)
        counts = [np.bincount(rows, minlength=n_rows + 1)[:n_rows] for rows in batches]
        return np.array(counts, float)[np.arange(n_steps) % len(counts)]


def as_arrays(tree):
    """A pytree with arrays of JAX for leaves; lists of numbers are arrays."""
    for part in jax.tree.leaves(tree, is_leaf=lambda part: isinstance(part, JAXSparse)):
        if isinstance(part, JAXSparse):
            raise TypeError(
                "A sparse array (BCOO) has no rows that can be weighted individually: "
                "pass X.todense(), or for a linear model a SciPy matrix to "
                "TrajectoryRegressor or TrajectoryLogisticRegression."
            )
    return jax.tree.map(jnp.asarray, tree, is_leaf=lambda part: isinstance(part, list))


def take_rows(tree, rows):
    """Rows of all arrays of a pytree, by their numbers."""
    return jax.tree.map(lambda array: array.at[rows].get(mode="clip"), tree)


def path_losses(loss, y, predictions):
    """Losses of the rows, (n_iterates, n_rows), in float64."""
    return np.asarray(_losses(loss, y, jnp.asarray(predictions)), np.float64)


@partial(jax.jit, static_argnums=0)
def _losses(loss, y, predictions):
    return jax.vmap(loss, (None, 0))(y, predictions)
