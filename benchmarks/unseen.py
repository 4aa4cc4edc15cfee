"""Is the default as good as the best peer on unseen tables? ``make bench-unseen``.

Tables are those of ``tables.csv``, in the folder that SKACV_TABLES names; ``--half``
and ``--only`` take some of them. All models have them as raw frames. Every fit is kept
in the folder that SKACV_UNSEEN names, so that a run that was interrupted goes on and
peers are fitted once; ours is fitted anew each time. Names are those of methods, all
without any, and the page has all that are kept.
"""

import os
import re
from functools import partial
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np
from scipy.stats import gmean
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from skacv import SelfStoppingClassifier, SelfStoppingRegressor

from .baselines import SIX
from .framework import arguments, header, heading, kept, line, tried
from .tables import HALVES, TASKS, listed, read

CACHE = Path(os.environ.get("SKACV_UNSEEN", "output/unseen"))
MOST_TRAINING, MOST_TEST = 1000, 5000
# From so many training rows on there are two splits, else three: few rows tell less.
TWO_SPLITS = 500
OURS, ALL_SIX, SCORE = "skacv", "all six", "best_score_corrected_"
ERRORS = {"regression": ("mse",), "classification": ("log loss", "error rate")}
NONE = "–"
ABOUT = """
`make bench-unseen`, `python -m benchmarks.unseen` ({heading}){half}

`SelfStoppingRegressor(random_state=0)` and `SelfStoppingClassifier(random_state=0)`
with no other settings, on the frame as `pd.read_csv` returns it (dates parsed),
compared with what users run today, on real tables (the last section lists their
sources). Half of the rows are for training, at most 1000, and at most 5000 of the
others for testing; means of three splits, or of two from 500 training rows on.
Defaults may be tuned on the "development" tables, never on the "held-out" ones. Which
set a table belongs to was settled before any model ran.

Errors are divided by that of the peer that turns out best on a table, which nobody
knows beforehand: no single peer is at 1.00. Peers run on one thread. After indicators
of categories, means and indicators of missing values: the random forest of 500 trees; a
linear model (RidgeCV with 25 alphas, or logistic regression with 10 values of C) and an
SVM (SVR, or SVC, with 4 gammas x 4 values of C, probabilities by five more folds), on
scaled columns and by five folds (RidgeCV by leave-one-out). With categories and missing
values as they are, dates as days and their parts: HistGradientBoosting with
`early_stopping=True`, where a column of more than 255 levels is replaced by means of y
from TargetEncoder; CatBoost, and LightGBM with a learning rate of .05 and at most 2000
rounds, stopped by a fifth of the rows after 50 rounds without improvement. Seconds are
processor seconds, means over splits. Means over tables are geometric, with their
standard errors.
"""


def ours(task):
    is_class = task == "classification"
    return (SelfStoppingClassifier if is_class else SelfStoppingRegressor)(
        random_state=0
    )


METHODS = {OURS: ours} | SIX


