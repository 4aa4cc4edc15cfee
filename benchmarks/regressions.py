"""The default on 56 outside regressions beside tuned peers: ``make bench-regressions``.

Tables are the part "outside" of ``tables.csv``, in the folder that SKACV_TABLES names.
Every fit is kept in ``regressions.csv`` beside the page, so that a run that was
interrupted goes on: to fit anew, remove its rows. ``--folds`` takes some of the four
folds, ``--half`` those tables that were looked at, or the others; ``--kept`` fits
nothing, and the page has the tables of which all fits are kept.
"""

from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
from scipy.stats import gmean
from sklearn.model_selection import KFold

from .baselines import N_TRIALS, SIX, tuned_lightgbm
from .framework import (
    LOOKED_AT,
    NOT_LOOKED_AT,
    Fits,
    Worker,
    arguments,
    half_of,
    header,
    heading,
    line,
    tried,
)
from .tables import OUTSIDE, RDATASETS, listed, read
from .unseen import NONE, OURS, SCORE, Reading, mean_and_error, number, ours, sources

# Rows of a table that has been read in another way have another fingerprint.
FITS = Fits(
    Path(__file__).parent / "results" / "regressions.csv",
    {"table": str, "fold": int, "method": str, "fingerprint": int},
    ("rows", "mse", "R2", SCORE, "seconds"),
)
MOST_ROWS, MOST_SECONDS, N_FOLDS = 3000, 900, 4
# Squared errors that differ by this share or less are equal.
TIE = 0.01
PEERS = SIX | {"LightGBM, tuned": tuned_lightgbm}
METHODS = {OURS: ours} | PEERS
# Fits of the default before its last change, which are kept by this name.
BEFORE = f"{OURS}, equal steps of trees"
# Tables of the half that is not looked at on which that change was tried nevertheless.
SEEN = {"airfoil", "energy", "forbes", "housing", "lego"}
UNSEEN = f"{NOT_LOOKED_AT}, without {', '.join(sorted(SEEN))}"
ABOUT = """
`make bench-regressions` ({heading}), folds {folds} of four{half}

`SelfStoppingRegressor(random_state=0)` with no other settings on raw frames, compared
with seven peers on regressions of two public collections: uci_datasets, numbers alone,
and Rdatasets, the data of R packages, with categories and missing values. The list was
settled before any model was run, and no table was removed afterwards; nothing is tuned
on it except by what is seen on the half called "{looked_at}", given by the names'
CRC32. Of {n_tables} tables {n_there} have all fits of these folds{lacking}. Folds are
those of `KFold(4, shuffle=True, random_state=0)` of at most {most_rows} rows, drawn at
random. Random folds also split series and persons, of which uci_datasets has some. In
its bike the target is the logarithm of the sum of two columns, which was seen only
after the run.

Six of the peers are those of [unseen tables](unseen.md): the linear model is tuned by
leave-one-out, the SVM by five folds, and CatBoost, LightGBM and HistGradientBoosting
have early stopping. The seventh is LightGBM with the best of {n_trials} random settings
of seven parameters, compared by five folds inside the training rows. All have run in
one process and on one thread. A fit that failed or took more than {most_seconds}
seconds leaves its method without that table. R² is that of the test rows, a mean over
folds. Squared errors are means over folds; "ahead" and "behind" count tables where they
differ by more than {tie:.0%}. Means of ratios over tables are geometric, with their
standard errors.
"""


def fit(table, method, fold):
    """The squared error and seconds of a method on a fold, and what it expected."""
    X, y, _ = read(table)
    if len(y) > MOST_ROWS:
        rows = np.random.default_rng(0).choice(len(y), MOST_ROWS, replace=False)
        X, y = X.iloc[rows].reset_index(drop=True), y[rows]
    train, test = list(KFold(N_FOLDS, shuffle=True, random_state=0).split(X))[fold]
    model = METHODS[method](table.task)
    begun = process_time()
    model.fit(X.iloc[train], y[train])
    row = {"seconds": process_time() - begun, "rows": len(train)}
    row["mse"] = np.mean((np.ravel(model.predict(X.iloc[test])) - y[test]) ** 2)
    row["R2"] = 1 - row["mse"] / np.var(y[test])
    if hasattr(model, SCORE):
        row[SCORE] = getattr(model, SCORE)
    return {name: float(f"{value:.6g}") for name, value in row.items()}


