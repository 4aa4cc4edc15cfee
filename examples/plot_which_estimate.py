"""
Which estimate to use
=====================

Which estimate is best depends on the numbers of rows and columns, and on the loss.

* **To choose an iterate** (first panel), ``criterion="auto"`` uses exact leave-one-out
  if it needs only one decomposition of X. That is the case for linear updates with the
  squared error (``IterativeRidge``) and up to about a thousand rows, or two thousand
  for some shapes. Everywhere else, and for l1 penalties and other losses at any size,
  it uses five random folds. The areas are what the estimators themselves report.
* **To estimate the risk of a given iterate** (second panel), leave-one-out is best on a
  few hundred rows. With more rows the memory matrix is as good, and needs no left-out
  rows.
* **If the rows do not fit in memory** (darker areas), they can be spread over workers.
  With the squared error and up to 5000 columns, a ``RowSummary`` from one pass over the
  rows gives the memory matrix, folds, and leave-one-out of some rows.

Rows in groups or in time need a splitter that respects them, whatever their number.

Run ``python examples/plot_which_estimate.py --output DIR`` to write the figure.
"""

from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np

from skacv import IterativeRidge, TrajectoryLasso, TrajectoryLogisticRegression
from skacv._estimator.estimates.terms import terms_of

MODELS = {
    "squared error, linear updates\n(IterativeRidge)": IterativeRidge(),
    "squared error, l1 penalty\n(TrajectoryLasso)": TrajectoryLasso("path"),
    "other losses\n(TrajectoryLogisticRegression)": TrajectoryLogisticRegression(),
}
# Rows from which the memory matrix says as well what an iterate costs as leave-one-out.
MANY_ROWS = 1000
# So many bytes of float64 do not fit in memory.
LARGE, COLUMNS_OF_SUMMARY = 16e9, 5000
CENTRED = {"ha": "center", "va": "center"}
LEAVE_ONE_OUT, FOLDS, MEMORY_MATRIX = "#9CC4E0", "#F6D68B", "#9AD5C2"


def is_left_out(model, n_rows, n_columns):
    """Whether "auto" leaves every row out, as the terms of a run say before it."""
    X = SimpleNamespace(shape=(n_rows, n_columns))
    return terms_of(model).leaves_one_out_cheaply(X, y=np.array([0, 1]))


def draw_choice(ax, rows, columns):
    """What "auto" chooses by, for linear updates with the squared error."""
    model, *_ = MODELS.values()
    chosen = [[is_left_out(model, n, p) for n in rows] for p in columns]
    colours = plt.matplotlib.colors.ListedColormap([FOLDS, LEAVE_ONE_OUT])
    ax.pcolormesh(rows, columns, chosen, cmap=colours, vmin=0, vmax=1, rasterized=True)
    ax.set_title('To choose an iterate: criterion="auto"', loc="left")
    ax.text(110, 1e3, "leave-one-out:\nlinear updates,\nsquared error", **CENTRED)
    words = "five random folds\n(l1 penalties and other losses:\nat any size)"
    ax.text(6e4, 1e3, words, **CENTRED)
    ax.text(6e6, 2e4, "over 16 GB:\nrows on workers", **CENTRED)


def draw_risk(ax, rows, columns):
    """What estimates the risk of a given iterate."""
    for begin, end, colour in (
        (rows[0], MANY_ROWS, LEAVE_ONE_OUT),
        (MANY_ROWS, rows[-1], MEMORY_MATRIX),
    ):
        ax.axvspan(begin, end, color=colour, lw=0)
    ends = LARGE / 8 / COLUMNS_OF_SUMMARY, rows[-1]
    ax.plot(ends, [COLUMNS_OF_SUMMARY] * 2, color="black", lw=0.8)
    ax.set_title("To estimate the risk of a given iterate", loc="left")
    ax.text(100, 1e3, "leave-\none-out", **CENTRED)
    ax.text(4e4, 1e3, "memory matrix", **CENTRED)
    ax.text(6e6, 2.3e4, "over 16 GB:\nrows on workers", **CENTRED)
    ax.text(9.5e6, 1.7e3, "in one pass:\nRowSummary", **CENTRED)


def main(n_sizes=200, output=None):
    """Print what is used at a few sizes and draw the picture."""
    rows, columns = (np.logspace(1, top, n_sizes).astype(int) for top in (8, 5))
    kinds = [name.split("\n")[0] for name in MODELS]
    print(f"| rows | columns | {' | '.join(kinds)} |\n|{'---|' * 5}")
    for n_rows, n_columns in ((100, 50), (300, 5000), (5000, 100), (1_000_000, 100)):
        elapsed = [
            "leave-one-out" if is_left_out(model, n_rows, n_columns) else "five folds"
            for model in MODELS.values()
        ]
        print(f"| {n_rows} | {n_columns} | {' | '.join(elapsed)} |")
    figure, axes = plt.subplots(
        2, 1, figsize=(7, 6.6), sharex=True, constrained_layout=True
    )
    for ax, draw in zip(axes, (draw_choice, draw_risk)):
        draw(ax, rows, columns)
        n_most = LARGE / 8 / columns
        ax.fill_betweenx(columns, n_most, rows[-1], color="#808080", alpha=0.4, lw=0)
        ax.set(xscale="log", yscale="log", ylabel="columns")
        ax.set(xlim=(rows[0], rows[-1]), ylim=(columns[0], columns[-1]))
    axes[-1].set_xlabel("rows")
    if output is not None:
        path = Path(output) / "which_estimate.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
