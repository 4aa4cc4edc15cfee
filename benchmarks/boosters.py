"""Own boosters beside their library's folds and a refit: ``make bench-boosters``.

The same folds, the same patience of 50 trees; ours has the model on all rows at its
best stage, the library needs a refit with the number of trees that its folds have
found. Processor seconds of one thread, medians of three turns (of 100,000 rows one),
numbers of trees that are kept, and the mean squared error on fresh rows.

Not all is equal. Ours ends a run also where further trees may gain less than a tenth of
a standard error, and has prediction intervals and a score without the optimism of the
choice in the end. ``lightgbm.cv`` bins the rows of all folds together, held-out rows
too; ours bins those of every fold. ``catboost.cv`` with early stopping ends every fold
by itself, and its mean where the first fold ends: here it grows as many trees as ours
has grown, without early stopping. HistGradientBoosting has no cross-validation: folds
grow by warm starts as far as patience asks, and predict by all stages again whenever
they do.
"""

from time import process_time

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from skacv import TrajectoryEarlyStoppingCV

from .framework import arguments, header, heading, line
from .sizes import drawn

LIBRARIES = "lightgbm", "xgboost", "xgboost-cpu", "catboost"
SIZES, PATIENCE, MOST_TREES, N_TURNS = (500, 2000, 10_000, 100_000), 50, 3000, 3
FOLDS = KFold(5, shuffle=True, random_state=0)


def lightgbm():
    """LightGBM, and the number of trees of ``lightgbm.cv``."""
    import lightgbm

    settings = {"learning_rate": 0.1, "num_leaves": 31, "verbose": -1}
    model = lightgbm.LGBMRegressor(
        n_estimators=MOST_TREES, n_jobs=1, random_state=0, **settings
    )

    def n_trees(X, y, folds, n_grown):
        results = lightgbm.cv(
            {"objective": "regression", "metric": "l2", "num_threads": 1, **settings},
            lightgbm.Dataset(X, y),
            num_boost_round=MOST_TREES,
            folds=folds,
            callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
        )
        return len(results["valid l2-mean"])

    return model, "n_estimators", n_trees


def xgboost():
    """XGBoost, and the number of trees of ``xgboost.cv``."""
    import xgboost

    settings = {"learning_rate": 0.1, "max_depth": 6}
    model = xgboost.XGBRegressor(n_estimators=MOST_TREES, n_jobs=1, **settings)

    def n_trees(X, y, folds, n_grown):
        results = xgboost.cv(
            {"objective": "reg:squarederror", "nthread": 1, **settings},
            xgboost.DMatrix(X, y, nthread=1),
            num_boost_round=MOST_TREES,
            folds=folds,
            early_stopping_rounds=PATIENCE,
            as_pandas=False,
        )
        return len(results["test-rmse-mean"])

    return model, "n_estimators", n_trees


def catboost():
    """CatBoost, and the number of trees of ``catboost.cv``."""
    import catboost

    settings = {"learning_rate": 0.1, "thread_count": 1, "verbose": False}
    settings["allow_writing_files"] = False
    model = catboost.CatBoostRegressor(iterations=MOST_TREES, **settings)

    def n_trees(X, y, folds, n_grown):
        results = catboost.cv(
            catboost.Pool(X, y),
            {"loss_function": "RMSE", "iterations": n_grown, **settings},
            folds=folds,
            as_pandas=False,
        )
        return 1 + int(np.argmin(results["test-RMSE-mean"]))

    return model, "iterations", n_trees


def histograms():
    """HistGradientBoosting, and trees by a loop over folds that are grown to an end."""
    # Of more than 10,000 rows it would set some aside, and stop by these.
    model = HistGradientBoostingRegressor(
        max_iter=MOST_TREES, early_stopping=False, random_state=0
    )

    def n_trees(X, y, folds, n_grown):
        # It has no cross-validation of its own: folds grow together by warm starts.
        models = [clone(model).set_params(warm_start=True) for _ in folds]
        path, n = [], PATIENCE
        while n > len(path):
            errors = []
            for one, (fitted, held_out) in zip(models, folds):
                one.set_params(max_iter=n).fit(X[fitted], y[fitted])
                staged = one.staged_predict(X[held_out])
                errors.append([mean_squared_error(y[held_out], p) for p in staged])
            path = np.mean(errors, axis=0)
            n = 1 + int(np.argmin(path)) + PATIENCE
        return 1 + int(np.argmin(path))

    return model, "max_iter", n_trees


BOOSTERS = {
    "LightGBM": lightgbm,
    "XGBoost": xgboost,
    "CatBoost": catboost,
    "HistGradientBoosting": histograms,
}


def compared(name, n):
    """A line for a booster and a number of rows."""
    model, count, n_trees = BOOSTERS[name]()
    data = drawn("regression", n, 20)
    folds, seconds, trees, errors = list(FOLDS.split(data.X)), [], [], []
    for _ in range(N_TURNS if n <= 10_000 else 1):
        begun = process_time()
        ours = TrajectoryEarlyStoppingCV(model, cv=folds, patience=PATIENCE)
        ours.fit(data.X, data.y)
        mine = process_time() - begun
        begun = process_time()
        number = n_trees(data.X, data.y, folds, len(ours.path_) - 1)
        theirs = clone(model).set_params(**{count: number}).fit(data.X, data.y)
        seconds.append((mine, process_time() - begun))
        trees = ours.best_iter_, number
        errors = [
            mean_squared_error(data.y_fresh, one.predict(data.X_fresh))
            for one in (ours, theirs)
        ]
    mine, theirs = np.median(seconds, axis=0)
    cells = f"{mine:.2f}", f"{theirs:.2f}", f"{mine / theirs:.2f}"
    return line(name, n, *cells, *trees, f"{errors[0] / errors[1]:.4f}")


if __name__ == "__main__":
    args = arguments(__doc__, BOOSTERS, rows=tuple(map(str, SIZES)))
    columns = "booster", "rows", "ours", "cv and refit", "ratio"
    lines = [
        "# Own boosters beside their library's cross-validation and a refit\n",
        f"`make bench-boosters` ({heading(LIBRARIES)})\n",
        *header(*columns, "our trees", "their trees", "our error over its"),
    ]
    print(*lines, sep="\n", flush=True)
    with threadpool_limits(1):
        for name in args.names or BOOSTERS:
            for n in map(int, args.rows):
                lines.append(compared(name, n))
                print(lines[-1], flush=True)
    if args.output:
        args.output.write_text("\n".join([*lines, ""]))
