"""What do folds beside a trainer cost, in seconds and memory?

Needs what ``make bench-trainers`` installs. On one thread. Lightning trains each
network for some epochs: alone, with five folds, and six times alone, on all rows and
without each fold, which is what people do who want held-out rows of all folds. The
memory is that of all tensors after the last update. Last, a loop of one's own: its
updates with five replicas, which share a call (``alongside``), over those without.
"""

import gc
import logging
import warnings

import lightning
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import KFold
from torch.utils.data import DataLoader, Subset, TensorDataset

from skacv.torch import TrajectoryACV
from skacv.torch.lightning import FoldsCallback

from .framework import Row, arguments, medians, report

N_EPOCHS, BATCH_SIZE, REPEATS = 3, 64, 5
FOLDS = list(KFold(5, shuffle=True, random_state=0).split(np.zeros(1797)))
LIBRARIES = "torch", "lightning"


def perceptron():
    return torch.nn.Sequential(
        torch.nn.Flatten(),
        torch.nn.Linear(64, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 10),
    )


def convolution():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 32, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(512, 10),
    )


def head():
    """A new head on a large body that is not trained."""
    body = torch.nn.Sequential(
        torch.nn.Flatten(),
        torch.nn.Linear(64, 2048),
        torch.nn.ReLU(),
        torch.nn.Linear(2048, 2048),
        torch.nn.ReLU(),
        torch.nn.Linear(2048, 768),
    )
    return torch.nn.Sequential(body.requires_grad_(False), torch.nn.Linear(768, 10))


NETWORKS = {
    "MLP, 9,000 parameters": perceptron,
    "convolutions, 10,000 parameters": convolution,
    "head on a frozen body": head,
}


class Module(lightning.LightningModule):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def training_step(self, batch, batch_idx):
        X, y = batch
        return torch.nn.functional.cross_entropy(self.network(X), y)

    def configure_optimizers(self):
        return torch.optim.Adam(
            [p for p in self.parameters() if p.requires_grad], lr=1e-3
        )


class Memory(lightning.Callback):
    """Bytes of all tensors after the last update."""

    def on_train_end(self, trainer, module):
        tensors = [x for x in gc.get_objects() if isinstance(x, torch.Tensor)]
        tensors += [x.grad for x in tensors if x.is_leaf and x.grad is not None]
        storages = {x.untyped_storage().data_ptr(): x for x in tensors}
        self.n_bytes = sum(x.untyped_storage().nbytes() for x in storages.values())


def train(make, data, *callbacks, folds=None):
    """A new network after some epochs."""
    torch.manual_seed(0)
    loader = DataLoader(data, batch_size=BATCH_SIZE, shuffle=True)
    if folds is not None:
        loader, callbacks = folds.record_rows(loader), (*callbacks, folds)
    trainer = lightning.Trainer(
        max_epochs=N_EPOCHS,
        callbacks=list(callbacks),
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(make()), loader)


def with_folds(make, data, *callbacks):
    train(make, data, *callbacks, folds=FoldsCallback(FOLDS, patience=None))


def one_by_one(make, data):
    """Trainers without each fold, and one with all rows."""
    for rows, _ in FOLDS:
        train(make, Subset(data, rows))
    train(make, data)


def memory_of(run, make, data):
    gc.collect()
    memory = Memory()
    run(make, data, memory)
    return memory.n_bytes / 2**20


def loop(make, data, has_replicas):
    """Updates of a loop of one's own, which seconds are measured of."""
    X, y = data.tensors
    network = make()
    trained = [p for p in network.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=1e-3)

    def losses(y, decisions):
        return torch.nn.functional.cross_entropy(decisions, y, reduction="none")

    live = None
    if has_replicas:
        acv = TrajectoryACV(network, losses, lambda p: torch.optim.Adam(p, lr=1e-3))
        live = acv.alongside(X, y, FOLDS, every=10**6)
    generator = torch.Generator().manual_seed(0)

    def update():
        for _ in range(50):
            rows = torch.randint(len(y), (BATCH_SIZE,), generator=generator)
            optimizer.zero_grad()
            losses(y[rows], network(X[rows])).mean().backward()
            optimizer.step()
            if live is not None:
                live.step(rows)

    return update


def rows():
    X, y = load_digits(return_X_y=True)
    images = torch.tensor(X / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
    data = TensorDataset(images, torch.tensor(y))
    for name, make in NETWORKS.items():
        works = [
            lambda run=run, make=make: run(make, data)
            for run in (train, with_folds, one_by_one)
        ]
        (alone, _), (ours, _), (separate, _) = medians(*works, repeats=REPEATS)
        against = "Lightning's trainer without folds"
        work = f"{N_EPOCHS} epochs with five folds, {name}"
        yield "seconds", Row.cost(work, against, ours, alone)
        yield "seconds", Row.speed(work, "six trainers in turn", ours, separate)
        megabytes = [memory_of(run, make, data) for run in (with_folds, train)]
        yield "megabytes", Row.cost(work, against, *megabytes)
        works = [loop(make, data, has_replicas) for has_replicas in (True, False)]
        (ours, _), (alone, _) = medians(*works, repeats=REPEATS)
        work = f"50 updates of a loop, five replicas beside it, {name}"
        yield "seconds", Row.cost(work, "the loop alone", ours, alone)


if __name__ == "__main__":
    args = arguments(__doc__)
    torch.set_num_threads(1)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")  # of few workers
    report("Folds beside trainers", rows(), args.output, LIBRARIES)
