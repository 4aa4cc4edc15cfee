"""Is the default as good with a million rows as with 500? ``make bench-sizes``.

Sections are rows, scores, shapes and tables, all if none is named; ``--only`` takes
patterns of names of cases, such as ``regression-20000``, ``*-500`` or ``adult``. What a
case has given is kept in the folder that SKACV_SIZES names, so that a run that was
interrupted goes on, and the page has all that is kept; with ``--anew`` cases that are
kept are measured again. ``--methods`` names those of the tables: on many classes or
categories CatBoost takes long. ``--share 0.01`` takes so many of the rows of each case,
to see that it runs; it keeps them apart. Tables (``tables.py``) are in the folder that
SKACV_TABLES names.

Methods are fitted by turns in one process, with the same number of threads; seconds are
medians, errors those of the last fit. Memory is that of a process of its own which has
nothing but X, y and what is imported: the most that it has had during the fit (VmHWM of
Linux), less what it had before.
"""

import json
import os
import warnings
from contextlib import suppress
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import joblib
import numpy as np
from scipy.special import expit, rel_entr, xlogy
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from skacv import (
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    TrajectoryEarlyStoppingCV,
)

from .baselines import EVALUATED, PATIENCE, SEED, catboost, histograms, lightgbm
from .framework import (
    alone,
    arguments,
    header,
    heading,
    kept,
    line,
    medians,
    peak_megabytes,
    record,
    seconds,
)
from .tables import LARGE, TASKS, listed, read

FOLDER = Path(os.environ.get("SKACV_SIZES", "output/sizes"))
LIBRARIES = ("pandas", "catboost", "lightgbm")
TITLE, NONE = "From 500 rows to a million", "–"
MOST_TREES, N_FRESH = 5000, 50_000
OURS, LIGHTGBM, HISTOGRAMS = "default", "LightGBM", "HistGB"


@dataclass(frozen=True)
class Settings:
    """What the command line says; a share below one is to see that it runs."""

    threads: int
    repeats: int
    share: float = 1.0
    methods: tuple = ()

    def rows(self, n):
        """So many rows of n."""
        return n if self.share == 1 else max(100, round(self.share * n))


def default(task, threads, is_frame):
    """Ours with nothing set."""
    is_class = task == "classification"
    return (SelfStoppingClassifier if is_class else SelfStoppingRegressor)(
        random_state=0
    )


def booster(of_library, task, threads, is_frame):
    """At most 5000 trees, stopped by a fifth of the training rows."""
    return of_library(task, is_frame, n_jobs=threads, n_estimators=MOST_TREES)


def histogram_booster(task, threads, is_frame):
    settings = {"validation_fraction": EVALUATED, "n_iter_no_change": PATIENCE}
    return histograms(task, is_frame, max_iter=MOST_TREES, **settings)


def staged(task, threads, is_frame):
    from lightgbm import LGBMRegressor

    settings = {"n_jobs": threads, "random_state": SEED, "verbose": -1}
    model = LGBMRegressor(n_estimators=MOST_TREES, **settings)
    return TrajectoryEarlyStoppingCV(model, random_state=0)


METHODS = {
    OURS: default,
    LIGHTGBM: partial(booster, lightgbm),
    "CatBoost": partial(booster, catboost),
    HISTOGRAMS: histogram_booster,
}


@dataclass(frozen=True)
class Data:
    """Rows that train and fresh ones.

    Classes are 0, 1, ... ``truth`` is the mean of the fresh y, of two classes its
    logit, and None where nobody knows.
    """

    task: str
    X: Any
    y: np.ndarray
    X_fresh: Any
    y_fresh: np.ndarray
    truth: np.ndarray | None = None


def standardized(values):
    return (values - values.mean()) / values.std()


