"""
Models that stop themselves
===========================

``TrajectoryEarlyStoppingCV()`` with nothing set runs a few iterative models once, each
on all rows, and keeps the best iterate of all: which model, which strength of the
penalty and which iteration is chosen by folds that run beside, in the same products.
Here it stands beside what is usual today, on data that ship with scikit-learn:

* **Diabetes**, 442 patients, with all products of their ten features: a tie.
  The lasso is the right model, and ``LassoCV`` has it too.
* **Digits**, read off as a number from 64 pixels: a kernel machine is the right model
  by far. A grid of ridge penalties over the same kernel ends up there as well, and
  takes several times as long.
* **Noisy digits**: ten classes, with a fifth of the labels drawn anew. The models
  fit the noise if they are let; the table sets the chosen iterate beside the last one.

A quarter of the rows is kept aside to tell the truth; the diabetes data, of few rows,
are split ten times.

Run ``python examples/plot_early_stopping.py --output DIR`` to write the figure.
"""

import argparse
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_digits
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LassoCV, LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC

from skacv import RiskPathDisplay, TrajectoryEarlyStoppingCV

GAMMAS = [0.001, 0.003, 0.01, 0.03]


def lasso():
    return LassoCV(cv=5, max_iter=10_000)


def kernel_ridge():
    """Of centred targets: it has no intercept."""
    grid = {"gamma": GAMMAS, "alpha": np.logspace(-4, 3, 8)}
    search = GridSearchCV(KernelRidge(kernel="rbf"), grid)
    return TransformedTargetRegressor(search, transformer=StandardScaler())


def svc():
    return GridSearchCV(SVC(), {"gamma": GAMMAS, "C": np.logspace(-1, 3, 5)})


def logistic():
    return GridSearchCV(LogisticRegression(max_iter=1000), {"C": np.logspace(-4, 4, 9)})


PEERS = {
    "LassoCV": lasso,
    "GridSearchCV(KernelRidge)": kernel_ridge,
    "GridSearchCV(LogisticRegression)": logistic,
    "GridSearchCV(SVC)": svc,
}
REGRESSION = "LassoCV", "GridSearchCV(KernelRidge)"
CLASSIFICATION = "GridSearchCV(LogisticRegression)", "GridSearchCV(SVC)"


def datasets(n_rows):
    """Name, features, target, task and splits, of the first ``n_rows`` rows or all."""
    X, y = load_diabetes(return_X_y=True)
    X = PolynomialFeatures(2, include_bias=False).fit_transform(X)
    yield "Diabetes with products", X[:n_rows], y[:n_rows], "regression", 10
    X, y = load_digits(return_X_y=True)
    yield "Digits as numbers", X[:n_rows], y[:n_rows].astype(float), "regression", 1
    rng = np.random.default_rng(0)
    y = np.where(rng.random(len(y)) < 0.2, rng.integers(0, 10, len(y)), y)
    yield "Noisy digits", X[:n_rows], y[:n_rows], "classification", 1


def error(model, X, y, task):
    """The mean squared error, or the share of wrong labels."""
    predictions = model.predict(X)
    if task == "classification":
        return np.mean(predictions != y)
    return np.mean((predictions - y) ** 2)


def timed_fit(model, X, y):
    begun = perf_counter()
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    return pipeline, perf_counter() - begun


OURS, LAST = "TrajectoryEarlyStoppingCV()", "    the last iterate of its run"


def compared(X, y, task, seed):
    """Test error and seconds of our default and its peers on one split, by name.

    Returns
    -------
    found : dict
    ours : Pipeline
    held_out : tuple
        The test rows and their targets.
    """
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=seed)
    models = {OURS: TrajectoryEarlyStoppingCV(task=task, random_state=0)}
    names = REGRESSION if task == "regression" else CLASSIFICATION
    models |= {name: PEERS[name]() for name in names}
    found = {}
    for name, model in models.items():
        fitted, elapsed = timed_fit(model, X, y)
        found[name] = error(fitted, X_test, y_test, task), elapsed
        if name == OURS:
            ours = fitted
            last = make_pipeline(ours[0], ours[-1].at_iteration(-1))
            found[LAST] = error(last, X_test, y_test, task), np.nan
    return found, ours, (X_test, y_test)


def report(name, X, y, task, n_splits, ax):
    """Print the table of one data set, and draw a split with the usual choice."""
    splits = [compared(X, y, task, seed) for seed in range(n_splits)]
    what = "squared error" if task == "regression" else "wrong labels"
    print(f"\n{f'{name}, {len(X)} x {X.shape[1]}':34}{what:>14}  seconds")
    for line in splits[0][0]:
        mean = np.mean([found[line] for found, _, _ in splits], axis=0)
        took = "" if np.isnan(mean[1]) else f"{mean[1]:9.2f}"
        print(f"{line:34}{mean[0]:14.4g}{took}")
    members = [ours[-1].best_member_ for _, ours, _ in splits]
    chosen = {member: members.count(member) for member in dict.fromkeys(members)}
    said = ", ".join(f"{member} ({times})" for member, times in chosen.items())
    print(f"chosen: {said if n_splits > 1 else members[0]}")
    usual = members.index(max(chosen, key=chosen.get))
    _, ours, held_out = splits[usual]
    RiskPathDisplay.from_estimator(ours, *held_out, ax=ax)
    stopped = ours[-1]
    title = f"{name}: {stopped.best_member_}, stopped at {stopped.best_iter_}"
    ax.set_title(title, loc="left")


def main(n_rows=None, output=None):
    """Print the tables and draw the figure."""
    figure, axes = plt.subplots(1, 3, figsize=(18, 4.4), constrained_layout=True)
    for dataset, ax in zip(datasets(n_rows), axes):
        report(*dataset, ax)
    if output is not None:
        path = Path(output) / "early_stopping.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
