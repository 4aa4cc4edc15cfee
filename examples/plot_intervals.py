"""
Prediction intervals along the iterations
=========================================

How far off is a prediction? Training residuals do not say: they shrink towards zero
along a run, while the errors on unseen rows do not. Residuals of rows left out do, and
one run gives them at every iterate, without a refit.

The data are the 442 patients of the diabetes data with all products of up to three of
their ten features: 285 columns. A model is fitted on 150 rows by accelerated gradient
descent and tested on the other 292. Intervals should cover 90% of these. There are
three kinds:

* "jackknife+": predictions without each row, plus and minus its own residual;
* "loo": the prediction, plus and minus a quantile of the held-out residuals;
* "risk": the same with the residuals that the memory matrix estimates.

For comparison, the figure shows the prediction plus and minus a quantile of the
training residuals. "Best" is the iterate with the smallest ``loo_path_`` on each split,
and numbers are means over the splits.

Up to the best iterate and beyond, all three kinds cover 90% and have the same width. At
the last iterate, which fits the training rows almost exactly, "risk" covers a few
percent too few, and the others are three times as wide as at the best iterate.
Intervals from training residuals cover too few rows at the best iterate already, and
only one in eight at the end.

Run ``python examples/plot_intervals.py --output DIR`` to write the figure.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skacv import IterativeRidge

COVERAGE = 0.9
STYLES = {
    "jackknife+": {"color": "#0072B2", "linewidth": 2.4},
    "loo": {"color": "#D55E00", "dashes": (5, 2), "linewidth": 1.8},
    "risk": {"color": "#009E73", "dashes": (1, 1), "linewidth": 2},
    "training residuals": {"color": "#CC79A7", "linewidth": 2},
}
METHODS = list(STYLES)[:-1]


def splits(n_rows, n_splits):
    """Training and test rows, standardised by the training rows."""
    X, y = load_diabetes(return_X_y=True)
    for seed in range(n_splits):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, train_size=n_rows, random_state=seed
        )
        scale = make_pipeline(
            PolynomialFeatures(3, include_bias=False), StandardScaler()
        )
        yield scale.fit_transform(X_train), y_train, scale.transform(X_test), y_test


def around_training_residuals(model, X, y, X_test):
    """The prediction plus and minus a quantile of the training residuals."""
    width = np.quantile(np.abs(y - model.predict(X)), COVERAGE, method="higher")
    return model.predict(X_test)[:, None] + [-width, width]


def coverage_and_width(ends, y):
    lower, upper = ends.T
    return np.mean((lower <= y) & (y <= upper)), np.mean(upper - lower)


def judged(model, X, y, X_test, y_test):
    """Coverage and mean width of every kind of intervals of one iterate."""
    results = [model.predict_interval(X_test, COVERAGE, method) for method in METHODS]
    results.append(around_training_residuals(model, X, y, X_test))
    return [coverage_and_width(ends, y_test) for ends in results]


def iterates_to_judge(max_iter):
    return np.unique(np.geomspace(1, max_iter, 16).astype(int))


def along_one_run(X, y, X_test, y_test, max_iter):
    """One run: its intervals along the iterations, and at the best iterate."""
    model = IterativeRidge(
        alpha=0.0, solver="nesterov", max_iter=max_iter, tol=0, loo=True, keep_data=True
    ).fit(X, y)
    best = int(model.loo_path_.argmin())
    *path, at_best = [
        judged(model.at_iteration(t), X, y, X_test, y_test)
        for t in [*iterates_to_judge(max_iter), best]
    ]
    return path, at_best, best


def print_table(rows):
    """Mean and standard error of the coverage, and mean width."""
    print(f"{'iterate':14}" + "".join(f"{name:>20}" for name in STYLES))
    for label, repeats in rows.items():
        repeats = np.array(repeats)  # (n_splits, n_kinds, 2)
        mean = repeats.mean(axis=0)
        error = repeats[:, :, 0].std(axis=0, ddof=1) / np.sqrt(len(repeats))
        cells = [f"{c:.3f} ± {e:.3f}" for c, e in zip(mean[:, 0], error)]
        print(f"{label:14}" + "".join(f"{cell:>20}" for cell in cells))
        print(f"{'  width':14}" + "".join(f"{width:20.0f}" for width in mean[:, 1]))


def draw(axes, iterates, paths, best):
    """Mean coverage and width along the iterations."""
    coverage, width = np.moveaxis(np.mean(paths, axis=0), 2, 0)
    for ax, values in zip(axes, (coverage, width)):
        ax.axvline(best, color="#666666", linestyle="--", linewidth=1, zorder=1)
        for heights, (name, style) in zip(values.T, STYLES.items()):
            ax.plot(iterates, heights, label=name, **style)
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set_xlim(iterates[0], iterates[-1])
        ax.set_ylim(bottom=0)
        ax.set_xlabel("iteration")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylim(0, 1)
    axes[0].axhline(COVERAGE, color="black", linewidth=1)
    axes[0].annotate(
        "best by\nloo_path_", (best, 0.03), (4, 0), textcoords="offset points"
    )
    axes[0].set_ylabel(f"share of test rows covered, nominal {COVERAGE}")
    axes[1].set_ylabel("mean width")


def main(n_rows=150, n_splits=10, max_iter=300, output=None):
    """Print the table and draw the figure."""
    data = list(splits(n_rows, n_splits))
    n_columns = data[0][0].shape[1]
    print(f"Coverage (nominal {COVERAGE}) and mean width: {n_columns} columns,")
    print(f"{n_rows} training rows, {n_splits} splits.\n")
    runs = [along_one_run(*split, max_iter) for split in data]
    paths, at_best, best = zip(*runs)
    iterates = iterates_to_judge(max_iter)
    early = len(iterates) // 4
    print_table(
        {
            f"early ({iterates[early]})": [path[early] for path in paths],
            f"best ({np.median(best):.0f})": at_best,
            f"last ({max_iter})": [path[-1] for path in paths],
        }
    )
    figure, axes = plt.subplots(1, 2, figsize=(7, 3.8), constrained_layout=True)
    draw(axes, iterates, paths, np.median(best))
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    if output is not None:
        path = Path(output) / "intervals.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
