"""
The risk of a logistic run, without leaving a row out
=====================================================

The memory matrix estimates the log loss of every iterate of a logistic regression on
unseen rows from one run. It multiplies derivatives of the run with random signs and
leaves no row out, so it takes a fraction of the time of leave-one-out.

The left panel shows Gaussian rows, as the theory assumes. The memory matrix (blue)
agrees with leave-one-out (dashed). Both are a few percent above the loss on test rows,
and both stop at about the best iterate. The right panel shows breast cancer data with
products of the features, whose rows are far from Gaussian. There the memory matrix is
too high once the run separates the classes, and it stops too early. Use leave-one-out
or five folds for such data. Five folds are the fastest.

Run ``python examples/plot_logistic_risk.py --output DIR`` to write the figure.
"""

import warnings
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skacv import TrajectoryLogisticRegression
from skacv.exceptions import SeparationWarning

ESTIMATES = {
    "memory matrix": ("risk", True),
    "leave-one-out": ("loo", True),
    "five folds": ("cv", 5),
}
OFF = {"risk": False, "loo": False, "cv": None}
STYLES = {
    "memory matrix": {"color": "#0072B2", "linewidth": 2.2},
    "leave-one-out": {"color": "#D55E00", "dashes": (5, 2)},
    "five folds": {"color": "#CC79A7", "linewidth": 1.5},
}


def gaussian(seed, n_test=2000):
    """Columns of even size, ten of which matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300 + n_test, 100))
    chance = 1 / (1 + np.exp(-X[:, :10].sum(axis=1)))
    y = (rng.random(len(X)) < chance).astype(int)
    return X[:300], X[300:], y[:300], y[300:]


def breast_cancer(seed):
    """All products of two features; more columns than training rows."""
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(
        X, y, train_size=300, random_state=seed, stratify=y
    )
    products = PolynomialFeatures(2, include_bias=False)
    features = make_pipeline(StandardScaler(), products, StandardScaler())
    return features.fit_transform(X), features.transform(X_test), y, y_test


# Data, and the number of updates.
DATA = {
    "Gaussian rows": (gaussian, 50),
    "breast cancer with products": (breast_cancer, 300),
}


def fitted(X, y, max_iter, **estimates):
    """A run without a penalty, and its seconds."""
    settings = {**OFF, **estimates, "max_iter": max_iter, "tol": 0, "random_state": 0}
    model = TrajectoryLogisticRegression(np.inf, **settings)
    with warnings.catch_warnings():
        # That the classes end up separated is why the run is to be stopped.
        warnings.simplefilter("ignore", SeparationWarning)
        begun = perf_counter()
        return model.fit(X, y), perf_counter() - begun


def test_path(model, X_test, y_test):
    """Log loss of every iterate on the test rows."""
    staged = model.staged_predict_proba(X_test)
    return np.array([log_loss(y_test, chances) for chances in staged])


def stops(drawn, seed, max_iter):
    """Name, seconds, test loss and its reading, where each estimate stops."""
    X, X_test, y, y_test = drawn(seed)
    bare, seconds = fitted(X, y, max_iter)
    test = test_path(bare, X_test, y_test)
    for name, (parameter, value) in ESTIMATES.items():
        model, took = fitted(X, y, max_iter, **{parameter: value})
        path = getattr(model, f"{parameter}_path_")
        best = path.argmin()
        yield name, took, best, test[best], path[best]
    yield "the best iterate", np.nan, test.argmin(), test.min(), np.nan
    yield "the last iterate", seconds, max_iter, test[-1], np.nan


def draw(ax, title, data, max_iter):
    """The estimates and the test loss along one run."""
    X, X_test, y, y_test = data
    model, _ = fitted(X, y, max_iter, **dict(ESTIMATES.values()))
    test = test_path(model, X_test, y_test)
    ax.plot(test, color="#000000", linewidth=1.2, label="test rows")
    ax.plot(model.train_path_, color="#009E73", linestyle=":", label="training rows")
    least = []
    for name, (parameter, _) in ESTIMATES.items():
        path = getattr(model, f"{parameter}_path_")
        least.append(path.min())
        (line,) = ax.plot(path, label=name, **STYLES[name])
        ax.plot(path.argmin(), path.min(), "o", color=line.get_color(), markersize=5)
    ax.plot([], [], "o", color="#808080", markersize=5, label="its smallest value")
    ax.set_title(title, loc="left", fontsize="medium")
    ax.set(xlabel="iteration", ylabel="log loss", xlim=(0, max_iter))
    ax.set_ylim(0, 2.5 * max(least))
    ax.spines[["top", "right"]].set_visible(False)


def main(share=1.0, n_splits=5, output=None):
    """Print the table and draw the figure; a share below one shortens the runs."""
    data = {title: (drawn, int(share * n)) for title, (drawn, n) in DATA.items()}
    print(f"Log loss on test rows where each estimate stops, {n_splits} draws each:\n")
    print(f"{'':28}{'':18}{'stops at':>9}{'test':>8}{'said':>8}{'seconds':>9}")
    for title, (drawn, max_iter) in data.items():
        results = [list(stops(drawn, seed, max_iter)) for seed in range(n_splits)]
        for rows in zip(*results):
            took, best, test, said = np.mean([row[1:] for row in rows], axis=0)
            numbers = f"{best:9.0f}{test:8.3f}{said:8.3f}{took:9.2f}"
            print(f"{title:28}{rows[0][0]:18}{numbers}".replace("nan", "   "))
    figure, axes = plt.subplots(1, 2, figsize=(7, 4.2), constrained_layout=True)
    for ax, (title, (drawn, max_iter)) in zip(axes, data.items()):
        draw(ax, title, drawn(0), max_iter)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    if output is not None:
        path = Path(output) / "logistic_risk.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
