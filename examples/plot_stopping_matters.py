"""
Where stopping matters
======================

Two models that run too long: they fit the training rows better and better and, after a
while, new rows worse and worse. The data ship with scikit-learn:

* **Least squares** on the diabetes data with all products of up to three of their ten
  features: 331 training rows and 285 columns.
* **A kernel machine** on the digits. A fifth of the training labels are replaced by
  random ones; the test labels are correct.

Each is stopped in two ways. With leave-one-out of the recorded run, the model trains on
all rows and is judged by all rows. With a held-out tenth, which is what
``early_stopping=True`` means in scikit-learn's ``SGDRegressor`` and ``MLPRegressor``,
it is judged by few rows and never trains on them, and the test error is larger. Without
stopping (cross), the test error is several times as large.

The table also lists a model tuned by five folds: ``LassoCV`` on the diabetes data, and
a support vector classifier with ten values of ``C`` on the digits. Both are slightly
better than these two models stopped.

Run ``python examples/plot_stopping_matters.py --output DIR`` to write the figure.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import LassoCV
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC

from skacv import IterativeRidge, KernelEigenProClassifier

LEAVE_ONE_OUT, HELD_OUT = "stopped by leave-one-out", "stopped by a held-out tenth"
LAST = "the last iterate"
LABEL_NOISE = 0.2


def squared_error(predictions, y):
    return np.mean((predictions - y) ** 2)


def wrong_labels(predictions, y):
    return np.mean(predictions != y)


def diabetes(seed, n_rows):
    """Training rows, test rows, training targets, test targets."""
    X, y = load_diabetes(return_X_y=True)
    X = PolynomialFeatures(3, include_bias=False).fit_transform(X)
    split = train_test_split(X[:n_rows], y[:n_rows], test_size=0.25, random_state=seed)
    scaler = StandardScaler().fit(split[0])
    return scaler.transform(split[0]), scaler.transform(split[1]), *split[2:]


def noisy_digits(seed, n_rows):
    """The same; only the test labels are clean."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(
        X[:n_rows], y[:n_rows], test_size=0.5, random_state=seed
    )
    rng = np.random.default_rng(seed)
    drawn = rng.integers(10, size=len(y))
    return X, X_test, np.where(rng.random(len(y)) < LABEL_NOISE, drawn, y), y_test


def least_squares(max_iter):
    return IterativeRidge(alpha=0.0, solver="nesterov", max_iter=max_iter, tol=0)


def kernel_machine(max_iter):
    return KernelEigenProClassifier(
        gamma=1e-3, patience=None, max_iter=max_iter // 5, random_state=0
    )


def lasso():
    return LassoCV(cv=5, eps=1e-2, max_iter=10_000)


def svc():
    return GridSearchCV(SVC(gamma=1e-3), {"C": np.geomspace(1e-2, 1e3, 10)})


CASES = [
    (
        "Diabetes, products of three: least squares",
        diabetes,
        (least_squares, squared_error, "squared error", ".0f"),
        ("LassoCV, five folds", lasso),
    ),
    (
        "Digits with noisy labels: kernel machine",
        noisy_digits,
        (kernel_machine, wrong_labels, "wrong labels", ".3f"),
        ("GridSearchCV(SVC), five folds", svc),
    ),
]


def held_out_choice(model, error, X, y, seed):
    """The run on nine tenths of the rows, stopped where the last tenth is fitted best.

    Returns
    -------
    model : estimator
        The whole run.
    best : int
        The iterate of least error on the tenth, the first of them.
    """
    X, X_tenth, y, y_tenth = train_test_split(X, y, test_size=0.1, random_state=seed)
    model = clone(model).set_params(loo=False).fit(X, y)
    path = [error(staged, y_tenth) for staged in model.staged_predict(X_tenth)]
    return model, int(np.argmin(path))


def compared(case, seed, n_rows, max_iter):
    """Test errors by name, the test error of every iterate, and the two choices."""
    _, data, (make_model, error, *_), (peer_name, make_peer) = case
    X, X_test, y, y_test = data(seed, n_rows)
    model = make_model(max_iter).fit(X, y)
    test = np.array([error(staged, y_test) for staged in model.staged_predict(X_test)])
    train = [error(staged, y) for staged in model.staged_predict(X)]
    best = int(model.loo_path_.argmin())
    stopped, held_out = held_out_choice(make_model(max_iter), error, X, y, seed)
    other_test = [error(staged, y_test) for staged in stopped.staged_predict(X_test)]
    results = {
        LEAVE_ONE_OUT: test[best],
        HELD_OUT: other_test[held_out],
        LAST: test[-1],
        peer_name: error(make_peer().fit(X, y).predict(X_test), y_test),
    }
    return results, (train, test, other_test), (best, held_out)


def draw(ax, case, paths, choices, results):
    """Test and training error along a run, with both choices and the last iterate."""
    title, _, (_, _, what, form), _ = case
    train, test, other_test = (path[1:] for path in paths)
    updates = np.arange(1, len(test) + 1)
    ax.loglog(updates, test, color="#000000", label="test error")
    train = np.where(np.array(train) > 0, train, np.nan)  # a log scale has no zero
    ax.loglog(updates, train, color="#666666", linestyle=":", label="training error")
    chosen = zip(choices, (test, other_test), ("#0072B2", "#D55E00"), "os")
    for (choice, path, colour, marker), name in zip(chosen, (LEAVE_ONE_OUT, HELD_OUT)):
        label = f"{name}: {results[name]:{form}}"
        style = {"color": colour, "markersize": 9, "markeredgecolor": "white"}
        ax.plot(choice, path[choice - 1], marker, label=label, **style)
    label = f"not stopped: {results[LAST]:{form}}"
    ax.plot(updates[-1], test[-1], "kX", markersize=9, clip_on=False, label=label)
    ax.set(xlabel="iteration", ylabel=what)
    ax.set_title(title, loc="left")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)


def main(n_rows=None, max_iter=1500, n_splits=5, output=None):
    """Print the tables and draw the first split."""
    figure, axes = plt.subplots(2, 1, figsize=(7, 7.6), constrained_layout=True)
    print(f"Test errors over {n_splits} splits:")
    for case, ax in zip(CASES, axes):
        splits = [compared(case, seed, n_rows, max_iter) for seed in range(n_splits)]
        *_, what, form = case[2]
        print(f"\n{case[0]:44}{'mean':>9}{'worst':>9}  ({what})")
        for name in splits[0][0]:
            errors = [results[name] for results, _, _ in splits]
            print(f"{name:44}{np.mean(errors):9{form}}{np.max(errors):9{form}}")
        results, paths, choices = splits[0]
        draw(ax, case, paths, choices, results)
    if output is not None:
        path = Path(output) / "stopping_matters.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
