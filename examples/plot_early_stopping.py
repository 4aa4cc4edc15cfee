"""
Models that stop themselves
===========================

``SelfStoppingRegressor()`` and ``SelfStoppingClassifier()`` train a few iterative
models once, each on all rows, and blend their best iterates. Copies of each model,
trained on the other folds, choose the strength of its penalty, its iterate and its
weight. Here they are compared with tuned models of scikit-learn, on data that ship with
it:

* **Diabetes**, 442 patients, with all products of their ten features: ``LassoCV`` is a
  few percent better than the blend, which is as good as kernel ridge regression.
* **Digits**, predicted as numbers from 64 pixels: the kernel machine and the feature
  machine have most of the weight. The lasso has none: the error of ``LassoCV`` is
  several times as large. A grid search over kernel ridge regressions takes less time,
  and has a larger error.
* **Noisy digits**: ten classes, a fifth of the labels drawn anew at random. The blend
  and a tuned ``SVC`` are as good as each other, and better than logistic regression.

The runs end by themselves soon after they are at their best. So a blend of their last
iterates is a few percent worse at most.

Errors are those on a quarter of the rows. The diabetes data have few rows and are split
three times.

Run ``python examples/plot_early_stopping.py --output DIR`` to write the figure.
"""

from functools import partial
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

from skacv import RiskPathDisplay, SelfStoppingClassifier, SelfStoppingRegressor

GAMMAS = [0.001, 0.01, 0.03]
N_DIGITS = 1000  # of 1797, to take half the time


def scaled(model):
    return make_pipeline(StandardScaler(), model)


def lasso():
    return scaled(LassoCV(cv=5, max_iter=10_000))


def kernel_ridge():
    """Of centred targets: it has no intercept."""
    grid = {"gamma": GAMMAS, "alpha": np.logspace(-3, 1, 5)}
    search = GridSearchCV(KernelRidge(kernel="rbf"), grid)
    return scaled(TransformedTargetRegressor(search, transformer=StandardScaler()))


def svc():
    return scaled(GridSearchCV(SVC(), {"gamma": GAMMAS, "C": np.logspace(-1, 2, 4)}))


def logistic():
    grid = {"C": np.logspace(-4, 4, 9)}
    return scaled(GridSearchCV(LogisticRegression(max_iter=1000), grid))


OURS = {"regression": SelfStoppingRegressor, "classification": SelfStoppingClassifier}
LAST = "    at the last iterates"
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
    yield "Diabetes with products", X[:n_rows], y[:n_rows], "regression", 3
    X, y = load_digits(return_X_y=True)
    X, y = X[:N_DIGITS], y[:N_DIGITS]
    yield "Digits as numbers", X[:n_rows], y[:n_rows].astype(float), "regression", 1
    rng = np.random.default_rng(0)
    y = np.where(rng.random(len(y)) < 0.2, rng.integers(0, 10, len(y)), y)
    yield "Noisy digits", X[:n_rows], y[:n_rows], "classification", 1


def not_stopped(model, X, task):
    """What the model predicts where its members are at their last iterates."""
    weights = {name: weight for name, weight in model.weights_.items() if weight}
    last = {name: model.members_[name].at_iteration(-1) for name in weights}
    if task == "regression":
        return sum(weights[name] * last[name].predict(X) for name in weights)
    results = sum(weights[name] * last[name].predict_proba(X) for name in weights)
    return model.classes_[results.argmax(axis=1)]


def error(predictions, y, task):
    """The mean squared error, or the share of wrong labels."""
    if task == "classification":
        return np.mean(predictions != y)
    return np.mean((predictions - y) ** 2)


def timed_fit(model, X, y):
    begun = perf_counter()
    model.fit(X, y)
    return model, perf_counter() - begun


def fitted_on(splits, make_model, task):
    """The model on each split, its mean test error, and the seconds of a fit.

    Returns
    -------
    list of estimators, float, float
    """
    fitted, seconds = zip(*(timed_fit(make_model(), X, y) for X, _, y, _ in splits))
    errors = [
        error(model.predict(X), y, task) for model, (_, X, _, y) in zip(fitted, splits)
    ]
    return list(fitted), np.mean(errors), np.mean(seconds)


def report(name, X, y, task, n_splits, ax):
    """Print the table of one data set, and draw a split with the usual choice."""
    splits = [
        train_test_split(X, y, test_size=0.25, random_state=seed)
        for seed in range(n_splits)
    ]
    what = "squared error" if task == "regression" else "wrong labels"
    print(f"\n{f'{name}, {len(X)} x {X.shape[1]}':34}{what:>14}  seconds")

    # The name of a row says what is being fitted; its numbers follow.
    def row(line, make_model):
        print(f"{line:34}", end="", flush=True)
        models, mean, seconds = fitted_on(splits, make_model, task)
        print(f"{mean:14.4g}{seconds:9.2f}", flush=True)
        return models

    ours = row(f"{OURS[task].__name__}()", partial(OURS[task], random_state=0))
    last = [
        error(not_stopped(model, X, task), y, task)
        for model, (_, X, _, y) in zip(ours, splits)
    ]
    print(f"{LAST:34}{np.mean(last):14.4g}")
    for peer in REGRESSION if task == "regression" else CLASSIFICATION:
        row(peer, PEERS[peer])
    weights = [list(model.weights_.values()) for model in ours]
    said = zip(ours[0].weights_, np.mean(weights, axis=0))
    print("weights: " + ", ".join(f"{member} {weight:.2f}" for member, weight in said))
    draw(ours[0], splits[0], ax)
    ax.set_title(name, loc="left")


def draw(model, split, ax):
    """The paths of one split."""
    _, X_test, _, y_test = split
    RiskPathDisplay.from_estimator(model, X_test, y_test, ax=ax)


def main(n_rows=None, output=None):
    """Print the tables and draw the figure."""
    figure, axes = plt.subplots(3, 1, figsize=(7, 10), constrained_layout=True)
    for dataset, ax in zip(datasets(n_rows), axes):
        report(*dataset, ax)
    if output is not None:
        path = Path(output) / "early_stopping.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
