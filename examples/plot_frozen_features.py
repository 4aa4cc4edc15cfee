"""
A head on frozen features, stopped by folds
===========================================

A network learns to tell the digits 0 to 4 apart, and is frozen. On its 768 features a
softmax head learns the digits 5 to 9 by Adam. It sees 500 drawings four times each:
shifted by a pixel, with new noise. The four views of a drawing are held out together.
Five copies of the head, each trained on four fifths of the drawings, estimate the log
loss of every update on unseen drawings. The black line is the loss on test rows. The
estimate is somewhat larger, because the copies are trained on fewer drawings.

The test loss of the chosen update is nearly the smallest of all, and smaller than that
of the last one. It does not get more labels right than the last one.

The run and its five folds are timed in two ways, compiled beforehand: together, as
skacv does, and as six runs of the same code, one after the other. Together they take
less time, and the paths are the same.

It needs ``pip install "skacv[jax,plot]"``. Run
``python examples/plot_frozen_features.py --output DIR`` to write the figure.
"""

from pathlib import Path
from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits
from sklearn.model_selection import GroupKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skacv import RiskPathDisplay, TrajectoryEarlyStoppingCV
from skacv.jax import OptaxClassifier, TrajectoryACV

ADAM = optax.adam(0.003)
NOISE = 0.35
SHIFTS = ((0, 1), (2, 1), (1, 0), (1, 2))


def head(params, X):
    return X @ params["coef"] + params["intercept"]


def log_loss(y, decision):
    return optax.losses.softmax_cross_entropy_with_integer_labels(decision, y)


def frozen(X, y, width):
    """A hidden layer that has learned some classes, as a transformer."""
    net = MLPClassifier(width, alpha=0.0, tol=1e-3, random_state=0).fit(X, y)
    (weights, _), (shifts, _) = net.coefs_, net.intercepts_
    return FunctionTransformer(lambda X: np.maximum(X @ weights + shifts, 0))


def seen(drawings, rng):
    """Every drawing, shifted each way, noise added: (4 n, 64)."""
    padded = np.pad(drawings.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    views = [padded[:, down : down + 8, right : right + 8] for down, right in SHIFTS]
    results = np.concatenate(views).reshape(-1, 64)
    return results + NOISE * rng.standard_normal(results.shape)


def drawn(n_drawings, width):
    """Features and classes of training and test rows, and folds of drawings."""
    X, y = load_digits(return_X_y=True)
    X, is_low = X / 16, y < 5
    features = make_pipeline(frozen(X[is_low], y[is_low], width), StandardScaler())
    rng = np.random.default_rng(0)
    order = rng.permutation(np.flatnonzero(~is_low))
    drawn, test = order[:n_drawings], order[n_drawings:]
    rows = features.fit_transform(seen(X[drawn], rng)).astype(np.float32)
    test_rows = features.transform(seen(X[test], rng)).astype(np.float32)
    label, drawing = np.tile(y[drawn] - 5, 4), np.tile(np.arange(len(drawn)), 4)
    folds = list(GroupKFold(5).split(rows, label, drawing))
    return (rows, label), (test_rows, np.tile(y[test] - 5, 4)), folds


def by_hand(X, y, folds, max_iter):
    """The run on all rows, and the cost of every iterate by a run for each fold."""
    start = {"coef": jnp.zeros((X.shape[1], 5)), "intercept": jnp.zeros(5)}
    acv = TrajectoryACV(head, log_loss, ADAM)
    acv.run(start, X, y, max_iter)
    costs = []
    for fitted, judged in folds:
        run = acv.run(start, X[fitted], y[fitted], max_iter)
        decisions = run.predict_path(X[judged])
        costs.append(jax.vmap(log_loss, (None, 0))(y[judged], decisions))
    return np.concatenate(costs, axis=1).mean(axis=1)


def timed(work, repeats=3):
    """What some work gives, and the median of its seconds; the first compiles it."""
    work()
    seconds = []
    for _ in range(repeats):
        begun = perf_counter()
        results = work()
        seconds.append(perf_counter() - begun)
    return results, np.median(seconds)


def main(n_drawings=500, width=768, max_iter=200, output=None):
    """Print the table and draw the figure."""
    (X, y), (X_test, y_test), folds = drawn(n_drawings, width)
    model = OptaxClassifier(optimizer=ADAM, max_iter=max_iter, cv=folds)
    stopped, seconds = timed(lambda: TrajectoryEarlyStoppingCV(model).fit(X, y))
    path, long = timed(lambda: by_hand(X, y, folds, max_iter))
    off = np.abs(stopped.path_ / path - 1).max()
    print(f"Softmax head, {X.shape[0]} x {X.shape[1]}, {max_iter} updates of Adam\n")
    print(f"the run and its five folds, and the choice  {seconds:6.2f} s")
    print(f"six runs one after the other                {long:6.2f} s")
    print(f"largest relative difference of both paths   {off:6.0e}\n")
    test = stopped.estimator_.staged_loss(X_test, y_test)
    last = stopped.at_iteration(-1)
    print(f"{'iterate':>24}{'expected loss':>16}{'test loss':>12}{'wrong':>9}")
    for name, t, model in (
        ("chosen", stopped.best_iter_, stopped),
        ("last", max_iter, last),
    ):
        wrong = 100 * np.mean(model.predict(X_test) != y_test)
        print(f"{name:8}{t:16}{stopped.path_[t]:16.3f}{test[t]:12.3f}{wrong:8.1f}%")
    print(f"{'best':8}{test.argmin():16}{'':16}{test.min():12.3f}")
    display = RiskPathDisplay.from_estimator(stopped, X_test, y_test)
    display.ax_.set_title("A head on frozen features", loc="left")
    if output is not None:
        file = Path(output) / "frozen_features.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        display.figure_.savefig(file, dpi=120)
        print(f"\nFigure: {file}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
