"""
Which coefficients are not zero
===============================

A lasso sets most coefficients to zero and shrinks the others, and along its run they
change. ``coef_table`` debiases the coefficients of any iterate, and gives an interval
and a test for each of them.

* **The diabetes data**, 442 patients with all squares and products of their ten
  features. There are several rows per column, so the sample covariance of the columns
  is used. Debiasing any iterate then gives least squares and its t-tests. Four of 64
  intervals do not contain zero; three would be expected if all columns were zero. Some
  columns are nearly combinations of others: their intervals are many times as long.
* **The breast cancer data**, 569 tumours with six of their features: a logistic
  regression, compared with maximum likelihood and its Wald intervals. Maximum
  likelihood gives coefficients that are somewhat too large. Debiasing corrects for
  that: its coefficients are a few percent smaller.
* **Simulated rows**, half as many as columns, so that least squares does not exist. The
  memory matrix accounts for what the run has fitted, and no estimate of the noise is
  needed. The last panel shows the run. While the coefficients still change, the
  intervals of the debiased ones already contain the true ones, which are dotted.

Intervals are nominal 95%, of one coefficient at a time.

Run ``python examples/plot_coefficient_intervals.py --output DIR`` to write the figure.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from scipy.stats import norm, t
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skacv import (
    CoefficientIntervalDisplay,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)

COVERAGE = 0.95
N_SHOWN = 12
# Intervals that are drawn are at most so many times as long as the shortest.
LONGEST = 10
DEBIASED, CLASSIC = "#0072B2", "#D55E00"
TUMOUR = [
    "mean radius",
    "mean texture",
    "mean smoothness",
    "mean concave points",
    "mean symmetry",
    "mean fractal dimension",
]


def products_of_diabetes():
    """Standardised features with their squares and products, and the target."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    scale = make_pipeline(
        StandardScaler(), PolynomialFeatures(2, include_bias=False), StandardScaler()
    ).set_output(transform="pandas")
    # The square of a feature with two values is that feature again.
    return scale.fit_transform(X).drop(columns="sex^2"), y


def tumours():
    """Six standardised features, and whether the tumour is malignant."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = StandardScaler().set_output(transform="pandas").fit_transform(X[TUMOUR])
    return X, np.where(y == 0, "malignant", "benign")


def least_squares(X, y):
    """Estimates and standard errors of all columns, and the quantile of t."""
    A = np.c_[np.ones(len(y)), X]
    coef, rss, *_ = np.linalg.lstsq(A, y, rcond=None)
    n_free = len(y) - A.shape[1]
    error = np.sqrt(rss / n_free * np.diag(np.linalg.inv(A.T @ A)))
    return coef[1:], error[1:], t.ppf((1 + COVERAGE) / 2, n_free)


def maximum_likelihood(X, y):
    """The same of a logistic model, by Newton's method."""
    A = np.c_[np.ones(len(y)), X]
    coef = np.zeros(A.shape[1])
    for _ in range(25):
        share = expit(A @ coef)
        information = A.T @ ((share * (1 - share))[:, None] * A)
        coef += np.linalg.solve(information, A.T @ (y - share))
    error = np.sqrt(np.diag(np.linalg.inv(information)))
    return coef[1:], error[1:], norm.ppf((1 + COVERAGE) / 2)


def print_table(table, classic, name):
    """Every coefficient, by both ways."""
    print(f"{'column':24}{'coef':>8}{'debiased':>10}{'z':>8}{'interval':>18}{name:>20}")
    for row, estimate, error in zip(table.to_dict("records"), *classic[:2]):
        interval = f"[{row['lower']:.1f}, {row['upper']:.1f}]"
        print(
            f"{row['column']:24}{row['coef']:8.1f}{row['estimate']:10.1f}"
            f"{row['z']:8.1f}{interval:>18}{estimate:14.1f} ± {error:.1f}"
        )


def draw(ax, table, classic, name):
    """Intervals by both ways, one above the other; the axis is that of the first."""
    heights = np.arange(len(table["column"]))[::-1]
    estimate, error, quantile = classic
    ax.axvline(0, color="black", linewidth=0.8)
    ax.hlines(heights + 0.14, table["lower"], table["upper"], DEBIASED, linewidth=2.4)
    ax.plot(table["estimate"], heights + 0.14, "o", color=DEBIASED, label="debiased")
    reach = quantile * error
    ax.hlines(
        heights - 0.14, estimate - reach, estimate + reach, CLASSIC, linewidth=1.4
    )
    ax.plot(estimate, heights - 0.14, "s", color=CLASSIC, markersize=4, label=name)
    style = {"color": "black", "markersize": 5, "label": "not debiased"}
    ax.plot(table["coef"], heights, "x", **style)
    ends = np.concatenate([table["lower"], table["upper"], [0]])
    ends = ends[np.isfinite(ends)]
    span = np.ptp(ends)
    ax.set_xlim(ends.min() - 0.25 * span, ends.max() + 0.25 * span)
    ax.set_yticks(heights, table["column"])
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_xlabel(f"coefficient, {100 * COVERAGE:g}% interval")
    # Below: intervals of columns that are alike go all across.
    ax.legend(frameon=False, ncol=3, loc="upper center", bbox_to_anchor=(0.4, -0.14))