def drawn(task, n, n_columns, seed=0, n_fresh=N_FRESH):
    """Uniform columns, ten of which matter; noise of variance one, or labels.

    The truth is a sum of smooth terms and one of interactions, each of variance one.
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n + n_fresh, n_columns))
    smooth = np.sin(3 * X[:, 0]) + 2 * X[:, 1] ** 2
    smooth += np.cos(2 * X[:, 2] + X[:, 3]) + np.exp(X[:, 4])
    interactions = 3 * X[:, 5] * X[:, 6] + 2 * (X[:, 7] > 0) * X[:, 8]
    interactions += 2 * X[:, 0] * X[:, 9] + np.abs(X[:, 1] - X[:, 5])
    truth = standardized(smooth) + standardized(interactions)
    if task == "regression":
        y = truth + rng.standard_normal(len(X))
    else:
        y = (rng.random(len(X)) < expit(truth)).astype(int)
    return Data(task, X[:n].copy(), y[:n], X[n:].copy(), y[n:], truth[n:])


def split(task, X, y, settings):
    """A random fifth as fresh rows, classes in their shares, those that train."""
    is_class = task == "classification"
    X, X_fresh, y, y_fresh = train_test_split(
        X, y, test_size=0.2, random_state=0, stratify=y if is_class else None
    )
    n = settings.rows(len(y))
    X, y = X[:n], y[:n]
    if is_class:
        classes, y = np.unique(y, return_inverse=True)
        known = np.isin(y_fresh, classes)
        X_fresh, y_fresh = X_fresh[known], np.searchsorted(classes, y_fresh[known])
    return Data(task, X, y, X_fresh, y_fresh)


def errors(model, data):
    """The error on fresh rows, and what it is above that of the truth.

    The excess is a mean over the labels of the fresh rows, given their columns: the
    squared distance to the truth, or the divergence of the true probabilities.
    """
    results = {}
    if data.task == "regression":
        predicted = np.ravel(model.predict(data.X_fresh))
        results["error"] = np.mean((predicted - data.y_fresh) ** 2)
        if data.truth is not None:
            results["excess"] = np.mean((predicted - data.truth) ** 2)
    else:
        predicted = model.predict_proba(data.X_fresh)
        labels = np.arange(predicted.shape[1])
        results["error"] = log_loss(data.y_fresh, predicted, labels=labels)
        if data.truth is not None:
            true = np.column_stack([1 - expit(data.truth), expit(data.truth)])
            divergences = rel_entr(true, np.maximum(predicted, np.finfo(float).tiny))
            results["excess"] = divergences.sum(axis=1).mean()
    return {name: float(value) for name, value in results.items()}


def error_of_truth(data):
    """The mean error of the truth on the fresh rows."""
    if data.task == "regression":
        return 1.0
    true = expit(data.truth)
    return -float(np.mean(xlogy(true, true) + xlogy(1 - true, 1 - true)))


def tried(build, X, y):
    """A fitted model, or why there is none, and seconds of processors."""
    begun = process_time()
    try:
        model = build().fit(X, y)
    except ImportError as error:
        model = f"not installed: {error}"
    except Exception as error:  # libraries have classes of their own
        model = str(error).splitlines()[0] if str(error) else repr(error)
    return model, process_time() - begun


def compared(methods, data, settings):
    """Fit methods by turns; numbers by their names, or "failed", of each."""
    is_frame = hasattr(data.X, "columns")
    builds = {
        name: partial(method, data.task, settings.threads, is_frame)
        for name, method in methods.items()
    }
    works, results = [partial(tried, b, data.X, data.y) for b in builds.values()], {}
    for build in builds.values():
        with suppress(ImportError):
            build()  # imports are in no fit's seconds
    with warnings.catch_warnings(), threadpool_limits(settings.threads):
        warnings.simplefilter("ignore")  # peers that have not converged
        fits = medians(*works, repeats=settings.repeats)
        for name, (elapsed, (model, processors)) in zip(builds, fits):
            if isinstance(model, str):
                results[name] = {"failed": model}
                continue
            results[name] = {"seconds": elapsed, "processor_seconds": processors}
            results[name] |= errors(model, data)
            if hasattr(model, "weights_"):
                weights = {k: round(float(w), 3) for k, w in model.weights_.items()}
                results[name]["weights"] = weights
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.joblib"
        joblib.dump((data.X, data.y), path)
        for name, build in builds.items():
            if "failed" not in results[name]:
                peak = alone(peak_of_fit, build, path, settings.threads)
                results[name]["megabytes"] = peak
    return {"x_megabytes": megabytes(data.X), "methods": results}


def peak_of_fit(build, path, threads):
    """Megabytes that a fit takes above X, y and imports, in a process of its own."""
    warnings.simplefilter("ignore")
    with threadpool_limits(threads):
        model = build()
        X, y = joblib.load(path)
        # From here on, not from what reading has taken.
        Path("/proc/self/clear_refs").write_text("5")
        before = peak_megabytes()
        model.fit(X, y)
        return peak_megabytes() - before


def megabytes(X):
    """Of an array or a frame."""
    size = X.memory_usage(deep=True).sum() if hasattr(X, "memory_usage") else X.nbytes
    return float(size) / 2**20


def sizes_of_rows(task, n, n_columns, settings):
    data = drawn(task, settings.rows(n), n_columns)
    return compared(METHODS, data, settings)


def scores(task, n, seed, settings):
    """What the default says of itself, where folds are partly run."""
    data = drawn(task, settings.rows(n), 20, seed)
    with warnings.catch_warnings(), threadpool_limits(settings.threads):
        warnings.simplefilter("ignore")
        model = default(task, settings.threads, False)
        elapsed, model = seconds(model.fit, data.X, data.y)
        true = error_of_truth(data) + errors(model, data)["excess"]
        said = float(model.best_score_corrected_)
        results = {"seconds": elapsed, "true": true, "said": said}
        if task == "regression":
            ends = model.predict_interval(data.X_fresh, coverage=0.9)
            covered = (ends[:, 0] <= data.y_fresh) & (data.y_fresh <= ends[:, 1])
            results["coverage"] = float(np.mean(covered))
    return {"methods": {OURS: results}}


def shapes(n, methods, settings):
    data = drawn("regression", settings.rows(n), 50)
    return compared(methods, data, settings)


def real_tables(table, settings):
    X, y, fingerprint = read(table)
    data = split(table.task, X, y, settings)
    names = settings.methods or METHODS
    methods = {name: METHODS[name] for name in names}
    size = {"rows": len(data.y), "columns": X.shape[1], "fingerprint": fingerprint}
    return size | compared(methods, data, settings)


SIZES = {n: 20 for n in (500, 2000, 5000, 20_000, 100_000, 300_000)} | {1_000_000: 10}
MANY_ROWS = 20_000
SEEDS = {20_000: range(1, 21), 100_000: range(1, 3)}
AGAINST = {LIGHTGBM: METHODS[LIGHTGBM]}
SECTIONS = {
    "rows": {
        f"{task}-{n}": partial(sizes_of_rows, task, n, n_columns)
        for task, (n, n_columns) in product(TASKS, SIZES.items())
    },
    "scores": {
        f"{task}-{n}-seed-{seed}": partial(scores, task, n, seed)
        for task, n in product(TASKS, SEEDS)
        for seed in SEEDS[n]
    },
    "shapes": {
        "memory": partial(shapes, 200_000, {OURS: default} | AGAINST),
        "staged": partial(shapes, 300_000, {"staged": staged} | AGAINST),
    },
    "tables": {table.name: partial(real_tables, table) for table in listed([LARGE])},
}
ABOUT = {
    "rows": """## Simulated rows