def n_training(n):
    """Rows that train, of n."""
    return min(n // 2, MOST_TRAINING)


def fitted(task, build, X, y, seed):
    """Errors, and seconds of a processor, of a method on a split, classes in shares."""
    size, is_class = n_training(len(y)), task == "classification"
    X_train, X_test, y_train, y_test = train_test_split(
        *(X, y),
        train_size=size,
        test_size=min(len(y) - size, MOST_TEST),
        random_state=seed,
        stratify=y if is_class else None,
    )
    begun = process_time()
    model = build(task).fit(X_train, y_train)
    results = {"seconds": process_time() - begun}
    predicted = np.ravel(model.predict(X_test))
    if is_class:
        shares, labels = model.predict_proba(X_test), np.unique(y)
        results["log loss"] = float(log_loss(y_test, shares, labels=labels))
        results["error rate"] = float(np.mean(predicted != y_test))
    else:
        results["mse"] = float(np.mean((predicted - y_test) ** 2))
    if hasattr(model, SCORE):
        results[SCORE] = getattr(model, SCORE)
    return results


def run_table(table, selected):
    """By method what splits have found, fitted if selected and not kept, or None."""
    X, y, fingerprint = read(table)
    same = {"fingerprint": fingerprint, "rows": n_training(len(y))}
    results = {}
    for name, build in METHODS.items():
        results[name] = []
        for seed in range(2 if n_training(len(y)) >= TWO_SPLITS else 3):
            file = f"{re.sub(r'[^a-zA-Z0-9]+', '-', name)}-{seed}.json"
            results[name].append(
                kept(
                    CACHE / table.name / file,
                    partial(tried, fitted, table.task, build, X, y, seed),
                    same,
                    is_new=name in selected,
                    is_old=name != OURS,
                )
            )
    return results


class Reading:
    """The errors of one kind on one table: all over that of the best of the peers."""

    def __init__(self, table, results, error, peers=SIX):
        self.table = table
        complete = {
            name: rows
            for name, rows in results.items()
            if all(row is not None and "failed" not in row for row in rows)
        }
        self.seconds, errors = (
            {
                name: float(np.mean([row[key] for row in rows]))
                for name, rows in complete.items()
            }
            for key in ("seconds", error)
        )
        there = [name for name in peers if name in errors]
        self.best = min(there, key=errors.get, default=None)
        least = errors.get(self.best, np.nan)
        self.ratios = {name: value / least for name, value in errors.items()}
        if set(SIX) <= set(there):
            self.seconds[ALL_SIX] = sum(self.seconds[name] for name in SIX)
        self.claimed = None
        if OURS in errors and error != "error rate":
            said = [row[SCORE] for row in complete[OURS]]
            self.claimed = np.mean(said) / errors[OURS]


def readings(results, error, half=None):
    """Of all raw tables that have such an error, or of a half of them."""
    found = [
        Reading(table, rows, error)
        for table, rows in results.items()
        if table.is_raw and half in (None, table.half) and error in ERRORS[table.task]
    ]
    return [one for one in found if not all(map(np.isnan, one.ratios.values()))]


def number(value, form=".3f"):
    return NONE if value is None else f"{value:{form}}"


def mean_and_error(ratios):
    """The geometric mean with its standard error over tables, as text."""
    ratios = [ratio for ratio in ratios if ratio is not None]
    if len(ratios) < 2:
        return number(ratios[0] if ratios else None)
    mean, error = gmean(ratios), np.std(np.log(ratios), ddof=1) / np.sqrt(len(ratios))
    return f"{mean:.3f} ± {mean * error:.3f}"


def columns_of(results):
    """Readings by error and half, of those that have any."""
    kinds = product((e for task in TASKS for e in ERRORS[task]), HALVES)
    found = {kind: readings(results, *kind) for kind in kinds}
    return {kind: of_all for kind, of_all in found.items() if of_all}


def summary(results):
    """Our geometric means and worst tables, and what the default expects of itself."""
    over = "over the best of six", "worst", "best_score_corrected_ over the truth"
    yield from header("error", "set", "tables", *over)
    for (error, half), of_all in columns_of(results).items():
        ratios = [one.ratios[OURS] for one in of_all if OURS in one.ratios]
        claims = [one.claimed for one in of_all if one.claimed is not None]
        worst, said = max(ratios, default=None), gmean(claims) if claims else None
        cells = mean_and_error(ratios), number(worst), number(said)
        yield line(error, half, len(ratios), *cells)


def by_method(results):
    """Each method's geometric mean over the best of six, ± its error over tables."""
    columns = columns_of(results)
    titles = (
        f"{error}, {len(c)} {half} tables" for (error, half), c in columns.items()
    )
    yield from header("method", *titles)
    for name in METHODS:
        ratios = [[one.ratios.get(name) for one in of] for of in columns.values()]
        yield line(name, *map(mean_and_error, ratios))


def by_table(results):
    """Each method's error over that of the best of six, table by table."""
    yield from header("table", "set", "error", *METHODS)
    for task in TASKS:
        for error in ERRORS[task]:
            for one in readings(results, error):
                cells = (number(one.ratios.get(name)) for name in METHODS)
                yield line(one.table.name, one.table.half, error, *cells)


def by_seconds(results):
    """Seconds of one fit, and those of ours over those of each of the others."""
    names = [*METHODS, ALL_SIX]
    yield from header("table", *names, f"{OURS} over all six")
    over = {name: [] for name in names}
    for task in TASKS:
        for one in readings(results, ERRORS[task][0]):
            ours = one.seconds.get(OURS)
            ratios = {
                name: ours and ours / taken for name, taken in one.seconds.items()
            }
            for name, ratio in ratios.items():
                over[name].append(ratio)
            cells = (number(one.seconds.get(name), ".3g") for name in names)
            yield line(one.table.name, *cells, number(ratios.get(ALL_SIX), ".2f"))
    yield line(f"{OURS} over it", *map(mean_and_error, over.values()), "")


def sources(results):
    """Where tables come from."""
    yield from header("table", "set", "repository", "file", "target", "without")
    for table in results:
        target = f"log {table.target}" if table.log else table.target
        dropped = ", ".join(table.dropped.split(";"))
        where = (table.repository, table.path)
        yield line(table.name, table.half, *where, target, dropped)


SECTIONS = {
    "Means and worst tables": summary,
    "Means by method, over the best of six": by_method,
    "By table and method, over the best of six": by_table,
    "Seconds by table and method": by_seconds,
    "Sources": sources,
}


def page(results):
    """The whole page, of what ``run_table`` has found by table."""
    halves = {table.half for table in results}
    half = f"; only the {halves.pop()} tables" if len(halves) == 1 else ""
    libraries = heading(("pandas", "catboost", "lightgbm"))
    about = ABOUT.format(heading=libraries, half=half)
    text = [f"# On tables that nobody tuned to\n{about}"]
    for title, lines in SECTIONS.items():
        text.append("\n".join([f"## {title}\n", *lines(results), ""]))
    return "\n".join(text)


if __name__ == "__main__":
    args, results = arguments(__doc__, METHODS, half=HALVES, only=()), {}
    for table in listed(args.half, args.only):
        results[table] = run_table(table, args.names or METHODS)
        print(f"{table.name}: {results[table]}", flush=True)
    print(page(results))
    if args.output:
        args.output.write_text(page(results))
