"""Rows left out one by one, the gradients of their replicas expanded around the run.

Iterative approximate cross-validation (Luo, Ren & Barber 2023), of any optimiser: a
replica stays near the recorded run, so at theta + d the gradient of its mean loss is
about

    c (gradient + H d - w_i (gradient_i + H_i d) + C_i),

with gradients and Hessians of all rows and of the row left out at the recorded theta, c
= 1 / (1 - w_i), and C_i what this misses, evaluated now and then over all rows
(:mod:`skacv.risk.left_out.correction`). The gradient of the penalty is exact, and the
optimiser is run as it is: only gradients of the loss are expanded.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from .._any_optimiser.folds import at_a_time
from .._any_optimiser.linearised import (
    BLOCK_BYTES,
    check_convex,
    check_size,
    due_updates,
    looked_at,
)
from ..risk.left_out.correction import LARGEST_SCALE
from .data import equal_weights, rows_of


def check_linearisable(run):
    """Raise where linearising would estimate nothing, or ask too much.

    Parameters
    ----------
    run : Run

    Raises
    ------
    ValueError
        If there are too many parameters, the mean loss is not convex, or the optimiser
        asks for more than gradients.
    """
    model, start = run._model, run.at_iteration(0)
    check_size(ravel_pytree(start)[0].size)
    for t in looked_at(run.n_steps):
        check_convex(np.asarray(_hessian(model, run.at_iteration(t), run._data)))
    _check_optimizer(model, start)


def linearised_predictions(run, folds, correction, block_size):
    """Predictions of rows by linearised replicas without them, each left out alone.

    Parameters
    ----------
    run : Run
        As :func:`check_linearisable` asks for.
    folds : Folds
        Folds of single rows.
    correction : bool
    block_size : int or None

    Returns
    -------
    ndarray of shape (n_steps + 1, n_rows_left_out, ...)
    """
    due = jnp.asarray(due_updates(run.n_steps)) if correction else None
    found = []
    for block, n_own in folds.blocks(block_size, BLOCK_BYTES):
        rows = jnp.asarray(block.indices)
        part = _replayed(run._model, run._data, run.params_path, due, rows)
        found.append(np.asarray(part)[:, :n_own])
    return np.concatenate(found, axis=1)


def _check_optimizer(model, params):
    try:
        _followed.eval_shape(model, params)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "method='linearised' gives the optimiser gradients alone, and this one "
            "asks for more, as line searches do: take method='exact'."
        ) from error


@partial(jax.jit, static_argnums=0)
def _followed(model, params):
    return model.follow(model.start(params), params)


@partial(jax.jit, static_argnums=0)
def _hessian(model, params, data):
    theta, unravel = ravel_pytree(params)
    weights = equal_weights(model, params, data)
    expansion = Expansion(model, unravel, data, weights)
    return expansion.hessian(theta, data.X, data.y, weights)


class Expansion(NamedTuple):
    """Gradients of mean losses to first order, with parameters as one vector.

    Attributes
    ----------
    model : Model
    unravel : callable
        From a vector to the parameters.
    data : Data
    weights : array of shape (n_rows,)
    rows : int array of shape (n_replicas,)
        That each leaves out.
    own : tuple
        X and y of these rows, each with an axis of length one.
    """

    model: object
    unravel: object
    data: object
    weights: jax.Array
    rows: jax.Array | None = None
    own: tuple | None = None

    def mean_loss(self, theta, X, y, weights):
        return self.model.mean_loss(self.unravel(theta), X, y, weights)

    def hessian(self, theta, X, y, weights):
        """Hessian of a mean loss: J'l''J, and the curvature of the predictions.

        For linear models that is zero and J is constant, which the compiler finds. The
        product is faster than what differentiating the mean loss twice comes to.
        """

        def predict(theta):
            return self.model.predict(self.unravel(theta), X)

        def cost(prediction):
            return weights @ self.model.loss(y, prediction)

        prediction, move = jax.linearize(predict, theta)
        slopes, bend = jax.linearize(jax.grad(cost), prediction)
        # Parameters first, the layout in which the product is fastest.
        jacobian = jax.vmap(move)(jnp.eye(theta.size, dtype=theta.dtype))
        others = list(range(1, jacobian.ndim))
        curved = jnp.tensordot(jax.vmap(bend)(jacobian), jacobian, (others, others))
        return curved + jax.hessian(lambda at: (slopes * predict(at)).sum())(theta)

    def expanded(self, theta, point, X, y, weights):
        """Gradients at theta + d for every replica, (n_replicas, n_parameters)."""
        gradient = jax.grad(self.mean_loss)(theta, X, y, weights)
        return gradient + point @ self.hessian(theta, X, y, weights)

    def of_own(self, theta, point):
        """The same of what the row costs that each leaves out."""
        one = jnp.ones(1, theta.dtype)

        def expanded(d, X, y):
            gradient = jax.grad(lambda at: self.mean_loss(at, X, y, one))
            return sum(jax.jvp(gradient, (theta,), (d,)))

        return jax.vmap(expanded)(point, *self.own)

    def missed(self, theta, point, own):
        """What expanding misses of the gradients over all rows but the one left out."""
        X, y, weights = self.data.X, self.data.y, self.weights
        one = jnp.ones(1, theta.dtype)

        def exact(d):
            return jax.grad(self.mean_loss)(theta + d, X, y, weights)

        def exact_of_own(d, X, y):
            return jax.grad(self.mean_loss)(theta + d, X, y, one)

        found = jax.lax.map(exact, point, batch_size=at_a_time(self.data.n_rows))
        found -= weights[0] * jax.vmap(exact_of_own)(point, *self.own)
        return found - self.expanded(theta, point, X, y, weights) + weights[0] * own

    def at_update(self, t, theta, point, own):
        """Gradients at update ``t``, on its rows, but for their scale."""
        X, y, weights = self.data.at_update(t, self.weights)
        share = self.weights[0]
        if self.data.batches is not None:
            places = self.data.rows_at(t) == self.rows[:, None]
            share = (places @ weights)[:, None]
        return self.expanded(theta, point, X, y, weights) - share * own


def _scaled(missed, at, point):
    """What was missed at some deviations, at others: it is of second order in them."""
    squares = (at**2).sum(axis=1)
    ratio = (at * point).sum(axis=1) / jnp.where(squares == 0, jnp.inf, squares)
    return missed * jnp.minimum(ratio**2, LARGEST_SCALE)[:, None]


@partial(jax.jit, static_argnums=0)
def _replayed(model, data, path, due, rows):
    """Predictions of rows by their replicas, (n_steps + 1, n_rows_left_out, ...).

    ``due`` tells at which updates they are corrected; None is never.
    """
    first = jax.tree.map(lambda array: array[0], path)
    weights, (_, unravel) = equal_weights(model, first, data), ravel_pytree(first)
    own_rows = rows_of((data.X, data.y), rows[:, None])
    expansion = Expansion(model, unravel, data, weights, rows, own_rows)
    flat = jax.vmap(lambda params: ravel_pytree(params)[0])

    def predicted(replicas):
        return jax.vmap(model.predict)(replicas[0], own_rows[0])[:, 0]

    def advance(carry, inputs):
        replicas, known = carry
        t, theta, is_due = inputs
        point = flat(replicas[0]) - theta
        own = expansion.of_own(theta, point)
        gradient = expansion.at_update(t, theta, point, own)
        if due is not None:
            known = jax.lax.cond(
                is_due,
                lambda: (expansion.missed(theta, point, own), point),
                lambda: known,
            )
            gradient += _scaled(*known, point)
        gradient = jax.vmap(unravel)(gradient / (1 - weights[0]))
        penalty = jax.vmap(jax.grad(model.penalty))(replicas[0])
        total = jax.tree.map(jnp.add, gradient, penalty)
        return (jax.vmap(model.follow)(replicas, total), known), predicted(replicas)

    replicas = jax.vmap(lambda row: model.start(first))(rows)
    zeros, thetas = jnp.zeros_like(flat(replicas[0])), flat(path)[:-1]
    inputs = jnp.arange(len(thetas)), thetas, due
    (last, _), found = jax.lax.scan(advance, (replicas, (zeros, zeros)), inputs)
    return jnp.concatenate([found, predicted(last)[None]])
