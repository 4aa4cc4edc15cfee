"""Losses of optax, which take the prediction first, as losses of single rows."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax.numpy as jnp
import optax

from .._any_optimiser.losses import not_called, row_means

# By what the target is: a number for every prediction, or what a row of them is
# compared with.
OF_NUMBERS = (
    optax.losses.squared_error,
    optax.losses.l2_loss,
    optax.losses.huber_loss,
    optax.losses.log_cosh,
    optax.losses.sigmoid_binary_cross_entropy,
    optax.losses.sigmoid_focal_loss,
)
OF_ROWS = (
    optax.losses.softmax_cross_entropy,
    optax.losses.softmax_cross_entropy_with_integer_labels,
)


def row_loss(loss: Any) -> Callable[..., Any]:
    """A loss as ``loss(y, prediction)``, one number a row; those of optax are known.

    Any other function is taken to have these arguments.
    """
    function = loss.func if isinstance(loss, partial) else loss
    if not any(function is one for one in vars(optax.losses).values()):
        return loss
    if function in OF_NUMBERS and not getattr(loss, "args", ()):
        return NumberLoss(loss)
    if function in OF_ROWS and not getattr(loss, "args", ()):
        return RowsLoss(loss)
    raise not_called(function.__name__, "(predictions, targets)")


@dataclass(frozen=True)
class NumberLoss:
    """A loss of optax of numbers, for targets of the predictions' shape."""

    # Equal for the same loss: what is compiled for one is used again.
    loss: Callable

    def __call__(self, y, prediction):
        name = getattr(self.loss, "__name__", "loss")
        y = jnp.asarray(y, prediction.dtype)
        return row_means(name, self.loss, y, prediction)


@dataclass(frozen=True)
class RowsLoss:
    """A loss of optax of all outputs of a row."""

    loss: Callable

    def __call__(self, y, prediction):
        return self.loss(prediction, y)
