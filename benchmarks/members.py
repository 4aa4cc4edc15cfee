"""Does a blend gain from a Gaussian process and an SVM? ``make bench-members``.

Ten tables of ``tables.csv``, its part "members", in the folder that SKACV_TABLES names.
Half of the rows, at most 1000, train, and at most 5000 others test; ten splits. Every
split is kept in the folder that SKACV_MEMBERS names, so that a run that was interrupted
goes on.
"""

import os
import warnings
from pathlib import Path
from time import process_time

import numpy as np
from scipy.stats import gmean
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from threadpoolctl import threadpool_limits

from skacv import (
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    TableEncoder,
    TrajectoryEarlyStoppingCV,
)
from skacv.model_selection.data import SearchData

from .framework import arguments, header, heading, kept, line
from .tables import MEMBERS, TASKS, listed, read
from .unseen import MOST_TEST, n_training

CACHE = Path(os.environ.get("SKACV_MEMBERS", "output/members"))
N_SPLITS = 10
STRENGTHS = [0.3, 1.0, 3.0, 10.0, 30.0]
PROCESS, MACHINE = "Gaussian process", "SVM"
ABOUT = """
`make bench-members`, `python -m benchmarks.members` ({heading})

`SelfStoppingRegressor` and `SelfStoppingClassifier`, the default, compared with a
blend of the same members and of two that are fitted once: a Gaussian process (an RBF
kernel and noise, scales by the marginal likelihood) and an SVM (five values of C;
probabilities by `CalibratedClassifierCV`). All have `encoder=TableEncoder()`, which
scales the columns for these two. Half of the rows, at most 1000, are for training, at
most 5000 of the others for testing; means of {n_splits} splits. Errors are the squared
error for numbers and the log loss for classes, on the test rows.

"Both over default" is the error of the larger blend divided by that of the default,
with its standard error over the splits, which overlap, so that it is too small. "Best
single" is the member of the larger blend with the least held-out score, and its error
over that of the default. Weights are those in the larger blend. "Seconds" are those of
a processor for the larger blend, divided by those for the default, in one process.
"""


def fitted_once(task):
    """The two members, by name, and the values of C to compare."""
    if task == "classification":
        process = GaussianProcessClassifier(ConstantKernel() * RBF(5.0))
        machine = CalibratedClassifierCV(SVC(), ensemble=False)
        strength = f"{MACHINE}__estimator__C"
    else:
        kernel = ConstantKernel() * RBF(5.0) + WhiteKernel()
        process = GaussianProcessRegressor(kernel, normalize_y=True)
        machine = TransformedTargetRegressor(SVR(), transformer=StandardScaler())
        strength = f"{MACHINE}__regressor__C"
    return [(PROCESS, process), (MACHINE, machine)], {strength: STRENGTHS}


def error_of(task, model, X, y):
    if task == "classification":
        return float(log_loss(y, model.predict_proba(X), labels=model.classes_))
    return float(np.mean((np.ravel(model.predict(X)) - y) ** 2))


def compared(task, X, y, seed):
    """Errors and seconds of the default and of the larger blend, on one split."""
    size, is_class = n_training(len(y)), task == "classification"
    X, X_test, y, y_test = train_test_split(
        *(X, y),
        train_size=size,
        test_size=min(len(y) - size, MOST_TEST),
        random_state=seed,
        stratify=y if is_class else None,
    )
    kind = SelfStoppingClassifier if is_class else SelfStoppingRegressor
    begun = process_time()
    default = kind(encoder=TableEncoder(), random_state=0).fit(X, y)
    seconds = process_time() - begun
    added, grid = fitted_once(task)
    members = SearchData.of(default, X, y, {}).members
    larger = TrajectoryEarlyStoppingCV(
        [*members, *added],
        rule="blend",
        encoder=TableEncoder(),
        param_grid=grid,
        random_state=0,
    )
    begun = process_time()
    larger.fit(X, y)
    seconds_of_larger = process_time() - begun
    board = (
        larger.leaderboard().set_index("member").drop(index="blend", errors="ignore")
    )
    return {
        "default": error_of(task, default, X_test, y_test),
        "both": error_of(task, larger, X_test, y_test),
        "seconds": [seconds, seconds_of_larger],
        "errors": {
            name: error_of(task, member, X_test, y_test)
            for name, member in larger.members_.items()
        },
        "scores": board["score"].to_dict(),
        "corrected": [default.best_score_corrected_, larger.best_score_corrected_],
        "weights": larger.weights_,
    }


