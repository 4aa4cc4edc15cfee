"""
One run instead of a grid, and a raw table
==========================================

**The idea.** The number of boosted trees must be chosen. ``TrajectoryEarlyStoppingCV``
grows the model on all rows and, next to it, five copies that each leave out one fold.
It keeps the number of trees with the smallest error on rows that the copies have not
seen: there is no validation set and no refit. On the diabetes data its test error is
more than a tenth below that of 1000 trees. It is about that of a grid search over five
numbers of trees, which takes several times as long. The run also estimates the error on
new rows and gives prediction intervals.

Stopping by a held-out tenth of the rows is much cheaper. The held-out tenth and the
default 100 trees have larger errors here, but on so few rows the differences are not
larger than twice their standard errors.

**No model in mind.** ``SelfStoppingRegressor`` accepts raw tables: birth dates, strings
and missing values stay as they are. Its test error is below those of a random forest
and of boosted trees with the usual encoding, and at most that of ``LassoCV``, the best
of the three on this table. It takes longer than the three together. The error that it
expects on new rows is close to the one measured, and its 90% intervals cover about 90%
of the test rows.

Every row is a test row once, and "minus ours" is the mean difference of squared errors
with its standard error over the rows.

Run ``python examples/plot_early_stopping.py --output DIR`` to write the figure. Its
left panel shows the run on another split; the black lines are the errors of a plain
model that is not stopped.
"""

from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LassoCV
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skacv import SelfStoppingRegressor, TrajectoryEarlyStoppingCV

TREES = HistGradientBoostingRegressor(learning_rate=0.05, random_state=0)
GRID = [25, 50, 100, 200, 400]
ONE_RUN, SEARCHED = "TrajectoryEarlyStoppingCV, one run", "GridSearchCV over max_iter"
NOT_STOPPED = "1000 trees, not stopped"
PEERS = {
    "LassoCV": LassoCV(),
    "RandomForestRegressor": RandomForestRegressor(random_state=0),
    "HistGradientBoosting, early_stopping": HistGradientBoostingRegressor(
        early_stopping=True, random_state=0
    ),
}
BLUE, GREY = "#0072B2", "0.6"


def splits_of(X, y, n_folds):
    """Training and test rows of X and of y, for each fold."""
    folds = KFold(n_folds, shuffle=True, random_state=0)
    return [
        (X.iloc[train], X.iloc[test], y.iloc[train], y.iloc[test])
        for train, test in folds.split(X)
    ]


def fitted_on(splits, model):
    """A clone for each split, the squared error of every test row, seconds of a fit.

    Returns
    -------
    list of estimators, ndarray, float
    """
    begun = perf_counter()
    fitted = [clone(model).fit(X, y) for X, _, y, _ in splits]
    seconds = (perf_counter() - begun) / len(splits)
    losses = [
        (y_test - each.predict(X_test)) ** 2
        for each, (_, X_test, _, y_test) in zip(fitted, splits)
    ]
    return fitted, np.concatenate(losses), seconds


def difference(losses, ours):
    """The mean of paired differences and its standard error, as text."""
    excess = losses - ours
    return f"{excess.mean():+.0f} ± {excess.std(ddof=1) / len(excess) ** 0.5:.0f}"


def print_expected(models, splits, losses):
    """What our models say of new rows, and what was measured there."""
    expected = np.mean([model.best_score_corrected_ for model in models])
    error = np.mean([model.best_score_corrected_se_ for model in models])
    covered = []
    for model, (_, X_test, _, y_test) in zip(models, splits):
        low, high = model.predict_interval(X_test, coverage=0.9).T
        covered.extend((low <= y_test) & (y_test <= high))
    print(f"expected error on new rows {expected:.0f} ± {error:.0f}, ", end="")
    print(f"measured {losses.mean():.0f}")
    print(f"prediction intervals: nominal 0.90, covered {np.mean(covered):.3f}")


# ------------------------------------------------------------------ the idea