class Outcome(Reading):
    """Squared errors over that of the best peer, and R², of one table."""

    def __init__(self, table, results):
        super().__init__(table, results, "mse", PEERS)
        rows = (row for each in results.values() for row in each)
        self.n_rows = int(max(row.get("rows", 0) for row in rows))
        self.R2 = {
            name: float(np.mean([row["R2"] for row in results[name]]))
            for name in self.ratios
        }

    def over(self, name):
        """Our squared error over that of another method, or None."""
        both = self.ratios.get(OURS), self.ratios.get(name)
        return None if None in both else both[0] / both[1]


def by_rival(outcomes):
    """Ours against each of the others, and against the best of all in hindsight."""
    over = "squared error of ours over its"
    yield from header(
        *("rival", "tables", "mean R² of rival", "mean R² of ours", over),
        *("ahead", "behind"),
    )
    best = "best of the seven, in hindsight"
    for name in (*PEERS, best):
        rivals = {
            one: one.best if name == best else name
            for one in outcomes
            if OURS in one.ratios and (name == best or name in one.ratios)
        }
        ratios = np.array([one.over(rival) for one, rival in rivals.items()])
        yield line(
            *(name, len(ratios)),
            f"{np.mean([one.R2[rival] for one, rival in rivals.items()]):.3f}",
            f"{np.mean([one.R2[OURS] for one in rivals]):.3f}",
            *(mean_and_error(ratios), (ratios < 1 - TIE).sum()),
            (ratios > 1 + TIE).sum(),
        )


def by_part(outcomes):
    """Squared errors over that of the best peer, in parts of the tables."""
    parts = {
        "all": outcomes,
        LOOKED_AT: [o for o in outcomes if half_of(o.table.name) == LOOKED_AT],
        NOT_LOOKED_AT: [o for o in outcomes if half_of(o.table.name) != LOOKED_AT],
        "uci_datasets": [o for o in outcomes if o.table.repository != RDATASETS],
        "Rdatasets": [o for o in outcomes if o.table.repository == RDATASETS],
    }
    parts = {part: found for part, found in parts.items() if found}
    yield from header(
        "method", *(f"{part}, {len(found)}" for part, found in parts.items())
    )
    for name in METHODS:
        ratios = ([one.ratios.get(name) for one in found] for found in parts.values())
        yield line(name, *map(mean_and_error, ratios))


def by_seconds(outcomes):
    """Seconds of a fit of each method, and ours over them."""
    yield from header("method", "median", "mean", "most", f"{OURS} over it")
    for name in METHODS:
        taken = [one.seconds[name] for one in outcomes if name in one.seconds]
        if not taken:
            continue
        over = [
            one.seconds[OURS] / one.seconds[name]
            for one in outcomes
            if {OURS, name} <= one.seconds.keys()
        ]
        figures = np.median(taken), np.mean(taken), np.max(taken)
        yield line(name, *(f"{value:.3g}" for value in figures), mean_and_error(over))


def by_table(outcomes):
    """Every table, those first where ours is worst beside the best peer."""
    yield from header(
        *("table", "rows", "half", "R² of ours", "R² of the best", "best of the seven"),
        *("ours over it", *PEERS, "seconds", "expected over true"),
    )
    for one in sorted(outcomes, key=lambda one: -one.ratios.get(OURS, np.inf)):
        yield line(
            *(one.table.name, one.n_rows, half_of(one.table.name)),
            *(number(one.R2.get(name)) for name in (OURS, one.best)),
            *(one.best, number(one.ratios.get(OURS))),
            *(number(one.ratios.get(name), ".2f") for name in PEERS),
            number(one.seconds.get(OURS), ".1f"),
            number(one.claimed, ".2f"),
        )