def run_split(table, seed):
    """What one split has found, fitted if it is not kept."""
    X, y, fingerprint = read(table)

    def work():
        with warnings.catch_warnings(action="ignore"), threadpool_limits(1):
            return compared(table.task, X, y, seed)

    same = {"fingerprint": fingerprint, "rows": n_training(len(y))}
    return kept(CACHE / table.name / f"{seed}.json", work, same)


def best_single(row):
    """The member with the least held-out score of a split."""
    return min(row["scores"], key=row["scores"].get)


def mean_and_error(ratios):
    mean = np.mean(ratios)
    if len(ratios) < 2:
        return f"{mean:.3f}"
    return f"{mean:.3f} ± {np.std(ratios, ddof=1) / np.sqrt(len(ratios)):.3f}"


def ratios_of(rows):
    """Of splits, over the default: errors of the blend and the best single, seconds."""
    both = [row["both"] / row["default"] for row in rows]
    single = [row["errors"][best_single(row)] / row["default"] for row in rows]
    seconds = [row["seconds"][1] / row["seconds"][0] for row in rows]
    return both, single, seconds


def by_table(results):
    yield from header(
        *("table", "training rows", "both over default", "best single over default"),
        *("best single", f"weight of {PROCESS}", f"of {MACHINE}"),
        *("seconds of the default", "seconds over default"),
    )
    for table, rows in results.items():
        both, single, seconds = ratios_of(rows)
        weights = [
            f"{np.mean([row['weights'][name] for row in rows]):.2f}"
            for name in (PROCESS, MACHINE)
        ]
        names = ", ".join(dict.fromkeys(map(best_single, rows)))
        yield line(
            *(table.name, rows[0]["rows"], mean_and_error(both)),
            *(f"{np.mean(single):.3f}", names, *weights),
            *(f"{np.mean([row['seconds'][0] for row in rows]):.1f}",),
            f"{np.mean(seconds):.2f}",
        )


def summary(results):
    """Geometric means over tables, with standard errors of their logarithms."""
    yield from header("tables", "both over default", "best single", "seconds")
    for task in (*TASKS, None):
        of_task = [
            [float(np.mean(part)) for part in ratios_of(rows)]
            for table, rows in results.items()
            if task in (table.task, None)
        ]
        if not of_task:
            continue
        cells = []
        for column in np.transpose(of_task):
            error = np.std(np.log(column), ddof=1) / np.sqrt(len(column))
            cells.append(f"{gmean(column):.3f} ± {gmean(column) * error:.3f}")
        yield line(f"{task or 'all'}, {len(of_task)}", *cells)


def by_member(results):
    """The error of every member by itself over that of the default, by table."""
    for task in TASKS:
        of_task = {t: rows for t, rows in results.items() if t.task == task}
        ratios = {}
        for table, rows in of_task.items():
            for name in rows[0]["errors"]:
                over = [row["errors"][name] / row["default"] for row in rows]
                ratios.setdefault(name, {})[table.name] = float(np.mean(over))
        if of_task:
            yield from header("member", *(table.name for table in of_task), "mean")
        for name, of_tables in ratios.items():
            cells = [*of_tables.values(), gmean([*of_tables.values()])]
            yield line(name, *(f"{cell:.3f}" for cell in cells))
        yield ""


def claimed(results):
    """The corrected score over the error on test rows, of both blends."""
    yield from header("blend", "corrected score over its error")
    for number, name in enumerate(("default", "both")):
        ratios = [
            np.mean([row["corrected"][number] for row in rows])
            / np.mean([row[name] for row in rows])
            for rows in results.values()
        ]
        yield line(name, mean_and_error(ratios))


SECTIONS = {
    "Means over tables": summary,
    "By table": by_table,
    "Members by themselves, over the default": by_member,
    "Corrected scores": claimed,
}


def page(results):
    n_splits = len(next(iter(results.values())))
    text = [
        f"# Members fitted once\n{ABOUT.format(heading=heading(), n_splits=n_splits)}"
    ]
    for title, lines in SECTIONS.items():
        text.append("\n".join([f"## {title}\n", *lines(results), ""]))
    return "\n".join(text)


if __name__ == "__main__":
    args = arguments(__doc__, only=(), splits=N_SPLITS)
    tables = listed((MEMBERS,), args.only)
    results = {table: [] for table in tables}
    for seed in range(args.splits):
        for table in tables:
            row = run_split(table, seed)
            results[table].append(row)
            print(f"{table.name} {seed}: {row}", flush=True)
    print(page(results))
    if args.output:
        args.output.write_text(page(results))
