"""Rows left out by linearising: functions of JAX."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

grad, jvp = jax.grad, jax.jvp
cond, ravel = jax.lax.cond, ravel_pytree


def map_rows(function, chunk_size=None):
    """A function of the rows of arrays; in chunks, of the rows of one array."""
    if chunk_size is None:
        return jax.vmap(function)
    return partial(jax.lax.map, function, batch_size=chunk_size)


def hessian(model, unravel, theta, X, y, weights):
    """Hessian of a mean loss: J'l''J, and the curvature of the predictions.

    For linear models that curvature is zero and J is constant, which the compiler
    detects. The product is faster than differentiating the mean loss twice.
    """

    def predict(theta):
        return model.predict(unravel(theta), X)

    def mean_loss(prediction):
        return weights @ model.loss(y, prediction)

    prediction, push_forward = jax.linearize(predict, theta)
    slopes, curvature = jax.linearize(jax.grad(mean_loss), prediction)
    # Parameters first, the layout in which the product is fastest.
    jacobian = jax.vmap(push_forward)(jnp.eye(theta.size, dtype=theta.dtype))
    axes = list(range(1, jacobian.ndim))
    gauss_newton = jnp.tensordot(jax.vmap(curvature)(jacobian), jacobian, (axes, axes))
    return gauss_newton + jax.hessian(lambda at: (slopes * predict(at)).sum())(theta)
