"""The default on tables that nobody tuned it to, beside peers: ``make bench-unseen``.

Tables are those of ``unseen_tables.csv``, in the folder that SKACV_TABLES names. Every
fit is kept in a folder, so that a run that was interrupted goes on and peers are fitted
once; ours are fitted anew each time.
"""

import argparse
import json
import os
import re
import warnings
import zlib
from functools import cache, partial
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.utils._param_validation import InvalidParameterError
from threadpoolctl import threadpool_limits

from skacv import SelfStoppingClassifier, SelfStoppingRegressor

from .table_studies import FOLDER
from .unseen_page import page
from .unseen_peers import PEERS
from .unseen_tables import HALVES, listed, read

CACHE = Path(os.environ.get("SKACV_UNSEEN", "output/unseen"))
MOST_TRAINING, MOST_TEST = 1500, 5000
# What is set of ours, by name: the default, and what it chooses among.
OURS = {"default": {}, "best member": {"rule": "min"}, "blend": {"rule": "blend"}}
# Splits by the most training rows that have so many: few rows tell less.
SPLITS = {499: 3, MOST_TRAINING: 2}
TOLD = ("best_score_corrected_", "best_member_")


def our_model(name, task):
    """One of ours, with nothing set but what its name says."""
    kind = SelfStoppingRegressor
    if task == "classification":
        kind = SelfStoppingClassifier
    return kind(random_state=0, **OURS[name])


def methods(task):
    """What is compared, by name: functions of the number of columns."""
    ours = {name: lambda p, name=name: our_model(name, task) for name in OURS}
    return ours | {name: partial(peer, task) for name, peer in PEERS[task].items()}


