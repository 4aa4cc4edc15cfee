"""
Which estimate to use
=====================

The number of rows and columns and the loss decide. The colours of the figure show what
``criterion="auto"`` uses to choose an iterate, as the estimators themselves report it.

* **To choose an iterate**, "auto" uses exact leave-one-out where one decomposition of X
  leaves every row out. That is so for linear updates with the squared error and up to
  about a thousand rows, or two thousand for some shapes. Everywhere else it uses five
  random folds.
* **To estimate the risk of a given iterate**, leave-one-out is best on a few hundred
  rows. With more rows (right of the dashed line) the memory matrix is as good, and
  leaves no row out.
* **Where rows do not fit in memory** (grey), they may be spread over workers. With the
  squared error and up to 5000 columns, a ``RowSummary`` from one pass over the rows
  gives the memory matrix, folds, and leave-one-out of some rows.

Rows in groups or in time need the splitter that respects them, whatever their number.

Run ``python examples/plot_which_estimate.py --output DIR`` to write the figure.
"""

from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np

from skacv import IterativeRidge, TrajectoryLasso, TrajectoryLogisticRegression

MODELS = {
    "squared error, linear updates\n(IterativeRidge)": IterativeRidge(),
    "squared error, l1 penalty\n(TrajectoryLasso)": TrajectoryLasso("path"),
    "other losses\n(TrajectoryLogisticRegression)": TrajectoryLogisticRegression(),
}
# Rows from which the memory matrix says as well what an iterate costs as leave-one-out.
MANY_ROWS = 1000
# So many bytes of float64 do not fit in memory.
LARGE, COLUMNS_OF_SUMMARY = 16e9, 5000
LEAVE_ONE_OUT, FOLDS = "#7b3294", "#fdb863"


def is_left_out(model, n_rows, n_columns):
    """Whether "auto" leaves every row out: the hook by which it is decided."""
    X = SimpleNamespace(shape=(n_rows, n_columns))
    return model._leaves_one_out_cheaply(X, y=np.array([0, 1]))


def draw(ax, model, rows, columns):
    """What is used to choose, and where other estimates come in."""
    n_most = LARGE / 8 / np.array(columns)
    chosen = [[is_left_out(model, n, p) for n in rows] for p in columns]
    colours = plt.matplotlib.colors.ListedColormap([FOLDS, LEAVE_ONE_OUT])
    ax.pcolormesh(rows, columns, chosen, cmap=colours, vmin=0, vmax=1, alpha=0.6)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.axvline(MANY_ROWS, color="black", lw=1, ls="--")
    ax.fill_betweenx(columns, n_most, rows[-1], color="grey", alpha=0.4, lw=0)
    ax.set_xlim(rows[0], rows[-1])
    ax.set_ylim(columns[0], columns[-1])
    for position, estimate in ((100, "leave-one-out"), (60_000, "memory matrix")):
        ax.text(
            position, 25, f"risk of an iterate:\n{estimate}", ha="center", va="center"
        )


def main(n_sizes=40, output=None):
    """Print what is used at a few sizes and draw the picture."""
    rows, columns = (np.logspace(1, top, n_sizes).astype(int) for top in (8, 5))
    figure, axes = plt.subplots(
        3, 1, figsize=(7, 9), sharex=True, constrained_layout=True
    )
    kinds = [name.split("\n")[0] for name in MODELS]
    print(f"| rows | columns | {' | '.join(kinds)} |\n|{'---|' * 5}")
    for n_rows, n_columns in ((100, 50), (300, 5000), (5000, 100), (1_000_000, 100)):
        elapsed = [
            "leave-one-out" if is_left_out(model, n_rows, n_columns) else "five folds"
            for model in MODELS.values()
        ]
        print(f"| {n_rows} | {n_columns} | {' | '.join(elapsed)} |")
    for ax, (name, model) in zip(axes, MODELS.items()):
        draw(ax, model, rows, columns)
        ax.set_title(name.replace("\n", " "), loc="left", fontsize="medium")
        ax.set_ylabel("columns")
    axes[-1].set_xlabel("rows")
    for ax in axes:
        ax.text(4e6, 3e4, "over 16 GB:\nrows on workers", ha="center", va="center")
    for ax in axes[:2]:
        ends = LARGE / 8 / COLUMNS_OF_SUMMARY, rows[-1]
        ax.plot(ends, [COLUMNS_OF_SUMMARY] * 2, color="black", lw=0.8)
        ax.text(9e6, 2e3, "one pass:\nRowSummary", ha="center", va="center")
    handles = [
        plt.Rectangle((0, 0), 1, 1, color=colour, alpha=0.6)
        for colour in (LEAVE_ONE_OUT, FOLDS)
    ]
    labels = "to choose: exact leave-one-out", "to choose: five random folds"
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False)
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
