"""Replicas of a run that leave rows out, side by side: exact, for any update."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from .._any_optimiser.estimates import PathEstimate
from .._any_optimiser.folds import Folds
from .data import as_arrays, costs_of, rows_of


@dataclass(frozen=True)
class Steps:
    """Updates of a user's own, as :class:`skacv.jax.model.Model` has them."""

    update: Callable
    prediction: Callable

    def step(self, data, carry, weights, t):
        return self.update(carry, weights)

    def predicted(self, carry, X):
        return self.prediction(carry, X)


@partial(jax.jit, static_argnames=("model", "n_steps"))
def _held_out(model, n_steps, start, data, weights, X):
    """Predictions of rows that replicas leave out, (n_replicas, n_iterates, size)."""
    step = jax.vmap(partial(model.step, data), (0, 0, None))
    predicted = jax.vmap(model.predicted)

    def advance(carry, t):
        return step(carry, weights, t), predicted(carry, X)

    carry, found = jax.lax.scan(advance, jax.vmap(start)(weights), jnp.arange(n_steps))
    found = jnp.concatenate([found, predicted(carry, X)[None]])
    return jnp.moveaxis(found, 0, 1)


def held_out_predictions(model, start, n_steps, data, X, folds, block_size, dtype):
    """Predictions of all rows that folds are judged by, by replicas without them.

    Parameters
    ----------
    model : Model or Steps
    start : jax.tree_util.Partial
        ``start(weights)``, where a replica with these weights starts.
    n_steps : int
    data : Data or None
        Passed on to the steps.
    X : array or pytree of arrays
    folds : Folds
    block_size : int or None
        Replicas side by side; None is what fits in cache.
    dtype : dtype
        Precision of the weights.

    Returns
    -------
    ndarray of shape (n_steps + 1, n_held_out, ...)
    """
    found = []
    for block, n_own in folds.blocks(block_size):
        weights = jnp.asarray(block.weights(), dtype)
        held_out = rows_of(X, block.padded(folds.most_judged))
        part = _held_out(model, n_steps, start, data, weights, held_out)
        found.append(block.unpadded(np.asarray(part)[:n_own]))
    return np.concatenate(found, axis=1)


def cv_path(step, start, predict, loss, X, y, n_steps, folds=5, block_size=None):
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
        out rows one by one), or pairs of rows to fit on and rows to judge by.
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
    predictions = held_out_predictions(
        Steps(step, predict), Partial(start), n_steps, None, X, folds, block_size, None
    )
    costs = costs_of(loss, y[folds.indices], predictions)
    return PathEstimate.of(costs, predictions, folds)
