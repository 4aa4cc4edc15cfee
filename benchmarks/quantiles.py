"""Quantiles that stop themselves beside a grid search at every level: bench-quantiles.

Ten tables of benchmarks/tables, of the half on which nothing has been tuned, with at
least 500 rows and targets as people have them, in the folder that SKACV_TABLES names.
In every split 1000 random rows, or two thirds of fewer, train, and at most 2000 others
are new. "Ours" is ``SelfStoppingQuantileRegressor()`` with levels .05, .5 and .95, on
the raw table. "Grid" is, for each level, HistGradientBoostingRegressor of the pinball
loss in GridSearchCV with five folds over 8 combinations of ``max_iter`` (50, 150),
``learning_rate`` (.05, .1) and ``max_leaf_nodes`` (6, 31), texts as categories.

Means over the splits: the share of new targets at or below each level; the share of new
rows of which two levels cross; the mean pinball loss of all levels together, that of
ours relative to that of the grid, with its standard error over the splits, which
overlap, so that it is too small; and processor seconds of one thread. The last lines
have means, geometric ones of ratios, over the tables, and the same with
``conformalize=True``.
"""

import warnings
from time import process_time

import numpy as np
from joblib import Parallel, delayed
from pandas import Categorical
from pandas.api.types import is_numeric_dtype
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import make_scorer, mean_pinball_loss
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

from skacv import SelfStoppingQuantileRegressor

from .framework import arguments, header, heading, line
from .tables import listed, read

LEVELS = (0.05, 0.5, 0.95)
TABLES = (
    *("bdims", "bfi", "bikes", "births14", "car_prices", "college"),
    *("computers", "concrete", "nmes1988", "ames"),
)
GRID = {
    "max_iter": [50, 150],
    "learning_rate": [0.05, 0.1],
    "max_leaf_nodes": [6, 31],
}
MOST_TRAINING, MOST_NEW = 1000, 2000


def split_of(name, seed):
    """Training and new rows of a table: two frames, and their targets."""
    (table,) = listed(names=(name,))
    frame, y, _ = read(table)
    y = np.exp(y) if table.log else y
    order = np.random.default_rng(seed).permutation(len(y))
    n_training = min(MOST_TRAINING, 2 * len(y) // 3)
    train, new = np.split(order[: n_training + MOST_NEW], [n_training])
    return frame.iloc[train], y[train], frame.iloc[new], y[new]


def with_categories(train, new):
    """Both frames, their texts as categories, which these trees take."""
    train, new = train.copy(), new.copy()
    for name in train.columns:
        if not is_numeric_dtype(train[name]):
            train[name] = train[name].astype("category")
            new[name] = Categorical(new[name], train[name].cat.categories)
    return train, new


def tuned_at(level, X, y, seed):
    """Boosted trees of one level, tuned by a grid search."""
    trees = HistGradientBoostingRegressor(
        loss="quantile", quantile=level, random_state=seed
    )
    pinball = make_scorer(mean_pinball_loss, greater_is_better=False, alpha=level)
    return GridSearchCV(trees, GRID, scoring=pinball).fit(X, y)


def judged(quantiles, y):
    """The share at or below each level, of rows that cross, and the mean loss."""
    losses = [
        mean_pinball_loss(y, column, alpha=level)
        for level, column in zip(LEVELS, quantiles.T)
    ]
    crossing = np.mean((np.diff(quantiles, axis=1) < 0).any(axis=1))
    return [*(y[:, None] <= quantiles).mean(axis=0), crossing, np.mean(losses)]


def compared(name, seed):
    """Of one split, what is judged and the seconds: ours, and shifted, and the grid."""
    train, y, new, y_new = split_of(name, seed)
    begun = process_time()
    model = SelfStoppingQuantileRegressor(levels=LEVELS, random_state=seed)
    quantiles = model.fit(train, y).predict_quantiles(new)
    rows = [[*judged(quantiles, y_new), process_time() - begun]]
    begun = process_time()
    model.set_params(conformalize=True).fit(train, y)
    shifted = judged(model.predict_quantiles(new), y_new)
    rows.append([*shifted, process_time() - begun])
    begun = process_time()
    X, X_new = with_categories(train, new)
    models = [tuned_at(level, X, y, seed) for level in LEVELS]
    quantiles = np.stack([model.predict(X_new) for model in models], axis=1)
    rows.append([*judged(quantiles, y_new), process_time() - begun])
    return rows


def cells_of(shares, crossing, ratio, seconds):
    """The cells of one way: coverage by level, crossing, loss and seconds."""
    by_level = ", ".join(f"{share:.3f}" for share in shares)
    return by_level, f"{crossing:.3f}", ratio, f"{seconds:.1f}"


def splits_of(name, n_splits):
    """What is judged in all splits of a table, (n_splits, 3, n_numbers)."""
    with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
        return np.array([compared(name, seed) for seed in range(n_splits)])


def lines_of(names, n_splits, n_jobs):
    """Lines of the tables, and means over them."""
    all_rows, all_ratios = [], []
    tables = Parallel(n_jobs, return_as="generator")(
        delayed(splits_of)(name, n_splits) for name in names
    )
    for name, rows in zip(names, tables):
        ratios = rows[:, :2, 4] / rows[:, 2:, 4]
        means, ratio = rows.mean(axis=0), ratios.mean(axis=0)
        ours, _, grid = means
        all_rows.append(means)
        all_ratios.append(ratio)
        said = f"{ratio[0]:.3f}"
        if n_splits > 1:
            error = ratios[:, 0].std(ddof=1) / np.sqrt(n_splits)
            said += f"±{error:.3f}"
        yield line(
            name,
            *cells_of(ours[:3], ours[3], said, ours[5]),
            *cells_of(grid[:3], grid[3], f"{grid[4]:.3g}", grid[5]),
        )
    means, ratios = np.mean(all_rows, axis=0), np.exp(np.mean(np.log(all_ratios), 0))
    grid = means[2]
    for number, name in enumerate(("all", "all, shifted")):
        ours = means[number]
        yield line(
            name,
            *cells_of(ours[:3], ours[3], f"{ratios[number]:.3f}", ours[5]),
            *cells_of(grid[:3], grid[3], "", grid[5]),
        )


if __name__ == "__main__":
    args = arguments(__doc__, splits=3, tables=TABLES, jobs=1)
    columns = "table", "ours: coverage", "crossing", "loss over grid's", "seconds"
    columns += "grid: coverage", "crossing", "loss", "seconds"
    said = __doc__.partition("\n\n")[2].strip()
    lines = [
        "# Quantiles that stop themselves beside a grid search at every level\n",
        f"`make bench-quantiles` ({heading()}), splits: {args.splits}\n",
        f"{said}\n",
        *header(*columns),
    ]
    print(*lines, sep="\n", flush=True)
    for one in lines_of(args.tables, args.splits, args.jobs):
        lines.append(one)
        print(one, flush=True)
    if args.output:
        args.output.write_text("\n".join([*lines, ""]))
