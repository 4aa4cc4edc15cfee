"""Cross-validation of any step that a user writes: exact, by replicas."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from .._any_optimiser.estimates import PathEstimate
from .._any_optimiser.folds import Folds
from .data import JaxRows, as_arrays, path_losses, take_rows
from .losses import row_loss
from .model import JaxBackend, scan


@dataclass(frozen=True)
class UserSteps:
    """A user's updates, with the interface of :class:`skacv.jax.model.JaxBackend`."""

    update: Callable
    prediction: Callable

    def begin_replicas(self, start, weights):
        return jax.vmap(start)(weights)

    def step_replicas(self, carry, X, y, weights):
        return jax.vmap(self.update)(carry, weights)

    def predictions(self, carry, X):
        return jax.vmap(self.prediction)(carry, X)

    scan = staticmethod(scan)
    rows_of = staticmethod(take_rows)
    held_out = JaxBackend.held_out


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
        ``loss(y, prediction)``, one number a row; usual losses of optax are known.
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
    loss = row_loss(loss)
    folds = Folds.of(folds, np.asarray(y))
    model, start, data = UserSteps(step, predict), Partial(start), JaxRows(X, y, None)

    def held_out(weights, rows):
        weights = jnp.asarray(weights)
        return np.asarray(model.held_out(n_steps, start, data, weights, rows))

    predictions = folds.predict_by_block(held_out, block_size)
    losses = path_losses(loss, y[folds.indices], predictions)
    return PathEstimate.of(losses, predictions, folds)