def draw_classic(classic, heights):
    """Estimates and errors of some columns."""
    estimate, error, quantile = classic
    return estimate[heights], error[heights], quantile


def diabetes(ax, n_rows, max_iter):
    """The lasso and least squares; draws the columns with the smallest p-values."""
    X, y = products_of_diabetes()
    X, y = X[:n_rows], y[:n_rows]
    lasso = TrajectoryLasso("path", max_iter=max_iter, keep_data=True, random_state=0)
    model = TrajectoryEarlyStoppingCV(lasso).fit(X, y)
    table = model.coef_table(X.columns)
    classic = least_squares(X, y)
    excludes_zero = (table["lower"] > 0) | (table["upper"] < 0)
    used = np.count_nonzero(model.coef_)
    difference = np.abs(table["standard_error"] / classic[1] - 1).max()
    print(f"Diabetes with products: {X.shape[1]} columns, the lasso uses {used}.")
    print(f"Intervals without zero: {excludes_zero.sum()}; if all columns were zero,")
    print(f"{(1 - COVERAGE) * X.shape[1]:.1f} would be expected.")
    print(f"Standard errors are those of least squares to {difference:.0e}.\n")
    least = np.argsort(table["p_value"].to_numpy())[:N_SHOWN]
    table, classic = table.iloc[least], draw_classic(classic, least)
    print_table(table, classic, "least squares")
    # Behind them come intervals that are hundreds of times as long.
    short = (
        table["standard_error"] < LONGEST * table["standard_error"].min()
    ).to_numpy()
    draw(ax, table[short], draw_classic(classic, short), "least squares")
    ax.set_title("Diabetes with products, a lasso", loc="left")


def simulated(ax):
    """Along a run on more columns than rows, whose true coefficients are known."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 400))
    true = np.zeros(400)
    true[:10] = 1, 0.5, 0, 1, 1, 1, 1, 1, 1, 1
    y = X @ true + rng.standard_normal(200)
    run = TrajectoryLasso(0.1, max_iter=60, tol=0, keep_data=True, random_state=0)
    run.fit(X, y)
    table = run.coef_table(covariance="nodewise", columns=[0, 1, 2], iteration=5)
    print("\nSimulated, 200 x 400, iterate 5:\n")
    print(f"{'true':>6}{'coef':>8}{'debiased':>10}{'interval':>16}")
    for value, row in zip(true, table.to_dict("records")):
        interval = f"[{row['lower']:.2f}, {row['upper']:.2f}]"
        print(f"{value:6.1f}{row['coef']:8.2f}{row['estimate']:10.2f}{interval:>16}")
    CoefficientIntervalDisplay.from_estimator(run, [0, 1, 2], ax=ax)
    for value in true[:3]:
        ax.axhline(value, color="black", linewidth=0.8, linestyle=":")
    title = "A lasso, 200 x 400: debiased (dots), lasso (dashed), true (dotted)"
    ax.set_title(title, loc="left", fontsize="medium")


def cancer(ax, n_rows, max_iter):
    """The logistic regression and maximum likelihood."""
    X, y = tumours()
    X, y = X[:n_rows], y[:n_rows]
    logistic = TrajectoryLogisticRegression(
        100.0, max_iter=max_iter, keep_data=True, random_state=0
    )
    model = TrajectoryEarlyStoppingCV(logistic).fit(X, y)
    table = model.coef_table(X.columns)
    classic = maximum_likelihood(X, y == "malignant")
    print(f"\nBreast cancer: {X.shape[1]} columns, iterate {model.best_iter_}.\n")
    print_table(table, classic, "maximum likelihood")
    draw(ax, table, classic, "maximum likelihood")
    ax.set_title("Malignant tumours, a logistic regression", loc="left")


def main(n_rows=None, max_iter=20, output=None):
    """Print the tables and draw the figure."""
    figure, axes = plt.subplots(3, 1, figsize=(7, 12), constrained_layout=True)
    diabetes(axes[0], n_rows, max_iter)
    cancer(axes[1], n_rows, 10 * max_iter)
    simulated(axes[2])
    if output is not None:
        path = Path(output) / "coefficient_intervals.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
