"""
Which coefficients are not zero
===============================

A lasso sets most coefficients to zero and shrinks the others, and along its run they
move. Debiased, every iterate says of each coefficient where the true one is: the memory
matrix knows what the rows have taught the run, so no estimate of the noise is needed.

Two sets of real data, both with more rows than columns, so that there is a classic to
compare with:

* The 442 patients of the diabetes data with all squares and products of their ten
  features: a lasso, its strength and iterate chosen by leave-one-out or folds, beside
  least squares and their t-tests. Some columns are so like others that nobody can tell
  them apart; least squares give them enormous errors, and debiasing refuses to ask for
  a few.
* The 569 tumours of the breast cancer data with six of their features: a logistic
  regression, beside maximum likelihood and its Wald intervals.

Intervals are nominal 95%, of one coefficient at a time. The last panel has the run of
the first: where the coefficients still move, the debiased ones stand.

Run ``python examples/plot_coefficient_intervals.py --output DIR`` to write the figure.
"""

import argparse
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


def told_apart(model, columns):
    """The columns that the model can be asked for."""
    found = []
    for column in columns:
        try:
            model.coef_table([column])
        except ValueError:
            continue
        found.append(column)
    return found


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
    places = np.arange(len(table["column"]))[::-1]
    estimate, error, quantile = classic
    ax.axvline(0, color="black", linewidth=0.8)
    ax.hlines(places + 0.14, table["lower"], table["upper"], DEBIASED, linewidth=2.4)
    ax.plot(table["estimate"], places + 0.14, "o", color=DEBIASED, label="debiased")
    reach = quantile * error
    ax.hlines(places - 0.14, estimate - reach, estimate + reach, CLASSIC, linewidth=1.4)
    ax.plot(estimate, places - 0.14, "s", color=CLASSIC, markersize=4, label=name)
    ax.plot(table["coef"], places, "x", color="black", markersize=5, label="as it is")
    ends = np.concatenate([table["lower"], table["upper"], [0]])
    ends = ends[np.isfinite(ends)]
    span = np.ptp(ends)
    ax.set_xlim(ends.min() - 0.25 * span, ends.max() + 0.25 * span)
    ax.set_yticks(places, table["column"])
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_xlabel(f"coefficient, {100 * COVERAGE:g}% interval")
    # Below: intervals of columns that are alike go all across.
    ax.legend(frameon=False, ncol=3, loc="upper center", bbox_to_anchor=(0.4, -0.13))


def taken(classic, places):
    """Estimates and errors of some columns."""
    estimate, error, quantile = classic
    return estimate[places], error[places], quantile


def diabetes(ax, along, n_rows, max_iter):
    """The lasso beside least squares; draws the columns with the smallest p-values."""
    X, y = products_of_diabetes()
    X, y = X[:n_rows], y[:n_rows]
    lasso = TrajectoryLasso(
        "path", max_iter=max_iter, risk=True, keep_data=True, random_state=0
    )
    model = TrajectoryEarlyStoppingCV(lasso).fit(X, y)
    asked = np.array(told_apart(model, X.columns))
    table = model.coef_table(asked)
    places = X.columns.get_indexer(asked)
    classic = taken(least_squares(X, y), places)
    ratio = np.median(table["standard_error"] / classic[1])
    found = (table["lower"] > 0) | (table["upper"] < 0)
    clear = np.abs(classic[0]) > classic[2] * classic[1]
    print(f"Diabetes with products: {X.shape[1]} columns, {len(asked)} told apart.")
    print(f"Not zero: {found.sum()} by debiasing, {clear.sum()} by least squares;")
    print(f"standard errors are {ratio:.2f} of those, in the median.\n")
    least = np.argsort(table["p_value"].to_numpy())[:N_SHOWN]
    table = table.iloc[least]
    classic = taken(classic, least)
    print_table(table, classic, "least squares")
    draw(ax, table, classic, "least squares")
    ax.set_title("diabetes with products, a lasso", loc="left")
    run = TrajectoryLasso(0.5, max_iter=60, tol=0, keep_data=True, random_state=0)
    run.fit(X, y)
    CoefficientIntervalDisplay.from_estimator(run, ["bmi", "bp", "sex"], ax=along)
    along.set_title("along the run of one lasso", loc="left")


def cancer(ax, n_rows, max_iter):
    """The logistic regression beside maximum likelihood."""
    X, y = tumours()
    X, y = X[:n_rows], y[:n_rows]
    logistic = TrajectoryLogisticRegression(
        100.0, max_iter=max_iter, risk=True, keep_data=True, random_state=0
    )
    model = TrajectoryEarlyStoppingCV(logistic).fit(X, y)
    table = model.coef_table()
    classic = maximum_likelihood(X, y == "malignant")
    print(f"\nBreast cancer: {X.shape[1]} columns, iterate {model.best_iter_}.\n")
    print_table(table, classic, "maximum likelihood")
    draw(ax, table, classic, "maximum likelihood")
    ax.set_title("malignant tumours, a logistic regression", loc="left")


def main(n_rows=None, max_iter=20, output=None):
    """Print the tables and draw the figure."""
    figure, axes = plt.subplots(1, 3, figsize=(15, 5.2), constrained_layout=True)
    diabetes(axes[0], axes[2], n_rows, max_iter)
    cancer(axes[1], n_rows, 10 * max_iter)
    if output is not None:
        path = Path(output) / "coefficient_intervals.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
