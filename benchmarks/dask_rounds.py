"""What do fits of rows on workers take, beside the same in memory? ``make bench-dask``.

``python -m benchmarks.dask_rounds squared --rows 20000 --columns 500`` is smaller.
Seconds are those of whole fits, of rows that are on the workers already; paths are also
compared with those of the same rows in memory in double precision. A round of nothing
sends the same numbers out and back, without products: what rounds add to them.
"""

import os
import signal
from contextlib import contextmanager
from functools import partial
from math import ceil, log, log2
from statistics import median
from unittest.mock import patch

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit

from skacv import RowSummary, TrajectoryLasso, TrajectoryLogisticRegression
from skacv._estimator.run import source
from skacv.dask.block_sums import add_all
from skacv.dask.problem import FitsOnWorkers
from skacv.dask.rows import FAN, RowGroups

from .framework import Row, arguments, named_rows, report, seconds

BLOCK_ROWS = 10_000
N_WORKERS, N_FOLDS = 2, 5
# Rounds of nothing, of which the median is taken; updates before a worker is killed.
N_ROUNDS, UNTIL_KILLED = 30, 30
# What the table of sizes takes for granted: bytes a second of a link, and of copies and
# sums in memory; seconds of the scheduler for a task; multiplications and additions a
# second of a worker in products of few vectors.
LINK, MEMORY, TASK, RATE = 1.25e9, 5e9, 5e-4, 2e10


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


def nothing(block, coef, intercept):
    """Sums of the shapes of a gradient's, without a product."""
    return np.zeros(coef.shape), np.zeros(coef.shape[1:])


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


def overhead(X, y, n_columns):
    """Seconds that a round takes beside its products."""
    groups = RowGroups(X, y)
    coef = np.ones((n_columns, 1, 1 + N_FOLDS), np.float32)
    zeros = np.zeros((1, 1 + N_FOLDS))
    once = partial(groups.sum, nothing, coef, zeros, combine=add_all)
    return median(seconds(once)[0] for _ in range(N_ROUNDS))


@contextmanager
def timed_rounds(client=None, killed_before=None):
    """Seconds of the rounds of gradients; a worker may be killed before one of them."""
    gradient, duration = FitsOnWorkers.gradient, []

    def timed(fits, point):
        if len(duration) == killed_before:
            processes = client.run(os.getpid)
            os.kill(next(iter(processes.values())), signal.SIGKILL)
        elapsed, results = seconds(gradient, fits, point)
        duration.append(elapsed)
        return results

    with patch.object(FitsOnWorkers, "gradient", timed):
        yield duration


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
    """A fit on two workers beside the fit in memory, and one that loses a worker."""
    n_rows, n_columns, n_updates = sizes
    # Whatever their columns: moments would do for the squared error.
    source.MAX_COLUMNS_OF_COLLECTIONS = 0
    estimator = model(is_class, n_updates)
    loss = "logistic loss" if is_class else "squared error"
    with two_workers() as cluster, Client(cluster) as client:
        X, y = dask.persist(*collections(n_rows, n_columns, is_class))
        baseline = overhead(X, y, n_columns)
        with timed_rounds() as rounds:
            duration, results = seconds(clone(estimator).fit, X, y)
        seconds_per_round, last = median(rounds), min(UNTIL_KILLED, n_updates - 1)
        with timed_rounds(client, last) as killed:
            taken_again, again = seconds(clone(estimator).fit, X, y)
        del X, y
    bitwise = np.array_equal(again.coef_path_, results.coef_path_)
    single, ours, double = fits_in_memory(estimator, (n_rows, n_columns), is_class)
    shape = f"{n_rows} x {n_columns} float32, {results.n_iter_} updates"
    work = f"{loss}, {N_FOLDS} folds, {shape}"
    if len(killed) <= last:
        raise RuntimeError("The run was over before a worker could be killed.")
    yield Row.speed(
        f"{work}: seconds on {N_WORKERS} workers",
        "the fit in memory",
        duration,
        ours,
        accuracy=differences(results, single, double),
    )
    yield Row.cost(
        f"{loss}: milliseconds of a round",
        "a round of nothing",
        1000 * seconds_per_round,
        1000 * baseline,
        accuracy=f"{1000 * baseline:.0f} ms beside products",
    )
    yield Row.cost(
        f"{loss}: seconds where a worker is killed after {UNTIL_KILLED} updates",
        "undisturbed",
        taken_again,
        duration,
        accuracy=f"paths differ by {difference(again, results):.1e}"
        + (", bit for bit the same" if bitwise else "")
        + f", longest round {max(killed):.1f} s",
    )


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


# ------------------------------------------------------------------- on paper


def paper(n_columns, n_workers, n_fits=1 + N_FOLDS):
    """What a round takes at other sizes, by the numbers above; products left out.

    Coefficients go down in single precision, from worker to worker, doubling; sums come
    up in double precision, through a tree of fan 8, whose tasks take eight of them in.

    Returns
    -------
    dict of float
        Bytes that the client sends and gets; seconds of the links, of the client and of
        the scheduler; rows of a worker whose products take as long as all of these.
    """
    down, up = 4 * n_columns * n_fits, 8 * n_columns * n_fits
    levels = ceil(log(n_workers, FAN))
    links = down * ceil(log2(n_workers)) + up * (min(FAN, n_workers) - 1) * levels
    # Copies into and out of messages, the update itself and its prox.
    client = (down + up) / LINK + 8 * up / MEMORY
    n_tasks, n_parts = n_workers + 1, n_workers
    while n_parts > 1:
        n_parts = ceil(n_parts / FAN)
        n_tasks += n_parts
    seconds = {"links": links / LINK, "client": client, "scheduler": n_tasks * TASK}
    total = sum(seconds.values())
    rows = total * RATE / (4 * n_columns * n_fits)
    return {"down": down, "up": up, **seconds, "total": total, "rows": rows}


def on_paper(sizes):
    """Rounds of other sizes."""
    for n_columns in (10**3, 10**4, 10**5, 10**6):
        for n_workers in (10, 100, 1000):
            results = paper(n_columns, n_workers)
            parts = {k: results[k] for k in ("links", "client", "scheduler")}
            limit = max(parts, key=parts.get)
            split = ", ".join(f"{name} {1000 * s:.0f}" for name, s in parts.items())
            as_long = f"{results['rows']:.0f} rows of a worker take as long"
            yield Row(
                f"{n_columns} columns on {n_workers} workers: MB down, MB up, ms",
                f"limit: {limit}",
                results["down"] / 1e6,
                results["up"] / 1e6,
                1000 * results["total"],
                accuracy=f"{as_long}; {split}",
            )


BENCHMARKS = {
    "one-pass": one_pass,  # before the others, which turn it off
    "squared": partial(fits, False),
    "logistic": partial(fits, True),
    "paper": on_paper,
}


if __name__ == "__main__":
    args = arguments(__doc__, BENCHMARKS, rows=200_000, columns=2000, updates=100)
    sizes = args.rows, args.columns, args.updates
    benchmarks = {name: partial(run, sizes) for name, run in BENCHMARKS.items()}
    results = named_rows(benchmarks, args.names)
    report("Rows on workers", results, args.output, ["dask", "distributed"])
