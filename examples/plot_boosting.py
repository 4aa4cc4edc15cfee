"""
Boosted trees that stop themselves, and a blend
===============================================

Boosted trees of scikit-learn, the lasso and a kernel machine predict from ten
measurements of 442 patients how far their diabetes has progressed a year later. Each
model is trained once, on all training rows. Five copies, each trained on four of five
folds, are trained along with it. They show the error of every number of trees or
updates on rows that they have not seen.

The figure shows these errors for one split. Runs differ in their numbers of updates or
trees, so the axis is the share of each run. A dot marks the iterate that is kept, and
the name of each model is followed by its weight in the blend, the weighted mean of the
three predictions that has the smallest squared error on the held-out folds (dashed
line). The band is one standard error of the model with the largest weight.

The table shows mean errors on a quarter of the rows, over four splits. Boosted trees
are also stopped in the two usual ways: scikit-learn's early stopping, which holds out a
tenth of the rows and never trains on them, and ``GridSearchCV`` over four numbers of
trees. Boosted trees are the worst model for these data, however they are stopped. The
lasso, the kernel machine and the blend are better, and about as good as each other.

Run ``python examples/plot_boosting.py --output DIR`` to write the figure.
"""

from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV, train_test_split

from skacv import (
    KernelEigenProRegressor,
    RiskPathDisplay,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
)

BOOSTED = HistGradientBoostingRegressor(
    max_iter=2000, learning_rate=0.05, max_leaf_nodes=6, random_state=0
)
NUMBERS = {"max_iter": [50, 75, 100, 150]}
MEMBERS = [
    ("lasso", TrajectoryLasso("path", max_iter=20, standardize=True)),
    ("kernel", KernelEigenProRegressor(standardize=True)),
    ("boosted trees", BOOSTED),
]
OWN_STOPPING = "boosted trees, early_stopping=True"
GRID = "boosted trees, GridSearchCV"


def peers():
    """The usual ways to a number of trees."""
    return {
        OWN_STOPPING: clone(BOOSTED).set_params(early_stopping=True),
        GRID: GridSearchCV(BOOSTED, NUMBERS, scoring="neg_mean_squared_error"),
    }


def squared_error(model, X, y):
    return np.mean((model.predict(X) - y) ** 2)


def timed_fit(model, X, y):
    begun = perf_counter()
    model.fit(X, y)
    return model, perf_counter() - begun


def blend_of(X, y):
    """The three models, stopped and blended."""
    model = TrajectoryEarlyStoppingCV(MEMBERS, rule="blend", random_state=0)
    return timed_fit(model, X, y)


def rows_of(split):
    """What every model of one split has: stage, weight, test error and seconds.

    Returns
    -------
    model : TrajectoryEarlyStoppingCV
    rows : dict of str to tuple of float
    """
    X, X_test, y, y_test = split
    model, seconds = blend_of(X, y)
    rows = {
        name: (
            member.iteration_,
            model.weights_[name],
            squared_error(member, X_test, y_test),
            np.nan,
        )
        for name, member in model.members_.items()
    }
    rows["their blend"] = np.nan, 1.0, squared_error(model, X_test, y_test), seconds
    for name, peer in peers().items():
        peer, seconds = timed_fit(peer, X, y)
        trees = getattr(peer, "best_estimator_", peer).n_iter_
        rows[name] = trees, np.nan, squared_error(peer, X_test, y_test), seconds
    return model, rows


def main(n_rows=None, n_splits=4, output=None):
    """Print the table and draw the figure."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X, y = X[:n_rows], y[:n_rows]
    splits = [
        train_test_split(X, y, test_size=0.25, random_state=seed)
        for seed in range(n_splits)
    ]
    results = [rows_of(split) for split in splits]
    print(f"{'means of splits':36}{'stage':>7}{'weight':>8}{'test error':>12}{'s':>7}")
    for name in results[0][1]:
        means = np.mean([rows[name] for _, rows in results], axis=0)
        formats = "7.0f", "8.2f", "12.0f", "7.2f"
        said = (f"{mean:{form}}" for mean, form in zip(means, formats))
        print(f"{name:36}{''.join(said).replace('nan', '   ')}", flush=True)
    first = results[0][0]
    said = f"{first.best_score_:.0f}, corrected {first.best_score_corrected_:.0f}"
    print(f"the blend's own estimate on the first split: {said}")
    figure, ax = plt.subplots(figsize=(7, 4.2), constrained_layout=True)
    RiskPathDisplay.from_estimator(first, ax=ax, name="Diabetes")
    if output is not None:
        path = Path(output) / "boosting.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
