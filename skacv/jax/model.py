"""A model, a loss of single rows and an optimiser: what one update is."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import optax


def no_penalty(params):
    """Zero, whatever the parameters."""
    return 0.0


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
        return self.step_on(carry, *data.at_update(t, weights))

    def step_on(self, carry, X, y, own):
        """The same on some rows, whose weights are their own."""
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
