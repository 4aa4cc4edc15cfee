"""
A network of skorch, stopped by folds
=====================================

A network of one hidden layer, with dropout, learns the ten digits from 600 of the
drawings that ship with scikit-learn. A tenth of the labels is drawn anew, so that a
network that trains for too long learns wrong ones. Five copies, each trained on four
fifths of the drawings with the same settings, grow beside it epoch by epoch. Their mean
log loss on the drawings that they have not seen chooses the epoch, and the network of
this epoch, trained on all 600 drawings, is kept. The black line is its loss on all
other drawings, more than a thousand: the chosen epoch is among the best for them. The
estimate is somewhat larger, because the copies are trained on fewer drawings.

Usually a network of skorch is stopped by a fifth of the drawings, set aside
(``EarlyStopping``). It has a fifth fewer to learn from, and one small set to judge by:
its loss on the other drawings is larger, as a mean over three draws. That of the
network after all epochs is larger still.

It needs ``pip install "skacv[torch,plot]" skorch``. Run
``python examples/plot_skorch.py --output DIR`` to write the figure.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from skorch import NeuralNetClassifier
from skorch.callbacks import EarlyStopping
from skorch.toy import MLPModule

from skacv import TrajectoryEarlyStoppingCV

LABEL_NOISE = 0.1


def net_of(max_epochs):
    return NeuralNetClassifier(
        MLPModule,
        module__input_units=64,
        module__hidden_units=64,
        module__output_units=10,
        module__dropout=0.2,
        criterion=torch.nn.CrossEntropyLoss,
        optimizer=torch.optim.Adam,
        lr=0.003,
        batch_size=32,
        max_epochs=max_epochs,
        verbose=0,
    )


def draw_rows(n_rows, seed):
    """Drawings to learn from, and all others; some labels of both are wrong."""
    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(np.float32)
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(len(y)) < LABEL_NOISE, rng.integers(10, size=len(y)), y)
    return train_test_split(X, y, train_size=n_rows, random_state=seed, stratify=y)


def fit_all(n_rows, max_epochs, seed):
    """The network stopped by folds, and what each way has: epochs and test loss."""
    X, X_test, y, y_test = draw_rows(n_rows, seed)
    net = net_of(max_epochs)
    torch.manual_seed(seed)
    stopped = TrajectoryEarlyStoppingCV(net, patience=None).fit(X, y)
    torch.manual_seed(seed)
    usual = EarlyStopping(patience=10, load_best=True)
    usual_net = clone(net).set_params(callbacks=[usual]).fit(X, y)
    test = stopped.estimator_.staged_loss(X_test, y_test)
    usual_loss = log_loss(y_test, usual_net.predict_proba(X_test))
    chosen = stopped.best_iter_
    results = {
        "stopped by folds": (chosen, test[chosen - 1]),
        "stopped by a fifth": (usual.best_epoch_, usual_loss),
        "all epochs": (max_epochs, test[-1]),
        "best epoch in hindsight": (test.argmin() + 1, test.min()),
    }
    return stopped, test, results


def draw(stopped, test):
    """The held-out curve, and the loss on all other drawings."""
    figure, ax = plt.subplots(figsize=(7, 4.4), constrained_layout=True)
    epochs, chosen = np.arange(1, len(test) + 1), stopped.best_iter_
    path = stopped.path_[1:]
    error = stopped.estimator_.cv_se_path_[1:]
    band = {"color": "#0072B2", "alpha": 0.2, "linewidth": 0}
    label = "one standard error"
    ax.fill_between(epochs, path - error, path + error, label=label, **band)
    ax.plot(epochs, path, color="#0072B2", label="held-out drawings of five folds")
    ax.plot(epochs, test, color="#000000", label="all other drawings")
    label = f"chosen epoch, {chosen}"
    ax.axvline(chosen, color="grey", linestyle="--", linewidth=1, label=label)
    # The first epochs, which all settings share, would hide the rest.
    ax.set_ylim(0.9 * test.min(), 2 * test.min())
    ax.set_xlabel("epoch")
    ax.set_ylabel("log loss")
    ax.set_title("A network of skorch, stopped by folds", loc="left")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def main(n_rows=600, max_epochs=50, n_splits=3, output=None):
    """Print the table and draw the figure."""
    runs = [fit_all(n_rows, max_epochs, seed) for seed in range(n_splits)]
    print(f"Log loss on the other drawings, means over {n_splits} draws of {n_rows}:\n")
    print(f"{'':26}{'epoch':>8}{'log loss':>12}")
    for name in runs[0][2]:
        epoch, loss = np.mean([results[name] for *_, results in runs], axis=0)
        print(f"{name:26}{epoch:8.0f}{loss:12.4f}")
    expected = np.mean([stopped.best_score_ for stopped, *_ in runs])
    print(f"{'expected by the folds':26}{'':8}{expected:12.4f}")
    figure = draw(*runs[0][:2])
    if output is not None:
        file = Path(output) / "skorch.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, dpi=120)
        print(f"\nFigure: {file}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
