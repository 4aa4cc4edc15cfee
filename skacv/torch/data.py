"""The rows of a run as tensors, with their weights and losses; a loader, read once."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from .._any_optimiser.data import RunRows


class TensorRows(RunRows):
    """Rows, targets and batches of a run: tensors."""

    def take_batch(self, rows, weights):
        rows = torch.as_tensor(rows, device=self.X.device)
        weights = weights[..., rows] * (len(self.y) / len(rows))
        return self.X[rows], self.y[rows], weights


def as_tensors(like, *arrays):
    """Copies on the device of a tensor, and in its precision if they have one."""
    tensors = []
    for array in arrays:
        if isinstance(array, torch.Tensor) and array.layout != torch.strided:
            raise TypeError(
                "A sparse tensor has no rows that can be weighted individually: pass "
                "X.to_dense(), or for a linear model a SciPy matrix to "
                "TrajectoryRegressor or TrajectoryLogisticRegression."
            )
        if isinstance(array, torch.Tensor):
            # The user may change the original in place.
            tensor = array.detach().to(like.device, copy=True)
        else:
            tensor = torch.tensor(np.asarray(array), device=like.device)
        if tensor.is_floating_point():
            tensor = tensor.to(like.dtype)
        tensors.append(tensor)
    return tensors


def losses_on(loss, y, predictions):
    """Losses of the rows, (n_iterates, n_rows), in float64."""
    y = torch.as_tensor(y)
    predictions = torch.as_tensor(predictions).to(y.device)
    with torch.no_grad():
        losses = torch.stack([loss(y, prediction) for prediction in predictions])
    return losses.numpy(force=True).astype(np.float64)


def draw(loader: Iterable[Any]) -> tuple[torch.Tensor, torch.Tensor, list[np.ndarray]]:
    """The rows of a DataLoader in the order of one epoch.

    A loader that shuffles would give different batches to the runs without a fold, and
    to repetitions of the run. Drawn once, they are the same for all.

    Parameters
    ----------
    loader : iterable of (X, y)
        Batches of tensors.

    Returns
    -------
    X, y : Tensor of n_rows rows
    batches : list of ndarray of int
        Rows of every batch, for ``batches`` of a run, which repeats them cyclically.

    Examples
    --------
    >>> import torch
    >>> from skacv.torch import draw
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> data = TensorDataset(torch.randn(10, 2), torch.randn(10))
    >>> X, y, batches = draw(DataLoader(data, batch_size=4, shuffle=True))
    >>> X.shape, [len(rows) for rows in batches]
    (torch.Size([10, 2]), [4, 4, 2])
    """
    parts = list(loader)
    X, y = (torch.cat(batches) for batches in zip(*parts))
    sizes = [len(target) for _, target in parts]
    return X, y, [rows.numpy() for rows in torch.arange(len(y)).split(sizes)]
