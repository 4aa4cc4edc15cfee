"""Replicas of a run that leave rows out, side by side: exact, for any update."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial

from .._any_optimiser.backend import SideBySide
from .._any_optimiser.estimates import PathEstimate
from .._any_optimiser.folds import Folds
from .data import as_arrays, precision, row_losses, rows_of


@dataclass(frozen=True)
class Steps:
    """Updates of a user's own, as :class:`skacv.jax.model.Model` has them."""

    update: Callable
    prediction: Callable

    def begin(self, start, weights):
        return start(weights)

    def step(self, data, carry, weights, t):
        return self.update(carry, weights)

    def predicted(self, carry, X):
        return self.prediction(carry, X)


def held_out(model, start, data, n_steps, weights, rows):
    """Predictions for the held-out rows, (n_replicas, n_iterates, size)."""
    weights = jnp.asarray(weights, precision(model, start, data))
    found = _held_out(model, n_steps, start, data, weights, rows_of(data.X, rows))
    return np.asarray(found)


@partial(jax.jit, static_argnums=(0, 1))
def _held_out(model, n_steps, start, data, weights, X):
    step = jax.vmap(partial(model.step, data), (0, 0, None))
    predicted = jax.vmap(model.predicted)

    def advance(carry, t):
        return step(carry, weights, t), predicted(carry, X)

    carry = jax.vmap(partial(model.begin, start))(weights)
    carry, found = jax.lax.scan(advance, carry, jnp.arange(n_steps))
    found = jnp.concatenate([found, predicted(carry, X)[None]])
    return jnp.moveaxis(found, 0, 1)


class Replicas(SideBySide):
    """Replicas that are compiled for one update, and for every size of a batch."""

    def __init__(self, model, start, data, weights):
        self._model = model
        self.weights = jnp.asarray(weights, precision(model, start, data))
        self._carry = jax.tree.map(
            lambda array: jnp.repeat(jnp.asarray(array)[None], len(weights), axis=0),
            model.begin(start),
        )

    def step(self, X, y, weights):
        self._carry = _advanced(self._model, self._carry, X, y, weights)

    def held_out(self, X):
        return np.asarray(_predicted(self._model, self._carry, X))

    def reset_first(self, last, now):
        params, state = self._carry
        *norms, eps, params = _parted(params, last, now)
        self._carry = params, state
        distance, length, size = map(float, norms)
        return distance, length, size * float(eps)


@partial(jax.jit, static_argnums=0)
def _advanced(model, carry, X, y, weights):
    return jax.vmap(model.step_on, (0, None, None, 0))(carry, X, y, weights)


@partial(jax.jit, static_argnums=0)
def _predicted(model, carry, X):
    carry = jax.tree.map(lambda array: array[1:], carry)
    return jax.vmap(model.predicted)(carry, X)


@jax.jit
def _parted(replicas, last, now):
    """Norms, the unit of rounding, and replicas of which the first is the loop."""
    own = ravel_pytree(jax.tree.map(lambda array: array[0], replicas))[0]
    last, there = (ravel_pytree(params)[0] for params in (last, now))
    norms = [jnp.linalg.norm(each) for each in (there - own, own - last, there)]
    together = jax.tree.map(lambda all_, new: all_.at[0].set(new), replicas, now)
    return *norms, jnp.finfo(own.dtype).eps, together


def cv_path(
    step: Callable[..., Any],
    start: Callable[..., Any],
    predict: Callable[..., Any],
    loss: Callable[..., Any],
    X: Any,
    y: Any,
    n_steps: int,
    folds: Any = 5,
    block_size: int | None = None,
) -> PathEstimate:
    """Cross-validation error of every iterate of any ``step(carry, weights) -> carry``.

    Folds are runs side by side, each with its own row weights. This is exact for any
    step (line searches, second-order methods, several optimisers) that uses the rows
    only through their weights.

    Parameters
    ----------
    step : callable
        ``step(carry, weights)`` makes one update of a pytree of arrays and gives one
        of the same shapes, in functions of JAX. ``weights``, of shape (n_rows,), are
        those of the rows in a mean: they sum to one, and are zero where a row is left
        out.
    start : callable
        ``start(weights)`` is the carry before the first update.
    predict : callable
        ``predict(carry, X)``, one prediction a row.
    loss : callable
        ``loss(y, prediction)``, one number a row.
    X : array-like, or pytree of them, of n_rows rows
    y : array-like of n_rows rows
    n_steps : int
        Number of updates.
    folds : int, cross-validation splitter or iterable, default=5
        A number of random folds, a splitter of scikit-learn (``LeaveOneOut()`` leaves
        out rows one by one), or pairs of training rows and held-out rows.
    block_size : int, default=None
        Largest number of runs computed side by side; None is what fits in cache. Memory
        grows with it.

    Returns
    -------
    PathEstimate

    Raises
    ------
    ValueError
        If folds are invalid, or a replica diverges.

    Examples
    --------
    Newton's method, which is no optimiser of optax:

    >>> import jax, jax.numpy as jnp, numpy as np
    >>> from skacv.jax import cv_path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 3))
    >>> y = (X[:, 0] + rng.standard_normal(60) > 0).astype(float)
    >>> def loss(y, z):
    ...     return jnp.logaddexp(0, z) - y * z
    >>> def objective(b, weights):
    ...     return weights @ loss(y, X @ b) + 0.01 * b @ b
    >>> def newton(b, weights):
    ...     gradient = jax.grad(objective)(b, weights)
    ...     return b - jnp.linalg.solve(jax.hessian(objective)(b, weights), gradient)
    >>> found = cv_path(
    ...     newton, lambda w: jnp.zeros(3), lambda b, X: X @ b, loss, X, y, n_steps=5
    ... )
    >>> found.path.shape
    (6,)
    """
    X, y = as_arrays((X, y))
    folds = Folds.of(folds, np.zeros((len(y), 0)), np.asarray(y))
    model, start = Steps(step, predict), Partial(start)

    def held_out(weights, rows):
        weights, own = jnp.asarray(weights), rows_of(X, rows)
        return np.asarray(_held_out(model, n_steps, start, None, weights, own))

    predictions = folds.by_block(held_out, block_size)
    losses = row_losses(loss, y[folds.indices], predictions)
    return PathEstimate.of(losses, predictions, folds)