def by_default(fits):
    """The default over the one before, on the folds that both have.

    Some tables were seen by mistake: both with and without them.
    """
    ratios = {LOOKED_AT: [], NOT_LOOKED_AT: [], UNSEEN: []}
    for (table, fold, method, fingerprint), row in fits.items():
        former = fits.get((table, fold, BEFORE, fingerprint), {})
        if method == OURS and "mse" in row and "mse" in former:
            half, ratio = half_of(table), row["mse"] / former["mse"]
            ratios[half].append(ratio)
            if half == NOT_LOOKED_AT and table not in SEEN:
                ratios[UNSEEN].append(ratio)
    yield from header("half", "fits", "squared error over before", "better", "worse")
    for half, of_half in ratios.items():
        if of_half:
            of_half = np.array(of_half)
            counts = (of_half < 1 - TIE).sum(), (of_half > 1 + TIE).sum()
            yield line(half, len(of_half), mean_and_error(of_half), *counts)


def page(results, fits, folds, half=None):
    """The whole page, of rows by fold, method and table, None where there are none.

    ``fits`` are all that are kept.
    """
    there = {
        table: rows
        for table, rows in results.items()
        if all(row is not None for each in rows.values() for row in each)
    }
    outcomes = [Outcome(table, rows) for table, rows in there.items()]
    lacking = ", ".join(table.name for table in results if table not in there)
    about = ABOUT.format(
        heading=heading(("pandas", "catboost", "lightgbm")),
        folds=", ".join(map(str, folds)),
        half=f"; only the {half} tables" if half else "",
        looked_at=LOOKED_AT,
        n_tables=len(results),
        n_there=len(there),
        lacking=f"; not run to the end: {lacking}" if lacking else "",
        most_rows=MOST_ROWS,
        most_seconds=MOST_SECONDS,
        tie=TIE,
        n_trials=N_TRIALS,
    )
    yield from ("# Outside regressions", about)
    yield from by_rival(outcomes)
    claims = [one.claimed for one in outcomes if one.claimed is not None]
    if claims:
        low, middle, high = np.quantile(claims, [0.25, 0.5, 0.75])
        yield (
            f"\nExpected over true squared error (`{SCORE}`): geometric mean "
            f"{gmean(claims):.3f}, median {middle:.3f}, quartiles {low:.3f} and "
            f"{high:.3f}."
        )
    for table, rows in there.items():
        for name, each in rows.items():
            said = [row["failed"] for row in each if "failed" in row]
            if said:
                yield f"\nFailed: {name} on {table.name} ({said[0]})."
    sections = {
        "Squared errors over that of the best of the seven": by_part,
        "Seconds of a fit": by_seconds,
        "By table": by_table,
    }
    for title, lines in sections.items():
        yield from (f"\n## {title}\n", *lines(outcomes))
    yield from (f"\n## Over {BEFORE}\n", *by_default(fits))
    yield from ("\n## Sources\n", *sources(there))


def main(folds, half, is_new, output):
    tables = [
        table for table in listed((OUTSIDE,)) if half in (None, half_of(table.name))
    ]
    results = {table: {name: [] for name in METHODS} for table in tables}
    fits, worker = FITS.read(), Worker(MOST_SECONDS)
    for fold in folds:
        for table in tables:
            for name in METHODS:
                place = table.name, fold, name, read(table)[2]
                row = fits.get(place)
                if row is None and is_new:
                    row = worker.run(partial(tried, fit, table, name, fold))
                    if row is not None:
                        FITS.add(place, row)
                results[table][name].append(row)
                print(f"{table.name} {fold} {name}: {row or NONE}", flush=True)
    text = "\n".join([*page(results, FITS.read(), folds, half), ""])
    print(text)
    if output is not None:
        output.write_text(text)


if __name__ == "__main__":
    args = arguments(__doc__, folds=("0", "1", "2", "3"), half="", kept=False)
    main(list(map(int, args.folds)), args.half or None, not args.kept, args.output)
