"""
A stopped booster and its intervals
===================================

The figure of the quickstart: boosted trees on the diabetes data, stopped by
``TrajectoryEarlyStoppingCV``. A quarter of the patients are test rows.

* **Left**: errors along the run. The model is stopped where the held-out error is
  smallest. Beyond that point the training error would continue to fall, and the
  held-out error rises.
* **Right**: 90% prediction intervals of the test rows, in the order of the predictions,
  and what was observed. Most observed values lie inside their intervals, which are
  narrower for small predictions.

Run ``python examples/plot_quickstart.py --output DIR`` to write the figure.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

from skacv import RiskPathDisplay, TrajectoryEarlyStoppingCV

BLUE, ORANGE = "#0072B2", "#D55E00"


def draw_intervals(model, X_test, y_test, ax):
    """Intervals from the smallest prediction to the largest, and what was observed.

    Returns
    -------
    ndarray of bool
        Whether the interval of a row covers what was observed.
    """
    predicted = model.predict(X_test)
    low, high = model.predict_interval(X_test, coverage=0.9).T
    covered = (low <= y_test) & (y_test <= high)
    place = np.empty(len(y_test), dtype=int)
    place[np.argsort(predicted)] = np.arange(len(y_test))
    ax.vlines(place, low, high, color=BLUE, alpha=0.3, label="90% interval")
    for label, color, rows in (
        ("observed", "black", covered),
        ("observed, outside", ORANGE, ~covered),
    ):
        ax.plot(place[rows], y_test[rows], "o", markersize=3, color=color, label=label)
    ax.set(xlabel="test rows, by prediction", ylabel="progress of diabetes")
    ax.set_ylim(top=1.3 * high.max())
    ax.set_title("Prediction intervals", loc="left")
    ax.legend(frameon=False, loc="upper left", fontsize=9)
    return covered


def main(n_rows=None, output=None):
    """Print what the model expects and what was measured, and draw the figure."""
    X, y = load_diabetes(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X[:n_rows], y[:n_rows], random_state=0
    )
    trees = HistGradientBoostingRegressor(max_iter=1000, learning_rate=0.05)
    model = TrajectoryEarlyStoppingCV(trees, random_state=0).fit(X_train, y_train)
    expected, error = model.best_score_corrected_, model.best_score_corrected_se_
    measured = np.mean((y_test - model.predict(X_test)) ** 2)
    print(f"trees kept: {model.best_params_['max_iter']}")
    print(f"squared error: expected {expected:.0f} ± {error:.0f}, test {measured:.0f}")

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(7, 4), width_ratios=[4, 3], layout="constrained"
    )
    RiskPathDisplay.from_estimator(model, X_test, y_test, ax=left)
    left.set(xlabel="number of trees", ylim=(0, None))
    left.set_title("Squared error along one run", loc="left")
    covered = draw_intervals(model, X_test, y_test, right)
    print(
        f"observed inside of the interval: {covered.sum()} of {len(covered)} test rows"
    )
    if output is not None:
        path = Path(output) / "quickstart.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
