"""The rows of a run as tensors, with their weights and losses."""

import numpy as np
import torch

from .._any_optimiser.data import Rows


class Data(Rows):
    """Rows, targets and batches of a run: tensors."""

    def of_batch(self, rows, weights):
        rows = torch.as_tensor(rows, device=self.X.device)
        own = weights[..., rows] * (len(self.y) / len(rows))
        return self.X[rows], self.y[rows], own


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


def rows_of(tensor, rows):
    """Some rows of a tensor."""
    return tensor[torch.as_tensor(rows, device=tensor.device)]


def row_losses(loss, y, predictions):
    """Losses of the rows, (n_iterates, n_rows), in float64."""
    y = torch.as_tensor(y)
    predictions = torch.as_tensor(predictions).to(y.device)
    with torch.no_grad():
        losses = torch.stack([loss(y, each) for each in predictions])
    return losses.numpy(force=True).astype(np.float64)