def ways_to_stop(many, grid):
    """Models with their numbers of fits."""
    many_trees = clone(TREES).set_params(max_iter=many)
    held_out = {"early_stopping": True, "validation_fraction": 0.1}
    search = GridSearchCV(TREES, {"max_iter": grid}, scoring="neg_mean_squared_error")
    return {
        ONE_RUN: (TrajectoryEarlyStoppingCV(many_trees, random_state=0), 6),
        SEARCHED: (search, 5 * len(grid) + 1),
        "early_stopping=True, a held-out tenth": (
            clone(many_trees).set_params(**held_out),
            1,
        ),
        "100 trees, the default": (TREES, 1),
        NOT_STOPPED: (many_trees, 1),
    }


def n_trees(model):
    searched = hasattr(model, "best_params_")
    return model.best_params_["max_iter"] if searched else model.n_iter_


def compare_ways_to_stop(n_rows, n_splits, many, grid):
    """Print the first table.

    Returns
    -------
    dict
        Seconds of a fit and test error of each way.
    """
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    splits = splits_of(X[:n_rows], y[:n_rows], n_splits)
    columns = (
        f"{'trees':>8}{'test error':>11}{'minus ours':>12}{'fits':>5}{'seconds':>8}"
    )
    print(f"{'Boosted trees, diabetes, five splits':37}{columns}")
    results = {}
    # The name of a row says what is being fitted; its numbers follow.
    for name, (model, n_fits) in ways_to_stop(many, grid).items():
        print(f"{name:37}", end="", flush=True)
        models, losses, seconds = results[name] = fitted_on(splits, model)
        fewest, *_, most = sorted(map(n_trees, models))
        trees = f"{fewest}–{most}" if fewest < most else most
        excess = difference(losses, results[ONE_RUN][1]) if name != ONE_RUN else "–"
        print(f"{trees:>8}{losses.mean():11.0f}{excess:>12}{n_fits:5}{seconds:8.2f}")

    runs, losses, seconds = results[ONE_RUN]
    print_expected(runs, splits, losses)
    _, by_grid, grid_seconds = results[SEARCHED]
    not_stopped = results[NOT_STOPPED][1].mean()
    print(f"error over that of 1000 trees {losses.mean() / not_stopped:.3f}, ", end="")
    print(f"over that of the grid {losses.mean() / by_grid.mean():.3f}")
    print(f"seconds over those of the grid {seconds / grid_seconds:.2f}")
    return {
        name: (seconds, losses.mean()) for name, (_, losses, seconds) in results.items()
    }


# ------------------------------------------------------------------ no model in mind


def raw_table():
    """The diabetes data with dates of birth, words, and a tenth of the values missing.

    Returns
    -------
    DataFrame, Series
    """
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    rng = np.random.default_rng(0)
    days = (365.25 * X.pop("age")).astype(int) + rng.integers(0, 365, len(X))
    for column in X.columns.drop("sex"):
        X.loc[rng.random(len(X)) < 0.1, column] = np.nan
    X["sex"] = X["sex"].map({1: "female", 2: "male"})
    X["born"] = pd.Timestamp("1990-06-01") - pd.to_timedelta(days, unit="D")
    return X, y


def usually_encoded(model):
    """The model after means for missing numbers, scales, and a column for each word."""
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    words = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encoder = make_column_transformer((words, ["sex"]), remainder=numbers)
    return make_pipeline(encoder, model)


