"""The rows of a run as tensors, and what they weigh and cost."""

from dataclasses import dataclass

import numpy as np
import torch

from .._any_optimiser.batches import checked_batches
from .._any_optimiser.checks import (
    check_data,
    check_loss,
    check_parameters,
    check_rows_are_independent,
)
from .._any_optimiser.folds import Folds
from .._compat import check_in_memory


@dataclass(frozen=True)
class Data:
    """What a run is on.

    Attributes
    ----------
    X, y : Tensor of n_rows rows
    batches : list of Tensor, or None
        Rows of every update, gone through again and again; None is all rows.
    """

    X: torch.Tensor
    y: torch.Tensor
    batches: list | None

    def at_update(self, t, weights):
        """X, y and the rows' weights, (..., n_batch), of update ``t``."""
        return self.on(self.rows_at(t), weights)

    def rows_at(self, t):
        """Rows of update ``t``; None is all."""
        return None if self.batches is None else self.batches[t % len(self.batches)]

    def on(self, rows, weights):
        """The same of some rows; None is all.

        A batch weighs as much as all rows: what is left of it in a replica estimates
        the mean over all rows that are left, without bias.
        """
        if rows is None:
            return self.X, self.y, weights
        own = weights[..., rows] * (len(self.y) / len(rows))
        return self.X[rows], self.y[rows], own


def checked(model, X, y, batches=None):
    """Where a run starts, and its data, once they are what they must be.

    Returns
    -------
    start : dict of str to Tensor
    data : Data
    """
    start = model.start()
    check_parameters({name: str(value.dtype) for name, value in start.items()})
    check_in_memory(X, y)
    X, y = as_tensors(next(iter(start.values())), X, y)
    check_data([X.numpy(force=True)], y.numpy(force=True))
    batches = checked_batches(batches, len(y))
    if batches is not None:
        batches = [torch.as_tensor(rows, device=X.device) for rows in batches]
    with torch.no_grad():
        prediction = model.predict(start, X)
        check_loss(model.loss(y, prediction).shape, len(y), prediction.shape)
        half = len(y) - len(y) // 2
        alone = model.predict(start, X[:half]).numpy(force=True)
    check_rows_are_independent(alone, prediction[:half].numpy(force=True))
    return start, Data(X, y, batches)


def as_tensors(like, *arrays):
    """Tensors on the device of another, and in its precision if they have one."""
    tensors = [_tensor(array).to(like.device) for array in arrays]
    return [
        each.to(like.dtype) if each.is_floating_point() else each for each in tensors
    ]


def _tensor(array):
    """A tensor as it is; of all else a copy, which nobody changes in place."""
    is_tensor = isinstance(array, torch.Tensor)
    return array.detach() if is_tensor else torch.tensor(np.asarray(array))


def equal_weights(params, data):
    """The rows' weights in the mean over all of them, in the parameters' precision."""
    like, n_rows = next(iter(params.values())), len(data.y)
    return torch.full((n_rows,), 1 / n_rows, dtype=like.dtype, device=like.device)


def folds_of(folds, data):
    """The folds that a user has named, of some data."""
    y = data.y.numpy(force=True)
    return Folds.of(folds, np.zeros((len(y), 0)), y)


def costs_of(loss, y, predictions):
    """What rows cost, (n_iterates, n_rows), in float64."""
    with torch.no_grad():
        costs = torch.stack([loss(y, each) for each in predictions])
    return costs.numpy(force=True).astype(np.float64)