`python -m benchmarks.sizes rows`

Uniform columns, ten of which matter: half of the signal is smooth and half
interactions, each of variance one; noise of variance one, or labels with the signal as
their logit. The error is the mean squared error or the log loss on 50,000 fresh rows,
whose noise is another at every size: sizes are compared by the excess.
""",
    "scores": """## What the default says of itself

`python -m benchmarks.sizes scores`

The same data and other seeds: `best_score_corrected_` over the true error, which is the
excess on 50,000 fresh rows and the error of the truth, and how many of these rows
`predict_interval(coverage=0.9)` covers.
""",
    "shapes": """## More columns, and a model that stops itself

`python -m benchmarks.sizes shapes`

- memory: 200,000 x 50 of the rows above.
- staged: `TrajectoryEarlyStoppingCV(LGBMRegressor(n_estimators=5000))` on 300,000 x 50.
""",
    "tables": """## Real tables of more than 20,000 rows

`python -m benchmarks.sizes tables`

Raw frames, as `pd.read_csv` gives them (dates parsed): a random fifth are the fresh
rows. LightGBM, CatBoost and HistGradientBoosting have categories and missing values as
they are. `benchmarks/tables.csv` and `tables.py` say where the tables are from.
""",
}


def measure(sections, patterns, settings, folder, anew=False):
    """Measure cases that are not kept yet, and keep each as soon as it is done.

    Yields section, name of the case, and what it has given.
    """
    for section in sections or SECTIONS:
        for case, work in SECTIONS[section].items():
            if any(fnmatchcase(case, pattern) for pattern in patterns or ["*"]):
                path = folder / section / f"{case}.json"
                done = partial(_done, work, settings)
                yield section, case, kept(path, done, is_old=not anew)


def _done(work, settings):
    return record(LIBRARIES) | asdict(settings) | work(settings)


def kept_in(folder):
    """What cases have given, by section and name."""
    paths = {
        section: {case: folder / section / f"{case}.json" for case in cases}
        for section, cases in SECTIONS.items()
    }
    return {
        section: {
            case: json.loads(path.read_text())
            for case, path in of_section.items()
            if path.exists()
        }
        for section, of_section in paths.items()
    }


def number(value, digits=3):
    return NONE if value is None else f"{value:.{digits}g}"


def summary_lines(results):
    """Our error and seconds over those of each opponent, by section and size."""
    yield from header(
        *("section", "rows", "opponent", "cases", "our error over its, median"),
        *("worst", "with the smaller error", "our seconds over its, median", "slowest"),
    )
    is_large = {
        case: int(case.rpartition("-")[2]) >= MANY_ROWS for case in results["rows"]
    }
    kinds = {
        ("rows", "500 to 5000"): [case for case in is_large if not is_large[case]],
        ("rows", "20,000 to a million"): [case for case in is_large if is_large[case]],
        ("tables", "more than 20,000"): [*results["tables"]],
    }
    for (section, size), cases in kinds.items():
        found = [results[section][case]["methods"] for case in cases]
        for opponent in dict.fromkeys(name for methods in found for name in methods):
            pairs = [
                (methods[OURS], methods[opponent])
                for methods in found
                if opponent != OURS and "error" in methods.get(opponent, {})
            ]
            if pairs:
                over = {
                    key: [ours[key] / theirs[key] for ours, theirs in pairs]
                    for key in ("error", "seconds")
                }
                yield line(
                    *(section, size, opponent, len(pairs)),
                    *(f"{of(over['error']):.3f}" for of in (median, max)),
                    sum(ratio < 1 for ratio in over["error"]),
                    *(number(of(over["seconds"])) for of in (median, max)),
                )


def fit_lines(results):
    """A line for every case and method: its numbers, and ours over them."""
    yield from header(
        *("case", "method", "error", "excess", "seconds", "of processors"),
        *("MB above X", "MB of X", "our error over it", "our seconds over it"),
        "threads, day, weights",
    )
    numbers = "excess", "seconds", "processor_seconds", "megabytes"
    for case, outcome in results.items():
        ours = next(iter(outcome["methods"].values()))
        for name, found in outcome["methods"].items():
            is_ours, said = found is ours, ""
            if is_ours:
                weights = found.get("weights", {}).items()
                weights = (f"{member} {w:.2f}" for member, w in weights if w)
                said = ", ".join([str(outcome["threads"]), outcome["date"], *weights])
            ratios = (
                ours[key] / found[key] if key in found and not is_ours else None
                for key in ("error", "seconds")
            )
            yield line(
                *(case, name, found.get("failed") or number(found.get("error"), 4)),
                *(number(found.get(key)) for key in numbers),
                number(outcome["x_megabytes"] if is_ours else None),
                *map(number, ratios),
                said,
            )


def score_lines(results):
    """A line for every fit of ours beside the truth, and the means over seeds."""
    yield from header(
        *("case", "said", "true", "said over true", "coverage", "seconds", "day")
    )
    means = {}
    for case, outcome in results.items():
        found = outcome["methods"][OURS]
        ratio, covers = found["said"] / found["true"], found.get("coverage")
        means.setdefault(case.rpartition("-seed-")[0], []).append((ratio, covers))
        yield line(
            *(case, number(found["said"], 4), number(found["true"], 4)),
            *(number(ratio, 4), number(covers), number(found["seconds"])),
            outcome["date"],
        )
    for case, pairs in means.items():
        ratios, covers = zip(*pairs)
        mean = None if None in covers else np.mean(covers)
        cells = number(np.mean(ratios), 4), number(mean, 4)
        yield line(f"{case}, mean of {len(pairs)} seeds", "", "", *cells, "", "")


ABOUT_ALL = """
`make bench-sizes`, `python -m benchmarks.sizes` ({heading})

