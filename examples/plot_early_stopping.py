"""
A lasso that stops itself
=========================

Two data sets that ship with scikit-learn, one run each. The diabetes data have
442 patients; all products of their ten features are added, so that there is
something to overfit. The digits data have 1797 images of 64 pixels; the target
is the digit itself, read off as a number.

The lasso walks thirty values of alpha in one warm-started trajectory, and exact
leave-one-out, from that one run, says what each iterate would cost on unseen rows
(on larger data the memory matrix does: ``criterion="auto"``). The table sets
the iterate that was chosen beside the last one, and beside ``LassoCV``, which
refits on folds. A quarter of the rows is kept aside to tell the truth.

Run ``python examples/plot_early_stopping.py --output DIR`` to write the figure.
"""

import argparse
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import LassoCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skacv import RiskPathDisplay, TrajectoryEarlyStoppingCV, TrajectoryLasso


def datasets(n_rows):
    """Name, features and target, of the first ``n_rows`` rows or all."""
    X, y = load_diabetes(return_X_y=True)
    X = PolynomialFeatures(2, include_bias=False).fit_transform(X)
    yield "diabetes", X[:n_rows], y[:n_rows]
    X, y = load_digits(return_X_y=True)
    yield "digits", X[:n_rows], y[:n_rows].astype(float)


def test_error(model, X, y):
    return np.mean((y - model.predict(X)) ** 2)


def timed_fit(model, X, y):
    begun = perf_counter()
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    return pipeline, perf_counter() - begun


HEADER = (
    f"{'data':10}{'rows':>6}{'features':>10}{'iteration':>12}{'estimated':>14}"
    f"{'test':>10}{'last':>10}{'LassoCV':>10}{'seconds':>9}{'LassoCV':>9}"
)


def report(name, X, y, ax):
    """Fit, print one row of the table, draw."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
    ours, seconds = timed_fit(
        TrajectoryEarlyStoppingCV(TrajectoryLasso(alpha="path", max_iter=20)),
        X,
        y,
    )
    theirs, their_seconds = timed_fit(LassoCV(cv=5, max_iter=10_000), X, y)
    stopped = ours[-1]
    last = make_pipeline(ours[0], stopped.at_iteration(-1))
    chosen = f"{stopped.best_iter_}/{stopped.estimator_.n_iter_}"
    estimate = f"{stopped.best_score_:.4g}±{stopped.best_score_se_:.2g}"
    print(
        f"{name:10}{len(X):6}{X.shape[1]:10}{chosen:>12}{estimate:>14}"
        f"{test_error(ours, X_test, y_test):10.4g}"
        f"{test_error(last, X_test, y_test):10.4g}"
        f"{test_error(theirs, X_test, y_test):10.4g}"
        f"{seconds:9.2f}{their_seconds:9.2f}"
    )
    RiskPathDisplay.from_estimator(ours, X_test, y_test, ax=ax)
    ax.set_title(f"{name}: one run, stopped at {stopped.best_iter_}", loc="left")


def main(n_rows=None, output=None):
    """Print the table and draw the figure."""
    print(
        "Mean squared errors: estimated without a test set, and true on the test "
        "set,\nof the chosen iterate, of the last one, and of LassoCV.\n"
    )
    print(HEADER)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), constrained_layout=True)
    for (name, X, y), ax in zip(datasets(n_rows), axes):
        report(name, X, y, ax)
    if output is not None:
        path = Path(output) / "early_stopping.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
