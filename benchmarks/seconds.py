"""Does the default take longer than its peers? ``make bench-seconds``.

Forty tables of at most 1000 training rows: the toy sets of scikit-learn that have one
target and more than twenty rows, the "held-out" half of ``tables.csv``, and those of
its part "small", whose classes can be told apart by some columns: there the log loss
falls for ever. Every fit is kept in the folder that SKACV_UNSEEN names, as that of
``unseen.py``. With ``--kept NAME`` ours is kept under this name, which says which
version of the package it is; ``--against NAME`` compares it with another one.
"""

import re
from functools import partial

import numpy as np
from scipy.stats import gmean
from sklearn import datasets

from .baselines import SIX, lasso
from .framework import arguments, header, heading, kept, line, tried
from .tables import SMALL, listed, read
from .unseen import CACHE, ERRORS, TWO_SPLITS, fitted, n_training, ours

PEERS = SIX | {"lasso": lasso}
TOYS = {
    "iris": "classification",
    "wine": "classification",
    "breast_cancer": "classification",
    "digits": "classification",
    "diabetes": "regression",
}
ABOUT = """
`make bench-seconds`, `python -m benchmarks.seconds` ({heading})

Processor seconds of one fit, one thread, means over splits: three, or two from 500
training rows on. The peers are the six of the page of unseen tables, tuned as there,
and for numbers LassoCV as well; their seconds are added. "Error" is ours over that of
the best peer, and "change" ours over that of {against}. Means are geometric.
"""


def tables():
    """Name, task, frame and targets of every table."""
    for name, task in TOYS.items():
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True, as_frame=True)
        yield name, task, X, np.asarray(y)
    for table in listed(("held-out", SMALL)):
        X, y, _ = read(table)
        yield table.name, table.task, X, y


def run_table(name, task, X, y, version):
    """Results of ours and of the peers by name, one row for every split."""
    results = {}
    methods = {version: ours} | {
        peer: build
        for peer, build in PEERS.items()
        if task == "regression" or peer != "lasso"
    }
    for method, build in methods.items():
        results[method] = []
        for seed in range(2 if n_training(len(y)) >= TWO_SPLITS else 3):
            file = f"{re.sub(r'[^a-zA-Z0-9]+', '-', method)}-{seed}.json"
            work = partial(tried, fitted, task, build, X, y, seed)
            results[method].append(kept(CACHE / name / file, work))
    return results


def mean_of(rows, key):
    """The mean over splits, NaN where a fit has failed."""
    return float(np.mean([(row or {}).get(key, np.nan) for row in rows]))


def page(results, version, against):
    """A line for every table, and means over them.

    ``results`` has the task and what ``run_table`` gives of every table by name.
    """
    about = ABOUT.format(
        heading=heading(("pandas", "catboost", "lightgbm")), against=against or "none"
    )
    columns = "table", "rows", "ours", "all peers", "ratio", "error", "change"
    lines, over = [], []
    for name, (task, n_rows, rows) in results.items():
        peers = [peer for peer in PEERS if peer in rows]
        (error, *_) = ERRORS[task]
        mine = mean_of(rows[version], "seconds")
        theirs = sum(mean_of(rows[peer], "seconds") for peer in peers)
        loss = mean_of(rows[version], error)
        least = np.nanmin([mean_of(rows[peer], error) for peer in peers])
        former = mean_of(rows[against], error) if against else np.nan
        ratios = mine / theirs, loss / least, loss / former
        over.append(ratios)
        cells = (f"{ratio:.3f}" for ratio in ratios)
        lines.append(line(name, n_rows, f"{mine:.2f}", f"{theirs:.2f}", *cells))
    means = gmean(over, nan_policy="omit")
    lines.append(line("mean", *[""] * 3, *(f"{mean:.3f}" for mean in means)))
    worst = (f"{ratio:.3f}" for ratio in np.nanmax(over, axis=0))
    lines.append(line("largest", *[""] * 3, *worst))
    title = "# Seconds of the default beside those of all peers"
    return "\n".join([f"{title}\n{about}", *header(*columns), *lines, ""])


if __name__ == "__main__":
    args = arguments(__doc__, kept="skacv", against="", only=())
    results = {}
    for name, task, X, y in tables():
        if args.only and name not in args.only:
            continue
        rows = run_table(name, task, X, y, args.kept)
        if args.against:
            former = run_table(name, task, X, y, args.against)
            rows[args.against] = former[args.against]
        results[name] = task, n_training(len(y)), rows
        print(f"{name}: {rows}", flush=True)
    print(page(results, args.kept, args.against))
    if args.output:
        args.output.write_text(page(results, args.kept, args.against))
