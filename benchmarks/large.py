"""Is one pass over rows on disk faster than epochs of SGD, in less than a gigabyte?

One pass leaves a lasso path, its estimates and the stop; three epochs of
``SGDRegressor`` read the same file.

The file is made where ``--folder`` says, and read as a ``numpy.memmap`` by a process of
its own for each side, on one thread: its peak memory is that of the whole process, less
what it takes to import scikit-learn and skacv.
"""

from pathlib import Path
from tempfile import gettempdir

import numpy as np
from numpy.lib.format import open_memmap
from sklearn.linear_model import SGDRegressor
from threadpoolctl import threadpool_limits

from skacv import RowSummary, TrajectoryEarlyStoppingCV, TrajectoryLasso

from .framework import Row, alone, arguments, peak_megabytes, report, seconds

N_COLUMNS, N_ACTIVE, NOISE = 100, 10, 3.0
ROWS_AT_A_TIME = 100_000
EPOCHS = 3


def files(folder, n_rows):
    """Paths of X and y, which are made where they are not there."""
    folder = Path(folder)
    paths = [folder / f"skacv-large-{n_rows}-{name}.npy" for name in "Xy"]
    if not all(path.exists() for path in paths):
        _write(n_rows, *paths)
    return paths


def _write(n_rows, *paths):
    rng = np.random.default_rng(0)
    X = open_memmap(paths[0], "w+", np.float64, (n_rows, N_COLUMNS))
    y = open_memmap(paths[1], "w+", np.float64, (n_rows,))
    for first in range(0, n_rows, ROWS_AT_A_TIME):
        rows = slice(first, min(first + ROWS_AT_A_TIME, n_rows))
        X[rows] = rng.standard_normal((rows.stop - rows.start, N_COLUMNS))
        noise = rng.standard_normal(rows.stop - rows.start)
        y[rows] = X[rows] @ coefficients() + NOISE * noise
    X.flush()
    y.flush()


def coefficients():
    return 1.0 * (np.arange(N_COLUMNS) < N_ACTIVE)


def true_risk(model):
    """Of Gaussian rows of variance one and mean zero."""
    error = model.coef_ - coefficients()
    return float(error @ error + NOISE**2 + np.ravel(model.intercept_)[0] ** 2)


def one_pass(paths):
    """A path of thirty alphas, its risk and five folds, and the stop."""
    X, y = (np.load(path, mmap_mode="r") for path in paths)
    summary = RowSummary.from_arrays(X, y)
    lasso = TrajectoryLasso("path", max_iter=10, risk=True, cv=5)
    stopped = TrajectoryEarlyStoppingCV(lasso).fit(summary)
    return {"true": true_risk(stopped), "said": stopped.best_score_}


def epochs(paths):
    """As many epochs of SGD, judged by a tenth of the rows."""
    X, y = (np.load(path, mmap_mode="r") for path in paths)
    model = SGDRegressor(early_stopping=True, max_iter=EPOCHS, tol=None).fit(X, y)
    return {"true": true_risk(model)}


def measured(work, paths):
    """Seconds and megabytes of this process, and what the work has found."""
    with threadpool_limits(1):
        elapsed, results = seconds(work, paths)
    return elapsed, peak_megabytes(), results


def rows(folder, n_rows):
    paths = files(folder, n_rows)
    _, imports, _ = alone(measured, len, paths)
    elapsed, peak, results = alone(measured, one_pass, paths)
    sgd_taken, _, sgd = alone(measured, epochs, paths)
    work = f"lasso path, risk, 5 folds and stop, {n_rows} x {N_COLUMNS}, a memmap"
    against = f"SGDRegressor(early_stopping=True), {EPOCHS} epochs"
    estimate = f"said {results['said']:.4f}, true {results['true']:.4f}"
    accuracy = f"{estimate}; theirs {sgd['true']:.4f}"
    yield "one-pass", Row.speed(work, against, elapsed, sgd_taken, accuracy)
    size = n_rows * N_COLUMNS * 8 / 1e6
    work = f"megabytes of the same, besides {imports:.0f} for imports"
    yield "one-pass-memory", Row.speed(work, "X", peak - imports, size)


if __name__ == "__main__":
    args = arguments(__doc__, rows=5_000_000, folder=gettempdir())
    report("Large data", rows(args.folder, args.rows), args.output)
