"""The default on an outside benchmark of small tables: ``make bench-small``.

SKACV_SMALL names a clone of github.com/firefly1248/SmallDataBenchmarks, whose tables
and whose scores of fourteen models (weighted average precision, boosters with fifty
trials for each fold) are read and not kept here. Fits of ours are kept in ``small.csv``
beside the page, so that a run that was interrupted goes on: to fit anew, remove their
rows. Those of a former default have its name, and are compared with the default.
``--folds`` runs some of the four folds; the page has all that are complete, and
with ``--half`` the tables that were looked at alone, or the others.
"""

import os
from functools import partial
from pathlib import Path
from time import perf_counter

import joblib
import numpy as np
import pandas as pd
from scipy.io import arff
from sklearn.metrics import average_precision_score, log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import label_binarize

from skacv import SelfStoppingClassifier

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

CLONE = Path(os.environ.get("SKACV_SMALL", "output/SmallDataBenchmarks"))
# The default, and the one before, by what was changed.
NOW, BEFORE = "steps of trees that grow", "equal steps of trees"
FITS = Fits(
    Path(__file__).parent / "results" / "small.csv",
    {"table": str, "fold": int, "default": str},
    ("rows", "score", "loss", "expected", "seconds"),
)
MOST_ROWS, MOST_SECONDS, N_FOLDS = 10_000, 900, 4
# Differences up to this are none.
TIE = 0.002
# Tables that have the rows of others, by the notes of the benchmark's authors.
DUPLICATES = {
    *("wine-quality-white-5class", "waveform-v2", "statlog-german-credit-numeric"),
    *(f"volcanoes-{name}" for name in ("a3", "b3", "b4", "b5", "b6", "d3", "d4")),
    *(f"thyroid-{name}" for name in ("allhyper", "allhypo", "allrep", "dis")),
    "thyroid-hypothyroid",
}
RIVALS = {
    "tabfm": "TabFM",
    "tabpfn3": "TabPFN-3",
    "tabicl": "TabICL",
    "tabpfn": "TabPFN 2.6",
    "catboost": "CatBoost",
    "lgbm": "LightGBM",
    "lgbm_linear": "LightGBM, linear leaves",
    "xgboost": "XGBoost",
    "hgb": "HistGradientBoosting",
    "random_forest": "random forest",
    "svc": "SVM",
    "logreg": "logistic regression",
    "sgd": "SGDClassifier",
    "resnet": "ResNet",
}
PRETRAINED = "tabfm", "tabpfn3", "tabicl", "tabpfn"
ABOUT = """
`make bench-small` ({heading}), folds {folds} of four{half}

`SelfStoppingClassifier(random_state=0)` with no other settings on the raw tables of
github.com/firefly1248/SmallDataBenchmarks, in its folds and by its metric, average
precision weighted by classes, of which more is better. Scores of rivals are those that
its authors have published for the same folds: each was tuned inside every fold (50
trials for boosters and the forest, grids for others; the four networks above CatBoost
were trained beforehand on other tables). Ours was run on one thread, some of it beside
other work; seconds of rivals are of other machines and are left out. Of {n_tables}
tables {n_duplicates} repeat the rows of others and are left out; so are {n_missing}
that the clone lacked. Of our fits
{n_failed} failed or took more than {most} seconds. "Ahead" and "behind" count tables
where the mean over folds differs by more than {tie}. The default is
the one with {default}.
"""


def path_of(table):
    return CLONE / "datasets" / f"{table}.arff"


def read(table):
    """The frame of a table, texts for categories, and its classes by number."""
    values, _ = arff.loadarff(path_of(table))
    frame = pd.DataFrame(values)
    for name in frame.select_dtypes(object):
        frame[name] = frame[name].str.decode("utf-8")
    y = np.unique(frame.pop("Class"), return_inverse=True)[1]
    frame = frame.replace({"?": None})
    if len(y) > MOST_ROWS:
        rows = np.random.default_rng(0).choice(len(y), MOST_ROWS, replace=False)
        frame, y = frame.iloc[rows].reset_index(drop=True), y[rows]
    return frame, y


def precision(y, shares):
    """The benchmark's metric: average precision, weighted by the classes' rows."""
    if shares.shape[1] == 2:
        return average_precision_score(y, shares[:, 1])
    y = label_binarize(y, classes=np.arange(shares.shape[1]))
    return average_precision_score(y, shares, average="weighted")


def fit(table, fold):
    """The score of ours on a fold, its expected over its true log loss, and seconds."""
    X, y = read(table)
    splits = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(X, y)
    train, test = list(splits)[fold]
    begun = perf_counter()
    model = SelfStoppingClassifier(random_state=0).fit(X.iloc[train], y[train])
    seconds = perf_counter() - begun
    # A class without training rows has no chance.
    shares = np.zeros((len(test), y.max() + 1))
    shares[:, model.classes_] = model.predict_proba(X.iloc[test])
    loss = log_loss(y[test], shares, labels=np.arange(shares.shape[1]))
    return {
        "rows": len(train),
        "score": round(float(precision(y[test], shares)), 5),
        "loss": round(float(loss), 5),
        "expected": round(float(model.best_score_corrected_ / loss), 4),
        "seconds": round(seconds, 1),
    }


def rivals():
    """Scores (n_tables, n_folds) by model, and the names of the tables."""
    scores, _, tables = joblib.load(CLONE / "results" / "optuna_models.joblib")
    return {name: np.asarray(each) for name, each in scores.items()}, list(tables)