def compare_on_a_raw_table(n_rows):
    """Print the table, what models make of it, and our leaderboard."""
    X, y = raw_table()
    X, y = X[:n_rows], y[:n_rows]
    splits = splits_of(X, y, 3)
    print(f"\nA raw table of {len(X)} rows\n{X.head(3).to_string(index=False)}")
    columns = f"{'test error':>19}{'minus ours':>12}{'seconds':>13}"
    print(f"\n{'The raw table, three splits':37}{columns}")
    print(f"{'SelfStoppingRegressor()':37}", end="", flush=True)
    models, ours, seconds = fitted_on(splits, SelfStoppingRegressor(random_state=0))
    print(f"{ours.mean():19.0f}{'–':>12}{seconds:13.2f}")

    # The others need a number for a date.
    days = (X["born"] - pd.Timestamp("1970-01-01")).dt.days
    splits_with_days = splits_of(X.assign(born=days), y, 3)
    for name, model in PEERS.items():
        print(f"{name:37}", end="", flush=True)
        _, losses, seconds = fitted_on(splits_with_days, usually_encoded(model))
        print(f"{losses.mean():19.0f}{difference(losses, ours):>12}{seconds:13.2f}")

    print_expected(models, splits, ours)
    board = models[0].leaderboard()[["member", "weight", "score", "score_se"]]
    board = board.head(6).round(2).to_string(index=False)
    print(f"\nleaderboard(), first split\n{board}")


# ------------------------------------------------------------------ the figure


def draw_run(ax, many):
    """Errors along a run, and those of a plain model that goes on for longer."""
    X, y = load_diabetes(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    trees = clone(TREES).set_params(max_iter=many)
    run = TrajectoryEarlyStoppingCV(trees, random_state=0).fit(X_train, y_train)
    best, path = run.best_iter_, run.path_
    copies = ax.plot(run.estimator_.cv_fold_path_, color=GREY, linewidth=0.8)
    copies[0].set_label("held-out error of each of five copies")
    ax.plot(path, color=BLUE, linewidth=3, label="their mean")
    plain = clone(TREES).set_params(max_iter=min(many, 300)).fit(X_train, y_train)
    n_trees = np.arange(1, plain.n_iter_ + 1)
    for label, style, X, y in (
        ("test error", "-", X_test, y_test),
        ("training error", ":", X_train, y_train),
    ):
        errors = [
            np.mean((y - predicted) ** 2) for predicted in plain.staged_predict(X)
        ]
        ax.plot(n_trees, errors, style, color="black", label=label)
    ax.plot(best, path[best], "o", color=BLUE, markersize=10, zorder=4)
    ax.annotate(
        f"stops here: {best} trees,\nno refit",
        (best, path[best]),
        xytext=(0.38, 0.27),
        textcoords="axes fraction",
        color=BLUE,
        fontweight="bold",
        arrowprops={"arrowstyle": "-", "color": BLUE, "shrinkB": 6},
    )
    ax.set(
        xlabel="number of trees",
        ylabel="squared error",
        ylim=(0, None),
        xlim=(0, n_trees[-1]),
    )
    ax.set_title("One run", loc="left")
    ax.legend(frameon=False, loc="upper right", fontsize=9)


def draw_seconds(results, ax):
    """A bar of seconds for each way to stop, with its test error at the end."""
    names = list(results)[::-1]
    seconds, errors = zip(*(results[name] for name in names))
    bars = ax.barh(range(len(names)), seconds, height=0.4, color=GREY)
    bars[-1].set_color(BLUE)
    ax.bar_label(bars, [f"error {error:.0f}" for error in errors], padding=4)
    # Names stand above the bars, inside of the axes.
    ax.set_yticks(np.arange(len(names)) + 0.24, names, ha="left", va="bottom")
    ax.tick_params(axis="y", length=0, pad=-2, labelsize=9)
    ax.set(xlabel="seconds of a fit", ylim=(-0.5, len(names) - 0.3))
    ax.set_xlim(0, 1.5 * max(seconds))
    ax.set_title("Five ways to stop", loc="left")


def main(n_rows=None, n_splits=5, many=1000, grid=GRID, output=None):
    """Print the tables and draw the figure."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(7, 5), width_ratios=(4, 3), layout="constrained"
    )
    draw_run(left, many)
    draw_seconds(compare_ways_to_stop(n_rows, n_splits, many, grid), right)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    compare_on_a_raw_table(n_rows)
    if output is not None:
        path = Path(output) / "early_stopping.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
