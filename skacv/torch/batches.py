"""The rows of the batches that a loader draws, and batches of some of their rows."""

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader


class RecordedBatches:
    """The batch sampler of a loader, which notes the rows of the batches of an epoch.

    Batches come in the order in which their rows were drawn, also from workers and
    where some are loaded ahead.
    """

    def __init__(self, batch_sampler: Any) -> None:
        self._batch_sampler = batch_sampler
        self.rows: deque = deque()

    def __iter__(self):
        self.rows.clear()  # of batches that the epoch before drew and did not use
        for rows in self._batch_sampler:
            rows = list(rows)
            self.rows.append(np.array(rows))
            yield rows

    def __len__(self):
        return len(self._batch_sampler)

    def __getattr__(self, name):
        # Trainers ask for drop_last, sampler and set_epoch.
        if name == "_batch_sampler":  # before __init__, when it is copied
            raise AttributeError(name)
        return getattr(self._batch_sampler, name)


def record_rows(loader: Any) -> RecordedBatches:
    """Make a loader note the rows of its batches; return what notes them."""
    batch_sampler = getattr(loader, "batch_sampler", None)
    if isinstance(batch_sampler, RecordedBatches):
        return batch_sampler
    if batch_sampler is None:
        raise ValueError(
            "Folds need a DataLoader that draws batches of numbered rows, and "
            f"{type(loader).__name__} of {type(loader.dataset).__name__} draws none: "
            "use a dataset with __getitem__ and __len__, and a batch_size."
            if isinstance(loader, DataLoader)
            else f"Folds need a torch DataLoader, got {type(loader).__name__}."
        )
    # A loader that has been created lets nobody set this attribute.
    vars(loader)["batch_sampler"] = recorded = RecordedBatches(batch_sampler)
    return recorded


def take_rows(batch: Any, rows: torch.Tensor, n_rows: int) -> Any:
    """Some rows of a batch: of its tensors and arrays, and of lists with a row each.

    Parameters
    ----------
    batch : Tensor, ndarray, or mapping, list or tuple of these
        What a loader returns.
    rows : Tensor of int
        Their places in the batch.
    n_rows : int
        Number of rows of the batch.

    Returns
    -------
    object
        Of the type of ``batch``.
    """
    if isinstance(batch, torch.Tensor | np.ndarray) and batch.ndim:
        if len(batch) == n_rows:
            where = rows.to(batch.device) if torch.is_tensor(batch) else rows.numpy()
            return batch[where]
    elif isinstance(batch, Mapping):
        parts = {name: take_rows(part, rows, n_rows) for name, part in batch.items()}
        return parts if type(batch) is dict else type(batch)(parts)
    elif isinstance(batch, list | tuple):
        is_of_rows = len(batch) == n_rows and not any(
            isinstance(part, torch.Tensor | np.ndarray | Mapping | list | tuple)
            for part in batch
        )
        if is_of_rows:
            parts = [batch[row] for row in rows.tolist()]
        else:
            parts = [take_rows(part, rows, n_rows) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    elif batch is None or isinstance(batch, bool | int | float | str):
        return batch
    shape = getattr(batch, "shape", None)
    what = type(batch).__name__ if shape is None else f"an array of shape {shape}"
    raise ValueError(
        f"A batch of {n_rows} rows holds {what}, whose rows are not known: pass "
        "take_rows, a function (batch, rows) that returns a batch of some rows."
    )