def shown_before(fits):
    """Lines that compare the default with the former one, on folds that both have."""
    pairs = {}
    for (table, fold, default), row in fits.items():
        former = fits.get((table, fold, BEFORE))
        if default == NOW and former and not {"failed"} & (row.keys() | former.keys()):
            pairs[table, fold] = row, former
    yield f"\n## {NOW.capitalize()}, and before: {BEFORE}\n"
    yield (
        "The same folds. Seconds are not compared, since other work ran beside these "
        "fits: [studies](studies.md) compare them.\n"
    )
    yield from header("half", "fits", "mean score before", "now", "better", "worse")
    for half in (LOOKED_AT, NOT_LOOKED_AT):
        score = np.array(
            [
                [row["score"] for row in pair]
                for (table, _), pair in pairs.items()
                if half_of(table) == half
            ]
        )
        if len(score):
            gain = score[:, 0] - score[:, 1]
            now, before = (f"{mean:.4f}" for mean in score.mean(axis=0))
            counts = (gain > TIE).sum(), (gain < -TIE).sum()
            yield line(half, len(score), before, now, *counts)


def shown(fits, default, theirs, tables, folds, half):
    """The page: ours against each rival, and every table."""
    fitted, failed = {}, []
    for table in tables:
        places = [(table, fold, default) for fold in folds]
        scores = [fits[place] for place in places if place in fits]
        failed += [(table, row["failed"]) for row in scores if "failed" in row]
        if len(scores) == len(folds) and not any("failed" in row for row in scores):
            fitted[table] = {
                name: np.mean([row[name] for row in scores])
                for name in ("score", "expected", "seconds", "rows")
            }
    counted = list(fitted)
    places = [tables.index(table) for table in counted]
    ours = np.array([fitted[table]["score"] for table in counted])
    means = {name: theirs[name][places][:, folds].mean(axis=1) for name in RIVALS}
    yield ABOUT.format(
        heading=heading(),
        folds=", ".join(map(str, folds)),
        default=default,
        half=f", the {half} half of the tables" if half else "",
        n_tables=len(tables),
        n_duplicates=len(DUPLICATES & set(tables)),
        n_failed=len(failed),
        n_missing=sum(not path_of(table).exists() for table in tables),
        most=MOST_SECONDS,
        tie=TIE,
    ).strip()
    yield ""
    yield from header(
        "rival", "tables", "mean of rival", "mean of ours", "ahead", "behind", "median"
    )
    for name, title in RIVALS.items():
        known = np.isfinite(means[name])
        gain = (ours - means[name])[known]
        yield line(
            title,
            known.sum(),
            f"{means[name][known].mean():.3f}",
            f"{ours[known].mean():.3f}",
            (gain > TIE).sum(),
            (gain < -TIE).sum(),
            f"{np.median(gain):+.4f}",
        )
    classical = [means[name] for name in RIVALS if name not in PRETRAINED]
    best = np.max(classical, axis=0)
    gain = ours - best
    yield line(
        "best of the ten others, in hindsight",
        len(gain),
        f"{best.mean():.3f}",
        f"{ours.mean():.3f}",
        (gain > TIE).sum(),
        (gain < -TIE).sum(),
        f"{np.median(gain):+.4f}",
    )
    ratio = [fitted[table]["expected"] for table in counted]
    seconds = np.array([fitted[table]["seconds"] for table in counted])
    yield ""
    yield (
        f"Expected over true log loss (`best_score_corrected_`): median "
        f"{np.median(ratio):.3f}, quartiles {np.quantile(ratio, 0.25):.3f} and "
        f"{np.quantile(ratio, 0.75):.3f}. Seconds of a fit: median "
        f"{np.median(seconds):.1f}, mean {seconds.mean():.1f}, most "
        f"{seconds.max():.0f}."
    )
    for table, why in failed:
        yield f"\nFailed: {table} ({why})."
    yield from shown_before(fits)
    yield "\n## By table\n"
    yield from header(
        *("table", "rows", "half", "ours", "best of ten", "CatBoost", "TabICL"),
        *("TabPFN-3", "seconds", "expected / log loss"),
    )
    for place, table in sorted(enumerate(counted), key=lambda item: gain[item[0]]):
        own = fitted[table]
        others = best, means["catboost"], means["tabicl"], means["tabpfn3"]
        yield line(
            table,
            int(own["rows"]),
            half_of(table),
            f"{own['score']:.3f}",
            *(f"{scores[place]:.3f}" for scores in others),
            f"{own['seconds']:.1f}",
            f"{own['expected']:.2f}",
        )


def main(folds, half, output):
    theirs, tables = rivals()
    chosen = [
        name for name in tables if path_of(name).exists() and name not in DUPLICATES
    ]
    if half is not None:
        chosen = [name for name in chosen if half_of(name) == half]
    fits, worker = FITS.read(), Worker(MOST_SECONDS)
    for fold in folds:
        for table in chosen:
            if (table, fold, NOW) in fits:
                continue
            row = worker.run(partial(tried, fit, table, fold))
            FITS.add((table, fold, NOW), row)
            said = row.get("failed") or f"{row['score']:.3f} {row['seconds']:.1f} s"
            print(f"{table} {fold}: {said}", flush=True)
    fits, complete = FITS.read(), {NOW: [], BEFORE: []}
    for default, folds in complete.items():
        for fold in range(N_FOLDS):
            if all((table, fold, default) in fits for table in chosen):
                folds.append(fold)
    # Of the one with more complete folds: of equals the default of now.
    default = max(complete, key=lambda name: len(complete[name]))
    lines = ["# An outside benchmark of small tables", ""]
    for each in shown(fits, default, theirs, tables, complete[default], half):
        lines.append(each)
        print(each)
    if output is not None:
        output.write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    args = arguments(__doc__, folds=("0", "1", "2", "3"), half="")
    main([int(fold) for fold in args.folds], args.half or None, args.output)
