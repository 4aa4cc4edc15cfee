"""
A network in Keras, stopped by folds
====================================

With the backend JAX a model of Keras is a function of its variables
(``stateless_call``), which ``skacv.jax`` can run with any optimiser of optax: once,
with five copies beside it, each without the rows of a fold. The curve of the held-out
rows chooses the update, whose variables the Keras model then gets. The black line is
the loss on test rows, which the run does not see.

It needs ``pip install skacv[jax,plot] keras``. Run
``python examples/plot_keras.py --output DIR`` to write the figure.
"""

import os
from pathlib import Path

# Keras reads this when it is imported.
os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import matplotlib.pyplot as plt
import numpy as np
import optax
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from skacv.jax import TrajectoryACV


def squared(y, prediction):
    return (y - prediction) ** 2


def main(max_iter=300, output=None):
    """Train, choose, print the table and draw the figure."""
    X, y = load_diabetes(return_X_y=True)
    X, y = scale(X).astype("float32"), scale(y).astype("float32")
    X, X_test, y, y_test = train_test_split(X, y, train_size=300, random_state=0)
    keras.utils.set_random_seed(0)
    layers = keras.layers
    model = keras.Sequential(
        [layers.Input((10,)), layers.Dense(64, activation="relu"), layers.Dense(1)]
    )
    start = [variable.value for variable in model.trainable_variables]

    def predict(variables, X):
        outputs, _ = model.stateless_call(variables, [], X)
        return outputs[:, 0]

    acv = TrajectoryACV(predict, squared, optax.adam(0.01))
    run = acv.run(start, X, y, max_iter)
    held_out = run.cv_path(folds=5)
    test = ((run.predict_path(X_test) - y_test) ** 2).mean(axis=1)
    for variable, path in zip(model.trainable_variables, run.params_path):
        variable.assign(path[held_out.best_iteration])
    wrong = model.predict(X_test, verbose=0)[:, 0] - y_test

    print(f"{'update':>16}{'held-out rows':>18}{'test rows':>12}")
    for name, t in ("chosen", held_out.best_iteration), ("last", max_iter):
        print(f"{name:8}{t:8}{held_out.path[t]:18.3f}{test[t]:12.3f}")
    print(f"{'best':8}{test.argmin():8}{'':18}{test.min():12.3f}")
    print(f"\nThe Keras model has the chosen variables: {np.mean(wrong**2):.3f}")

    updates = np.arange(max_iter + 1)
    figure, ax = plt.subplots(figsize=(6.4, 4))
    band = held_out.path - held_out.se_path, held_out.path + held_out.se_path
    ax.fill_between(updates, *band, alpha=0.2, linewidth=0)
    ax.plot(updates, held_out.path, label="held-out rows of five folds")
    ax.plot(updates, test, color="black", label="test rows")
    chosen = held_out.best_iteration
    ax.axvline(chosen, color="grey", linestyle=":", label="chosen update")
    ax.set(xlabel="update", ylabel="squared error")
    ax.set_title("A network in Keras, stopped by folds", loc="left")
    ax.legend(frameon=False)
    figure.tight_layout()
    if output is not None:
        file = Path(output) / "keras.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, dpi=120)
        print(f"\nFigure: {file}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
