"""One epoch of a DataLoader."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch


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
    X, y = (torch.cat([part[place] for part in parts]) for place in range(2))
    sizes = [len(target) for _, target in parts]
    return X, y, [rows.numpy() for rows in torch.arange(len(y)).split(sizes)]
