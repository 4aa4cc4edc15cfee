"""Losses of torch, which take the prediction first, as losses of single rows."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from .._any_optimiser.losses import not_called, row_means

# Modules, and the functions that they call, by what the target is: a number for every
# prediction, or the number of a class.
OF_NUMBERS = {
    torch.nn.MSELoss: functional.mse_loss,
    torch.nn.L1Loss: functional.l1_loss,
    torch.nn.SmoothL1Loss: functional.smooth_l1_loss,
    torch.nn.HuberLoss: functional.huber_loss,
    torch.nn.PoissonNLLLoss: functional.poisson_nll_loss,
    torch.nn.BCELoss: functional.binary_cross_entropy,
    torch.nn.BCEWithLogitsLoss: functional.binary_cross_entropy_with_logits,
}
OF_CLASSES = {
    torch.nn.CrossEntropyLoss: functional.cross_entropy,
    torch.nn.NLLLoss: functional.nll_loss,
}
KNOWN = OF_NUMBERS | OF_CLASSES
# Others of torch have other arguments, or targets of -1 and 1.
OTHERS = [
    value
    for name, value in vars(functional).items()
    if (name.endswith("_loss") or name == "kl_div") and value not in KNOWN.values()
]


def row_loss(loss: Any) -> Callable[..., Any]:
    """A loss as ``loss(y, prediction)``, one number a row; those of torch are known.

    Any other function is taken to have these arguments.
    """
    function = loss.func if isinstance(loss, partial) else loss
    is_module = type(function).__module__ == torch.nn.MSELoss.__module__
    is_function = any(function is one for one in (*KNOWN.values(), *OTHERS))
    if not (is_module or is_function):
        return loss
    settings = loss.keywords if isinstance(loss, partial) else {}
    if is_module:
        settings = {
            "reduction": loss.reduction,
            "weight": getattr(loss, "weight", None),
        }
    name = type(loss).__name__ if is_module else function.__name__
    kind = type(loss) if is_module else function
    is_of_numbers = kind in {*OF_NUMBERS, *OF_NUMBERS.values()}
    is_of_classes = kind in {*OF_CLASSES, *OF_CLASSES.values()}
    if not (is_of_numbers or is_of_classes) or getattr(loss, "args", ()):
        raise not_called(name, "(input, target)")
    reduction = settings.get("reduction", "mean")
    if reduction == "sum":
        raise ValueError(
            f"{name} with reduction='sum' grows with the number of rows, and runs "
            "minimise a mean over rows: use reduction='mean'."
        )
    if settings.get("weight") is not None and (reduction == "mean" or is_of_numbers):
        raise ValueError(
            f"{name} with weight= is not a mean of per-row losses: pass a function, "
            "loss(y, prediction), that multiplies them."
        )
    if is_module:
        by_row = copy(loss)
        by_row.reduction = "none"
    else:
        by_row = partial(loss, reduction="none")
    return ClassLoss(name, by_row) if is_of_classes else NumberLoss(name, by_row)


@dataclass(frozen=True, eq=False)
class NumberLoss:
    """A loss of torch of numbers, for targets of the predictions' shape."""

    name: str
    loss: Callable

    def __call__(self, y, prediction):
        return row_means(self.name, self.loss, y.to(prediction.dtype), prediction)


@dataclass(frozen=True, eq=False)
class ClassLoss:
    """A loss of torch for numbers of classes."""

    name: str
    loss: Callable

    def __call__(self, y, prediction):
        if prediction.ndim != 2:
            raise ValueError(
                f"{self.name} needs a number for every class and row, but predictions "
                f"have shape {tuple(prediction.shape)}: with one number for two "
                "classes use BCEWithLogitsLoss."
            )
        return self.loss(prediction, y if y.is_floating_point() else y.long())
