"""What longer steps after a hundred boosted trees cost and save."""

from time import process_time

import numpy as np
from scipy.stats import gmean
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, StratifiedKFold

from skacv import TrajectoryEarlyStoppingCV
from skacv.model_selection.defaults.portfolio import PORTFOLIOS, TableInfo
from skacv.staged import Staged
from skacv.tables import TableEncoder

from .. import small
from ..framework import LOOKED_AT, half_of, header, line, study
from ..tables import OUTSIDE, listed, read

MOST_ROWS, MANY_TREES = 1500, 100
EQUAL = {
    "regression": HistGradientBoostingRegressor,
    "classification": HistGradientBoostingClassifier,
}


def forms(task, n_rows, n_columns, n_classes):
    """The boosted trees of the default for a table: with equal steps, and its own."""
    info = TableInfo(n_rows, n_columns, 1, n_classes=n_classes)
    (member,) = [one for one in PORTFOLIOS[task](info) if one.name == "boosted trees"]
    growing = member.estimator.estimator
    if hasattr(growing, "steps"):
        growing = growing.steps[-1][1]
    return EQUAL[task](**growing.get_params()), growing


def outcomes(task, X, y, train, test):
    """Loss on new rows, number of trees and seconds, of equal and of growing steps."""
    n_classes = len(np.unique(y)) if task == "classification" else 1
    for trees in forms(task, len(train), X.shape[1], n_classes):
        model = TrajectoryEarlyStoppingCV(
            Staged(trees), encoder=TableEncoder(), task=task, random_state=0
        )
        begun = process_time()
        model.fit(X.iloc[train], y[train])
        seconds = process_time() - begun
        if task == "regression":
            loss = np.mean((model.predict(X.iloc[test]) - y[test]) ** 2)
        else:
            shares = model.predict_proba(X.iloc[test])
            loss = log_loss(y[test], shares, labels=model.classes_)
        yield loss, model.best_iter_, seconds


def looked_at():
    """Task, rows, targets and a split of every table, by name."""
    for table in listed((OUTSIDE,)):
        X, y, _ = read(table)
        if half_of(table.name) == LOOKED_AT and len(y) <= MOST_ROWS:
            split = next(KFold(4, shuffle=True, random_state=0).split(X))
            yield table.name, ("regression", X, y, *split)
    for name in small.rivals()[1]:
        is_there = small.path_of(name).exists() and name not in small.DUPLICATES
        if not is_there or half_of(name) != LOOKED_AT:
            continue
        X, y = small.read(name)
        if len(y) <= MOST_ROWS and y.max() < 10:
            split = next(StratifiedKFold(4, shuffle=True, random_state=0).split(X, y))
            yield name, ("classification", X, y, *split)


@study("tables", "small")
def growing_steps():
    """The default's boosted trees: steps that grow after 100 trees over equal ones.

    The looked-at half of the outside regressions and of the outside benchmark of small
    tables, at most 1500 rows and ten classes, one fold of four; the trees alone. Ratios
    of the loss on new rows (squared error, log loss) and of seconds: geometric means
    with the standard error, and all seconds. "Long" are those whose best number of
    equal steps is more than 100.
    """
    rows = []
    for name, (task, *data) in looked_at():
        (loss, n_trees, seconds), growing = outcomes(task, *data)
        rows.append(
            (task, n_trees > MANY_TREES, loss, seconds, *growing, n_trees, name)
        )
    yield from header(
        *("tables", "number", "loss", "seconds", "all seconds, equal", "growing"),
        *("median trees, equal", "growing"),
    )
    for task in EQUAL:
        for is_long in (False, True):
            part = [row for row in rows if row[:2] == (task, is_long)]
            if not part:
                continue
            loss, seconds, new_loss, n_new, new_seconds, n_trees = np.array(
                [row[2:8] for row in part]
            ).T
            logs = np.log(new_loss / loss)
            error = logs.std(ddof=1) / np.sqrt(len(logs))
            yield line(
                f"{task}, {'long' if is_long else 'others'}",
                len(part),
                f"{np.exp(logs.mean()):.3f} ± {error:.3f}",
                f"{gmean(new_seconds / seconds):.2f}",
                *(
                    f"{np.sum(all_seconds):.0f}"
                    for all_seconds in (seconds, new_seconds)
                ),
                *(f"{np.median(number):.0f}" for number in (n_trees, n_new)),
            )
    yield ""
    yield from header(
        "table", "loss", "trees, equal", "growing", "seconds, equal", "growing"
    )
    for _, is_long, loss, seconds, new_loss, n_new, new_seconds, n_trees, name in rows:
        if is_long:
            yield line(
                name,
                f"{new_loss / loss:.3f}",
                n_trees,
                n_new,
                f"{seconds:.1f}",
                f"{new_seconds:.1f}",
            )
