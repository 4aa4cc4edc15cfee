"""
A path from one pass over a file
================================

A file of rows is read once, a block at a time, as a ``numpy.memmap``, so the rows need
not fit in memory. The result is a ``RowSummary``: means and second moments of every
fold, and 1000 of the rows. A lasso path is then run on the summary and stopped, in less
time than the pass over the file. Any other model with the squared error can be run in
the same way.

The signal is spread over many correlated columns and is weak compared with the noise,
so the best iterate is not at the end of the path. The memory matrix and five folds
estimate the error of every iterate from the summary, as they would from all rows. The
true error is known here.

``SGDRegressor`` goes through the rows once an epoch. It holds out a tenth of them to
stop early. After three epochs its error is still about a percent above that of the
noise. The error of the stopped lasso path is less than a hundredth of a percent above
it.

Run ``python examples/plot_one_pass.py --output DIR`` to write the figure, with
``--rows 5000000`` on a file of 4 GB.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from numpy.lib.format import open_memmap
from sklearn.linear_model import SGDRegressor
from threadpoolctl import threadpool_limits

from skacv import RowSummary, TrajectoryEarlyStoppingCV, TrajectoryLasso

N_COLUMNS, ROWS_AT_A_TIME = 100, 50_000
# Of neighbouring columns.
CORRELATION = 0.9
EPOCHS = 3


def problem(n_rows):
    """Coefficients, covariance and noise: all columns matter, a little."""
    index = np.arange(N_COLUMNS)
    covariance = CORRELATION ** np.abs(index[:, None] - index)
    coef = np.where(index % 10 == 0, 1.0, 0.05)
    # Least squares would add a tenth to the variance of the signal.
    signal = coef @ covariance @ coef
    noise = np.sqrt(0.1 * signal * n_rows / N_COLUMNS)
    return coef, covariance, noise


def write(folder, n_rows):
    """X and y as files, drawn a block of rows at a time."""
    coef, covariance, noise = problem(n_rows)
    root, rng = np.linalg.cholesky(covariance).T, np.random.default_rng(0)
    X = open_memmap(folder / "X.npy", "w+", np.float64, (n_rows, N_COLUMNS))
    y = open_memmap(folder / "y.npy", "w+", np.float64, (n_rows,))
    for first in range(0, n_rows, ROWS_AT_A_TIME):
        rows = slice(first, min(first + ROWS_AT_A_TIME, n_rows))
        size = rows.stop - rows.start
        X[rows] = rng.standard_normal((size, N_COLUMNS)) @ root
        y[rows] = X[rows] @ coef + noise * rng.standard_normal(size)
    X.flush()
    y.flush()


def read(folder):
    """The files as they are on the disk."""
    return [np.load(folder / f"{name}.npy", mmap_mode="r") for name in "Xy"]


def true_risk(coef, n_rows):
    """Of coefficients (n, n_columns), over the variance of the noise."""
    true_coef, covariance, noise = problem(n_rows)
    error = np.atleast_2d(coef) - true_coef
    return 1 + np.einsum("tp,pq,tq->t", error, covariance, error) / noise**2


def seconds(work, *arguments):
    begun = perf_counter()
    return work(*arguments), perf_counter() - begun


def draw(ax, model, n_rows):
    """What the path is expected to cost, by two estimates, and what it does.

    Above the error of the chosen iterate: what the noise of these rows happens to be is
    in all of an estimate, and is larger than what iterates differ by.
    """
    lasso, noise, best = model.estimator_, problem(n_rows)[2], model.best_iter_
    truth = true_risk(lasso.coef_path_, n_rows)
    paths = {
        ("memory matrix", "#0072B2", "-"): lasso.risk_path_ / noise**2,
        ("five folds", "#D55E00", "-"): lasso.cv_path_ / noise**2,
        ("training", "grey", ":"): lasso.train_path_ / noise**2,
        ("truth", "black", "-"): truth,
    }
    for (label, colour, style), path in paths.items():
        ax.plot(1e6 * (path - path[best]), style, color=colour, label=label)
    ax.axvline(best, color="#666666", linestyle="--", lw=1, zorder=1)
    rise = 1e6 * (truth[-1] - truth[best])
    ax.set_ylim(-2 * rise, 4 * rise)
    ax.set_xlim(0, len(truth) - 1)
    ax.set_xlabel(f"iteration, along 30 values of alpha ({best} chosen by five folds)")
    ax.set_title("Held-out errors along a path from one pass", loc="left")
    ax.set_ylabel("error above that of the chosen iterate,\nin millionths of the noise")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)


@threadpool_limits.wrap(limits=1)
def main(n_rows=500_000, output=None):
    """Print the table and draw the path."""

    def progress(n_so_far):
        print(f"\r{n_so_far} of {n_rows} rows", end="", flush=True)

    with TemporaryDirectory() as folder:
        folder = Path(folder)
        write(folder, n_rows)

        def one_pass():
            return RowSummary.from_arrays(*read(folder), progress=progress)

        def epochs():
            sgd = SGDRegressor(
                early_stopping=True, max_iter=EPOCHS, tol=None, random_state=0
            )
            return sgd.fit(*read(folder))

        summary, reading = seconds(one_pass)
        lasso = TrajectoryLasso("path", max_iter=10, risk=True, cv=5)
        stopping = TrajectoryEarlyStoppingCV(lasso, criterion="cv", patience=None)
        model, fitting = seconds(stopping.fit, summary)
        sgd, theirs = seconds(epochs)
    print("\n\n| fit | seconds | true error over that of the noise |\n|---|---|---|")
    last = true_risk(model.estimator_.coef_path_[-1], n_rows)[0]
    chosen, error = (true_risk(fitted.coef_, n_rows)[0] for fitted in (model, sgd))
    print(f"| one pass over {n_rows} x {N_COLUMNS} | {reading:.2f} | |")
    print(f"| lasso path on the summary, stopped | {fitting:.2f} | {chosen:.6f} |")
    print(f"| its last iterate | | {last:.6f} |")
    print(f"| SGDRegressor, {EPOCHS} epochs | {theirs:.2f} | {error:.6f} |")
    figure, ax = plt.subplots(figsize=(7, 4.2), constrained_layout=True)
    draw(ax, model, n_rows)
    if output is not None:
        path = Path(output) / "one_pass.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--output", help="directory for the figure")
    arguments = parser.parse_args()
    main(arguments.rows, arguments.output)