`SelfStoppingRegressor(random_state=0)` and `SelfStoppingClassifier(random_state=0)`,
"default", compared with LightGBM and CatBoost with at most 5000 trees, stopped by a
fifth of the rows after 50 trees without improvement, and
`HistGradientBoosting(early_stopping=True, n_iter_no_change=50, max_iter=5000,
validation_fraction=0.2)`. All are fitted in turn in one process with the same number of
threads; seconds are medians, processor seconds those of the last fit. The excess is the
distance from the truth: the squared distance to the true mean, or the divergence from
the true probabilities. Memory is measured in a separate process: the peak megabytes of
the fit, above X, y and imports. Each case has the day on which it was measured.
"""


def page(results):
    """The page as Markdown."""
    text = [f"# {TITLE}\n{ABOUT_ALL.format(heading=heading(LIBRARIES))}"]
    text.append("\n".join(["## Summary\n", *summary_lines(results), ""]))
    for name, about in ABOUT.items():
        lines = score_lines if name == "scores" else fit_lines
        found = lines(results[name]) if results[name] else ["Not measured."]
        text.append("\n".join([about, *found, ""]))
    return "\n".join(text)


if __name__ == "__main__":
    threads = joblib.cpu_count()
    options = {"only": (), "methods": (), "repeats": 3, "threads": threads}
    args = arguments(__doc__, SECTIONS, **options, share=1.0, anew=False)
    settings = Settings(args.threads, args.repeats, args.share, args.methods)
    folder = FOLDER if args.share == 1 else FOLDER / f"share-{args.share:g}"
    cases = measure(args.names, args.only, settings, folder, args.anew)
    for section, case, outcome in cases:
        print(f"{section} {case}", flush=True)
        for name, numbers in outcome["methods"].items():
            print(f"  {name}: {numbers}", flush=True)
        if args.output is not None:
            args.output.write_text(page(kept_in(folder)))