def n_training(n):
    """Rows that train, of n."""
    return min(n // 2, MOST_TRAINING)


def n_splits(n):
    """Splits of a table of n rows."""
    return next(number for most, number in SPLITS.items() if n_training(n) <= most)


def split(table, X, y, seed):
    """Training and test rows, of classes in their shares.

    Returns
    -------
    X, X_test, y, y_test : ndarray
    """
    labels = y if table.task == "classification" else None
    size = n_training(len(y))
    return train_test_split(
        X,
        y,
        train_size=size,
        test_size=min(len(y) - size, MOST_TEST),
        random_state=seed,
        stratify=labels,
    )


def test_errors(task, model, X, y, n_classes):
    """Test errors by their names."""
    predicted = model.predict(X)
    if task == "regression":
        return {"mse": float(np.mean((np.ravel(predicted) - y) ** 2))}
    probabilities = model.predict_proba(X)
    return {
        "log loss": float(log_loss(y, probabilities, labels=np.arange(n_classes))),
        "error rate": float(np.mean(np.ravel(predicted) != y)),
    }


def fitted(table, build, X, y, seed):
    """Fit one method on one split.

    Returns
    -------
    dict
        Errors, seconds of a processor and by the clock, and what ours tell.
    """
    X_train, X_test, y_train, y_test = split(table, X, y, seed)
    begun, clock = process_time(), perf_counter()
    model = build(X.shape[1])
    model.fit(X_train, y_train)
    found = {"seconds": process_time() - begun, "clock": perf_counter() - clock}
    found |= test_errors(table.task, model, X_test, y_test, len(np.unique(y)))
    found |= {name: getattr(model, name) for name in TOLD if hasattr(model, name)}
    return found | {"n": len(y_train), "p": X.shape[1], "spread": float(np.var(y_test))}


def tried(table, build, X, y, seed):
    """The same, or why there is none.

    Raises
    ------
    ImportError
        If it needs a library that is not installed.
    InvalidParameterError
        If it sets what this version of ours does not have.
    """
    try:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")  # peers that have not converged
            return fitted(table, build, X, y, seed)
    except InvalidParameterError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        return {"failed": str(error).splitlines()[0]}


class Kept:
    """Fits of a table that a folder has, as long as the table is the same."""

    def __init__(self, folder, table, X, y):
        self.folder = folder / table.name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.fingerprint = zlib.crc32(y.tobytes(), zlib.crc32(X.tobytes()))

    def path(self, method, seed):
        return self.folder / f"{re.sub(r'[^a-zA-Z0-9]+', '-', method)}-{seed}.json"

    def get(self, method, seed):
        """What was kept, or None."""
        path = self.path(method, seed)
        found = json.loads(path.read_text()) if path.exists() else {}
        return found if found.get("fingerprint") == self.fingerprint else None

    def put(self, method, seed, found):
        path = self.path(method, seed)
        found = found | {"fingerprint": self.fingerprint}
        path.with_suffix(".part").write_text(json.dumps(found, indent=1) + "\n")
        path.with_suffix(".part").replace(path)


def run_table(table, folder, shelf, wanted, anew):
    """Fit what is wanted and not kept, and collect all that is kept.

    Parameters
    ----------
    table : Table
    folder, shelf : Path
        Of the tables, and of what is kept.
    wanted : collection of str
        Names of methods.
    anew : collection of str
        Those of which no kept fit will do.

    Returns
    -------
    dict of list of dict
        By the name of a method, what every split has found.
    """
    X, y = read(table, folder)
    kept = Kept(shelf, table, X, y)
    found = {}
    for name, build in methods(table.task).items():
        rows = []
        for seed in range(n_splits(len(y))):
            row = kept.get(name, seed)
            done = row is not None and "failed" not in row and name not in anew
            if name in wanted and not done:
                row = fitted_or_told(table, name, build, X, y, seed)
                if row is not None:
                    kept.put(name, seed, row)
            rows.append(row)
        found[name] = rows
    return found


def fitted_or_told(table, name, build, X, y, seed):
    """What one method finds; None, and a line, if there is no such method here."""
    try:
        row = tried(table, build, X, y, seed)
    except (ImportError, InvalidParameterError) as error:
        say_once(f"{name} is left out: {error}")
        return None
    if "failed" in row:
        print(f"{table.name}, {name}, split {seed}: {row['failed']}", flush=True)
    return row


@cache
def say_once(line):
    print(line, flush=True)


def progress(table, begun, found):
    """Say how long a table took."""
    complete = sum(None not in rows for rows in found.values())
    taken = perf_counter() - begun
    print(f"{table.name}: {complete} methods, {taken:.0f} s", flush=True)


def names_of(chosen):
    """Names of methods, where "ours" and "peers" are all of a kind."""
    peers = {name for of_task in PEERS.values() for name in of_task}
    groups = {"ours": set(OURS), "peers": peers, "none": set()}
    if unknown := set(chosen) - set(groups) - peers - set(OURS):
        raise SystemExit(f"no such methods: {', '.join(sorted(unknown))}")
    return set().union(*(groups.get(name, {name}) for name in chosen))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--tables", type=Path, default=FOLDER, help="folder of the tables")
    add("--cache", type=Path, default=CACHE, help="folder to keep fits in")
    add("--half", choices=HALVES, help="the tables of one half; both if not given")
    add("--only", nargs="+", default=(), metavar="TABLE", help="some tables")
    add(
        "--methods",
        nargs="+",
        default=("ours", "peers"),
        metavar="METHOD",
        help='what to fit: names, "ours", "peers" or "none"; the page has all kept',
    )
    add("--keep-ours", action="store_true", help="take fits of ours that are kept")
    add("--again", action="store_true", help="fit peers anew as well")
    add("--output", type=Path, help="Markdown file for the page")
    return parser.parse_args()


def main():
    asked = arguments()
    halves = (asked.half,) if asked.half else HALVES
    wanted, found = names_of(asked.methods), {}
    anew = set() if asked.keep_ours else set(OURS)
    if asked.again:
        anew |= wanted
    for table in listed(halves, asked.only):
        begun = perf_counter()
        found[table] = run_table(table, asked.tables, asked.cache, wanted, anew)
        progress(table, begun, found[table])
    text = page(found)
    print(text)
    if asked.output:
        asked.output.write_text(text)


if __name__ == "__main__":
    main()
