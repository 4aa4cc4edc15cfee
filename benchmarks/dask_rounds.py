"""What do fits of rows on workers take, beside the same in memory? ``make bench-dask``.

``python -m benchmarks.dask_rounds squared --rows 20000 --columns 500`` is smaller.
Seconds are those of whole fits, of rows that are on the workers already; paths are also
compared with those of the same rows in memory in double precision.
"""

from functools import partial

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit

from skacv import RowSummary, TrajectoryLasso, TrajectoryLogisticRegression
from skacv._estimator.run import source

from .framework import Row, arguments, named_rows, report, seconds

BLOCK_ROWS = 10_000
N_WORKERS, N_FOLDS = 2, 5


def rows_of(first, n_rows, n_columns):
    """Some rows, the same whenever and wherever they are made."""
    rng = np.random.default_rng([0, first])
    X = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
    # Of uneven size: else updates would soon move nothing more in single precision.
    X *= np.geomspace(1, 0.02, n_columns, dtype=np.float32)
    return X


def targets_of(X, is_class):
    """Numbers, or two classes, of which twenty columns know something."""
    rng = np.random.default_rng([1, len(X)])
    mean = X[:, :20].sum(axis=1)
    if is_class:
        return (mean + 4 * rng.standard_normal(len(X)) > 0).astype(np.int64)
    return mean + 4 * rng.standard_normal(len(X), dtype=np.float32) + 3


def collections(n_rows, n_columns, is_class):
    """X and y in blocks that workers make by themselves."""
    parts = []
    for first in range(0, n_rows, BLOCK_ROWS):
        size = min(BLOCK_ROWS, n_rows - first)
        rows = dask.delayed(rows_of)(first, size, n_columns)
        parts.append(da.from_delayed(rows, (size, n_columns), np.float32))
    X = da.concatenate(parts)
    dtype = np.int64 if is_class else np.float32
    return X, X.map_blocks(targets_of, is_class, dtype=dtype, drop_axis=1)


def in_memory(n_rows, n_columns, is_class):
    """The same rows as arrays."""
    X = np.empty((n_rows, n_columns), np.float32)
    y = []
    for first in range(0, n_rows, BLOCK_ROWS):
        part = rows_of(first, min(BLOCK_ROWS, n_rows - first), n_columns)
        X[first : first + len(part)] = part
        y.append(targets_of(part, is_class))
    return X, np.concatenate(y)


def model(is_class, n_updates):
    """FISTA with folds, and nothing from single rows."""
    settings = {"max_iter": n_updates, "tol": 0, "cv": N_FOLDS}
    settings |= {"risk": False, "loo": False}
    if is_class:
        return TrajectoryLogisticRegression(0.01, l1_ratio=1.0, **settings)
    return TrajectoryLasso(0.002, **settings)


def fits_in_memory(estimator, sizes, is_class):
    """The fit in the precision of the rows, its seconds, and the one in double."""
    X, y = in_memory(*sizes, is_class)
    duration, ours = seconds(clone(estimator).fit, X, y)
    if not is_class:
        y = y.astype(np.float64)
    return ours, duration, clone(estimator).fit(X.astype(np.float64), y)


def differences(results, ours, double):
    """How far a fit is from the two in memory, in words."""
    return (
        f"paths differ by {difference(results, double):.1e} from memory in double "
        f"precision, by {difference(results, ours):.1e} from single"
    )


def two_workers():
    """A cluster of processes on this machine."""
    return LocalCluster(
        n_workers=N_WORKERS, threads_per_worker=1, dashboard_address=None
    )


def difference(results, expected):
    """The largest difference of the paths of two fits, relative to their largest entry.

    In single precision updates may end to move anything, some sooner than others.
    """
    names = "coef_path_", "train_path_", "cv_path_"
    last = min(results.n_iter_, expected.n_iter_) + 1
    pairs = [
        (getattr(results, name)[:last], getattr(expected, name)[:last])
        for name in names
    ]
    return max(np.abs(a - b).max() / np.abs(b).max() for a, b in pairs)


def fits(is_class, sizes):
    """A fit on two workers beside the fit in memory."""
    n_rows, n_columns, n_updates = sizes
    # Whatever their columns: moments would do for the squared error.
    source.MAX_COLUMNS_OF_COLLECTIONS = 0
    estimator = model(is_class, n_updates)
    loss = "logistic loss" if is_class else "squared error"
    with two_workers() as cluster, Client(cluster):
        X, y = dask.persist(*collections(n_rows, n_columns, is_class))
        duration, results = seconds(clone(estimator).fit, X, y)
        del X, y
    single, ours, double = fits_in_memory(estimator, (n_rows, n_columns), is_class)
    shape = f"{n_rows} x {n_columns} float32, {results.n_iter_} updates"
    work = f"{loss}, {N_FOLDS} folds, {shape}: seconds on {N_WORKERS} workers"
    said = differences(results, single, double)
    yield Row.speed(work, "the fit in memory", duration, ours, said)


def one_pass(sizes):
    """A fit on the moments of one pass, with the risk, beside the fit in memory."""
    n_rows, n_columns, n_updates = sizes
    estimator = model(False, n_updates).set_params(risk=True, random_state=0)
    with two_workers() as cluster, Client(cluster):
        X, y = dask.persist(*collections(n_rows, n_columns, False))
        duration, results = seconds(clone(estimator).fit, X, y)
        del X, y
    folds = RowSummary(N_FOLDS).fold_of(np.arange(n_rows))
    estimator.set_params(cv=PredefinedSplit(folds))
    single, ours, double = fits_in_memory(estimator, (n_rows, n_columns), False)
    last = min(results.n_iter_, double.n_iter_) + 1
    risk = np.abs(results.risk_path_[:last] / double.risk_path_[:last] - 1).max()
    yield Row.speed(
        f"squared error in one pass, risk and {N_FOLDS} folds, {n_rows} x {n_columns} "
        f"float32, {results.n_iter_} updates: seconds on {N_WORKERS} workers",
        "the fit in memory",
        duration,
        ours,
        accuracy=f"{differences(results, single, double)}; "
        f"risk_path_ by {risk:.1e} of itself",
    )


BENCHMARKS = {
    "one-pass": one_pass,  # before the others, which turn it off
    "squared": partial(fits, False),
    "logistic": partial(fits, True),
}


if __name__ == "__main__":
    args = arguments(__doc__, BENCHMARKS, rows=200_000, columns=2000, updates=100)
    sizes = args.rows, args.columns, args.updates
    benchmarks = {name: partial(run, sizes) for name, run in BENCHMARKS.items()}
    results = named_rows(benchmarks, args.names)
    report("Rows on workers", results, args.output, ["dask", "distributed"])
