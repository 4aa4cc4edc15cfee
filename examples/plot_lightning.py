"""
A network in Lightning, stopped by folds
========================================

A network with two hidden layers learns the progression of diabetes from ten
measurements. It fits noise after some epochs, so it has to be stopped. Three ways are
compared on the same ten divisions into 300 rows and test rows:

* ``EarlyStopping`` sets aside a fifth of the rows, which the network then lacks;
* ``FoldsCallback`` of skacv trains a copy for each of five folds beside the network,
  which has all rows; the mean loss of their held-out rows stops the trainer;
* no stopping.

The figure shows the first division: the estimate with its standard error, and the loss
on test rows, which the run does not see. The estimate is that of networks with four
fifths of the rows.

It needs ``pip install skacv[torch,plot] lightning``. Run
``python examples/plot_lightning.py --output DIR`` to write the figure.
"""

import logging
import warnings
from pathlib import Path
from time import perf_counter

import lightning
import matplotlib.pyplot as plt
import numpy as np
import torch
from lightning.pytorch.callbacks import EarlyStopping
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale
from torch.utils.data import DataLoader, TensorDataset

from skacv.torch.lightning import FoldsCallback

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Network(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(10, 64),
            torch.nn.ReLU(),
            torch.nn.Linear(64, 64),
            torch.nn.ReLU(),
            torch.nn.Linear(64, 1),
            torch.nn.Flatten(0),
        )

    def training_step(self, batch, batch_idx):
        X, y = batch
        return torch.nn.functional.mse_loss(self.layers(X), y)

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", self.training_step(batch, batch_idx))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-3)


class TestLosses(lightning.Callback):
    """The loss on test rows after every epoch, for the figure."""

    def __init__(self, test):
        self.test, self.losses = test, []

    def on_train_start(self, trainer, module):
        with torch.no_grad():
            self.losses.append(module.training_step(self.test, 0).item())

    on_train_epoch_end = on_train_start


def loader_of(rows):
    return DataLoader(TensorDataset(*rows), batch_size=32, shuffle=True)


def train(max_epochs, loader, held_out=None, callbacks=()):
    """A network trained on the rows of a loader, and the seconds that it took."""
    lightning.seed_everything(0, verbose=False)
    network, begun = Network(), perf_counter()
    trainer = lightning.Trainer(
        max_epochs=max_epochs,
        callbacks=list(callbacks),
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few workers
        trainer.fit(network, loader, held_out)
    return network, trainer.current_epoch, perf_counter() - begun


def compare(rows, test, max_epochs, patience=10):
    """Test loss, epochs and seconds of the three ways, and the callbacks of folds."""
    folds, losses = FoldsCallback(patience=patience), TestLosses(test)
    fitted, held_out = (
        [part[chosen] for part in rows]
        for chosen in train_test_split(
            np.arange(len(rows[0])), test_size=0.2, random_state=0
        )
    )
    early = EarlyStopping("val_loss", patience=patience)
    ways = {
        "a fifth set aside": (loader_of(fitted), loader_of(held_out), [early]),
        "folds": (folds.record_rows(loader_of(rows)), None, [folds, losses]),
        "no stopping": (loader_of(rows), None, []),
    }
    results = {}
    for name, (loader, judged, callbacks) in ways.items():
        network, n_epochs, seconds = train(max_epochs, loader, judged, callbacks)
        with torch.no_grad():
            loss = network.training_step(test, 0).item()
        results[name] = loss, n_epochs, seconds
    return results, folds, losses


def main(n_splits=10, max_epochs=100, output=None):
    """Print the table and draw the figure."""
    X, y = load_diabetes(return_X_y=True)
    X, y = (torch.tensor(scale(part), dtype=torch.float32) for part in (X, y))
    compared = []
    for seed in range(n_splits):
        chosen, others = train_test_split(
            np.arange(len(y)), train_size=300, random_state=seed
        )
        compared.append(
            compare((X[chosen], y[chosen]), (X[others], y[others]), max_epochs)
        )
    print(f"{'diabetes, 300 rows':24}{'test loss':>12}{'epochs':>9}{'seconds':>9}")
    for name in compared[0][0]:
        values = np.array([results[name] for results, *_ in compared])
        loss, n_epochs, seconds = values.mean(axis=0)
        print(f"{name:24}{loss:12.3f}{n_epochs:9.0f}{seconds:9.1f}")
    _, folds, losses = compared[0]
    epochs = np.arange(len(folds.path_))
    figure, ax = plt.subplots(figsize=(6.4, 4))
    band = folds.path_ - folds.se_path_, folds.path_ + folds.se_path_
    ax.fill_between(epochs, *band, alpha=0.2, linewidth=0)
    ax.plot(epochs, folds.path_, label="held-out rows of five folds")
    ax.plot(epochs, losses.losses, color="black", label="test rows")
    best = folds.path_.argmin()
    ax.axvline(best, color="grey", linestyle=":", label="chosen epoch")
    ax.set(xlabel="epoch", ylabel="squared error")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_title("A network in Lightning, stopped by folds", loc="left")
    ax.legend(frameon=False)
    figure.tight_layout()
    if output is not None:
        file = Path(output) / "lightning.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, dpi=120)
        print(f"\nFigure: {file}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
