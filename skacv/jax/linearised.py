"""Rows left out by linearising: derivatives and replicas, all compiled."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from .._any_optimiser.linearised import Derivatives, Expansion, scaled
from .data import equal_weights, rows_of


def in_parts(function, points, size):
    """A function of every point, so many at a time."""
    return jax.lax.map(function, points, batch_size=size)


def hessian(model, unravel, theta, X, y, weights):
    """Hessian of a mean loss: J'l''J, and the curvature of the predictions.

    For linear models that is zero and J is constant, which the compiler finds. The
    product is faster than what differentiating the mean loss twice comes to.
    """

    def predict(theta):
        return model.predict(unravel(theta), X)

    def cost(prediction):
        return weights @ model.loss(y, prediction)

    prediction, move = jax.linearize(predict, theta)
    slopes, bend = jax.linearize(jax.grad(cost), prediction)
    # Parameters first, the layout in which the product is fastest.
    jacobian = jax.vmap(move)(jnp.eye(theta.size, dtype=theta.dtype))
    others = list(range(1, jacobian.ndim))
    curved = jnp.tensordot(jax.vmap(bend)(jacobian), jacobian, (others, others))
    return curved + jax.hessian(lambda at: (slopes * predict(at)).sum())(theta)


DERIVATIVES = Derivatives(jax.grad, jax.jvp, jax.vmap, in_parts, hessian)


def hessian_of(model, params, data):
    """That of the mean loss over all rows."""
    return np.asarray(_hessian(model, params, data))


@partial(jax.jit, static_argnums=0)
def _hessian(model, params, data):
    theta, unravel = ravel_pytree(params)
    weights = equal_weights(model, params, data)
    return hessian(model, unravel, theta, data.X, data.y, weights)


def replayed(model, path, data, due, rows):
    """Predictions of rows by their replicas, (n_steps + 1, n_rows_left_out, ...)."""
    first = jax.tree.map(lambda array: array[0], path)
    try:
        _followed.eval_shape(model, first)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "method='linearised' gives the optimiser gradients alone, and this one "
            "asks for more, as line searches do: take method='exact'."
        ) from error
    return np.asarray(_replayed(model, path, data, due, jnp.asarray(rows)))


@partial(jax.jit, static_argnums=0)
def _followed(model, params):
    return model.follow(model.begin(params), params)


@partial(jax.jit, static_argnums=0)
def _replayed(model, path, data, due, rows):
    first = jax.tree.map(lambda array: array[0], path)
    weights, (_, unravel) = equal_weights(model, first, data), ravel_pytree(first)
    own = rows_of((data.X, data.y), rows[:, None])
    expansion = Expansion(DERIVATIVES, model, unravel, data, weights, rows, own)
    flat = jax.vmap(lambda params: ravel_pytree(params)[0])

    def advance(carry, inputs):
        replicas, known = carry
        t, theta, is_due = inputs
        ends = flat(replicas[0])
        point, missed = ends - theta, 0.0
        own = expansion.of_own(theta, point)
        if due is not None:
            known = jax.lax.cond(
                is_due,
                lambda: (expansion.missed(theta, point, own), point),
                lambda: known,
            )
            missed = scaled(*known, point)
        gradient = expansion.gradients(t, theta, ends, own, missed)
        replicas = jax.vmap(model.follow)(replicas, jax.vmap(unravel)(gradient))
        return (replicas, known), expansion.predicted(ends)

    replicas = jax.vmap(lambda row: model.begin(first))(rows)
    zeros, thetas = jnp.zeros_like(flat(replicas[0])), flat(path)[:-1]
    inputs = jnp.arange(len(thetas)), thetas, due
    (last, _), found = jax.lax.scan(advance, (replicas, (zeros, zeros)), inputs)
    return jnp.concatenate([found, expansion.predicted(flat(last[0]))[None]])
