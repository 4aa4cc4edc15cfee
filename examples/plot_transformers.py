"""
A transformer for sentences, stopped by folds
=============================================

The first sentences of the documentation of NumPy, SciPy and scikit-learn are told apart
by a small transformer, which learns words from these sentences alone. Two ways of
stopping are compared on the same divisions into 400 sentences and test sentences:

* ``EarlyStoppingCallback`` of transformers evaluates a fifth of the sentences, which
  are set aside, and the best checkpoint is loaded;
* ``FoldsCallback`` of skacv trains a copy for each of five folds beside the model,
  which has all sentences; the mean loss on their held-out sentences stops the trainer.

The figure shows the first division: the estimate with its standard error, and the loss
on test sentences, which the run does not see.

It needs ``pip install skacv[torch,plot] transformers accelerate``. Run
``python examples/plot_transformers.py --output DIR`` to write the figure.
"""

import re
import tempfile
from collections import Counter
from inspect import getdoc
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.stats
import sklearn.cluster
import sklearn.decomposition
import sklearn.linear_model
import sklearn.metrics
import sklearn.preprocessing
import torch
import transformers
from sklearn.model_selection import train_test_split

from skacv.torch.transformers import FoldsCallback

MODULES = (
    (np, np.linalg, np.random),
    (scipy.linalg, scipy.optimize, scipy.signal, scipy.stats),
    (
        sklearn.cluster,
        sklearn.decomposition,
        sklearn.linear_model,
        sklearn.metrics,
        sklearn.preprocessing,
    ),
)
LENGTH = 16


def read_sentences(n_words=500):
    """The first sentences of documentation, as numbers of words, and their package."""
    sentences, packages = [], []
    for package, modules in enumerate(MODULES):
        documented = {
            (getdoc(getattr(module, name)) or "").split("\n\n")[0]
            for module in modules
            for name in module.__all__
        }
        for text in sorted(documented):
            if words := re.findall(r"[a-z]+", text.lower()):
                sentences.append(words[:LENGTH])
                packages.append(package)
    counts = Counter(word for words in sentences for word in words)
    common = [word for word, _ in counts.most_common(n_words)]
    numbers = {word: number for number, word in enumerate(common, start=2)}
    rows = []
    for words, package in zip(sentences, packages):
        ids = [numbers.get(word, 1) for word in words]
        ids += [0] * (LENGTH - len(ids))
        mask = [int(number > 0) for number in ids]
        rows.append({"input_ids": ids, "attention_mask": mask, "labels": package})
    return rows


def new_trainer(rows, folder, max_epochs, judged=None):
    """A trainer of a new model."""
    transformers.set_seed(0)
    config = transformers.BertConfig(
        vocab_size=502,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=LENGTH,
        num_labels=len(MODULES),
    )
    model = transformers.BertForSequenceClassification(config)
    checkpoints = {"save_strategy": "no"}
    if judged is not None:
        checkpoints = {
            "save_strategy": "epoch",
            "eval_strategy": "epoch",
            "load_best_model_at_end": True,
            "save_total_limit": 2,
        }
    arguments = transformers.TrainingArguments(
        folder,
        num_train_epochs=max_epochs,
        learning_rate=2e-3,
        lr_scheduler_type="constant",
        per_device_train_batch_size=32,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        logging_strategy="no",
        **checkpoints,
    )
    trainer = transformers.Trainer(
        model, arguments, train_dataset=rows, eval_dataset=judged
    )
    trainer.remove_callback(transformers.PrinterCallback)
    return trainer


class TestLosses(transformers.TrainerCallback):
    """The loss on test sentences after every epoch, for the figure."""

    def __init__(self, trainer, test):
        self.trainer, self.test, self.losses = trainer, test, []

    def on_train_begin(self, args, state, control, **kwargs):
        self.losses.append(self.trainer.predict(self.test).metrics["test_loss"])

    on_epoch_end = on_train_begin


def judge(trainer, test):
    """Train; return loss and share of errors on test sentences, epochs, seconds."""
    begun = perf_counter()
    trainer.train()
    seconds = perf_counter() - begun
    found = trainer.predict(test)
    wrong = np.mean(found.predictions.argmax(axis=1) != found.label_ids)
    return found.metrics["test_loss"], 100 * wrong, trainer.state.epoch, seconds


def compare(rows, test, max_epochs, folder, patience=3):
    """The two ways, and the callbacks of folds."""
    fitted, judged = train_test_split(rows, test_size=0.2, random_state=0)
    trainer = new_trainer(fitted, folder, max_epochs, judged)
    trainer.add_callback(transformers.EarlyStoppingCallback(patience))
    results = {"a fifth set aside": judge(trainer, test)}
    trainer = new_trainer(rows, folder, max_epochs)
    folds = FoldsCallback(trainer, folds=5, patience=patience)
    trainer.add_callback(folds)
    results["folds"] = judge(trainer, test)
    return results, folds


def draw(folds, test_losses):
    epochs = np.arange(len(folds.path_))
    figure, ax = plt.subplots(figsize=(6.4, 4))
    band = folds.path_ - folds.se_path_, folds.path_ + folds.se_path_
    ax.fill_between(epochs, *band, alpha=0.2, linewidth=0)
    ax.plot(epochs, folds.path_, label="held-out sentences of five folds")
    ax.plot(epochs, test_losses, color="black", label="test sentences")
    best = folds.path_.argmin()
    ax.axvline(best, color="grey", linestyle=":", label="chosen epoch")
    ax.set(xlabel="epoch", ylabel="log loss")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_title("A transformer for sentences, stopped by folds", loc="left")
    ax.legend(frameon=False)
    figure.tight_layout()
    return figure


def main(n_rows=400, n_splits=5, max_epochs=20, output=None):
    """Print the table and draw the figure."""
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    sentences, compared = read_sentences(), []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(n_splits):
            packages = [row["labels"] for row in sentences]
            rows, test = train_test_split(
                sentences, train_size=n_rows, random_state=seed, stratify=packages
            )
            compared.append(compare(rows, test, max_epochs, folder))
            if seed == 0:
                # The run of the figure once more, to see its loss on test sentences.
                trainer, folds = new_trainer(rows, folder, max_epochs), compared[0][1]
                observed = TestLosses(trainer, test)
                trainer.add_callback(observed)
                trainer.train()
    print(f"{'sentences':24}{'test loss':>12}{'wrong':>9}{'epochs':>9}{'seconds':>9}")
    for name in compared[0][0]:
        values = np.array([results[name] for results, _ in compared])
        loss, wrong, n_epochs, seconds = values.mean(axis=0)
        print(f"{name:24}{loss:12.3f}{wrong:8.1f}%{n_epochs:9.0f}{seconds:9.1f}")
    figure = draw(folds, observed.losses[: len(folds.path_)])
    if output is not None:
        file = Path(output) / "transformers.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, dpi=120)
        print(f"\nFigure: {file}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    torch.set_num_threads(1)
    main(output=parser.parse_args().output)
