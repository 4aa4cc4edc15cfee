"""Folds beside a training loop of a user's own."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from .._any_optimiser.alongside import AlongsideLoop
from .data import costs_of, equal_weights, rows_of


class Alongside(AlongsideLoop):
    """Cross-validation folds that are updated along with a training loop.

    It is created by :meth:`skacv.jax.TrajectoryACV.alongside`.

    Attributes
    ----------
    path_, se_path_ : ndarray of shape (n_evaluations,)
        Estimated mean loss of the iterates on unseen rows, and its standard error.
    iterations_ : ndarray of int, shape (n_evaluations,)
        Number of updates at each entry of the path.
    best_iteration_ : int
        Number of updates at the minimum of the path.
    best_params_ : pytree of arrays
        The loop's parameters there.
    n_steps_ : int
        Updates so far.
    """

    def __init__(self, model, params, data, folds, every):
        self._model, self._data = model, data
        self._last = self._now = params
        equal = equal_weights(model, params, data)
        # The first replica has all rows: it is the loop's own run.
        self._weights = jnp.concatenate(
            [equal[None], jnp.asarray(folds.weights(), equal.dtype)]
        )
        self._carry = jax.tree.map(
            lambda array: jnp.repeat(jnp.asarray(array)[None], 1 + len(folds), axis=0),
            model.start(params),
        )
        self._X = rows_of(data.X, folds.padded(folds.most_judged))
        self._y = data.y[folds.indices]
        super().__init__(folds, every)

    def step(self, params, rows=None):
        """Follow an update of the loop: call it after every update.

        Parameters
        ----------
        params : pytree of arrays
            The loop's parameters after it.
        rows : array-like of int, default=None
            Indices of the rows used in the update; None means all. Every new number of
            rows is compiled once.

        Raises
        ------
        ValueError
            If one of the first ten updates differs from that of the loop, or a fold
            diverges.

        Warns
        -----
        UserWarning
            If a later update differs; once.
        """
        self._now = params
        self._follow(rows)

    def _advance(self, rows):
        rows = None if rows is None else jnp.asarray(rows)
        part = self._data.on(rows, self._weights)
        self._carry = _advanced(self._model, self._carry, *part)

    def _parted(self):
        (params, state), now = self._carry, self._now
        *norms, eps, params = _parted(params, self._last, now)
        self._carry, self._last = (params, state), now
        distance, length, size = map(float, norms)
        return distance, length, size * float(eps)

    def _held_out(self):
        predictions = np.asarray(_predicted(self._model, self._carry, self._X))
        found = self._folds.unpadded(predictions[:, None])
        return found, costs_of(self._model.loss, self._y, found)

    def _keep(self):
        self.best_params_ = self._now


@jax.jit
def _parted(replicas, last, now):
    """Norms, the unit of rounding, and replicas of which the first is the loop."""
    own = ravel_pytree(jax.tree.map(lambda array: array[0], replicas))[0]
    last, there = (ravel_pytree(params)[0] for params in (last, now))
    norms = [jnp.linalg.norm(each) for each in (there - own, own - last, there)]
    together = jax.tree.map(lambda all_, new: all_.at[0].set(new), replicas, now)
    return *norms, jnp.finfo(own.dtype).eps, together


@partial(jax.jit, static_argnums=0)
def _advanced(model, carry, X, y, weights):
    return jax.vmap(model.step_on, (0, None, None, 0))(carry, X, y, weights)


@partial(jax.jit, static_argnums=0)
def _predicted(model, carry, X):
    carry = jax.tree.map(lambda array: array[1:], carry)
    return jax.vmap(model.predicted)(carry, X)
