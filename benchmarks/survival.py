"""Survival times: runs stopped by folds beside scikit-survival's own ways to stop.

Four data sets of scikit-survival, split into halves at random (the training half has
1500 rows at most), categories one-hot, gaps filled with medians. Ours has the default
folds and criterion. Trees have depth 2, a learning rate of 0.1 and up to 500 stages:
"own early stopping" sets a tenth of the training rows aside and ends after ten stages
without an improvement; the default of the class is 100 stages without stopping. The
elastic net of Coxnet, l1_ratio 0.9 on standardised columns, is tuned over the 100
strengths of its own path with five folds of GridSearchCV, as its user guide does.

Means over the splits: Harrell's concordance on the other rows and half the deviance of
their partial likelihood, each with the standard error of its difference to ours in the
same family; stages (of linear models the updates, or the number of the strength); and
processor seconds of one thread.
"""

import warnings
from time import process_time

import numpy as np
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from skacv import TrajectoryCoxRegressor, TrajectoryEarlyStoppingCV
from skacv._estimator.data.survival import ranked_times, survival_array
from skacv.optim.cox import Cox

from .framework import arguments, header, heading, line

MOST_ROWS, MOST_TREES, L1_RATIO = 1500, 500, 0.9
FOLDS = KFold(5, shuffle=True, random_state=0)


def datasets():
    """Names, X and y."""
    from sksurv import datasets

    loaders = {
        "GBSG2": datasets.load_gbsg2,
        "WHAS500": datasets.load_whas500,
        "veterans": datasets.load_veterans_lung_cancer,
        "flchain": datasets.load_flchain,
    }
    for name, load in loaders.items():
        X, y = load()
        if name == "flchain":
            X = X.drop(columns="chapter")  # known of the dead alone
        yield name, one_hot(X), y


def one_hot(X):
    """Columns of numbers, without gaps."""
    import pandas as pd

    X = pd.get_dummies(X, drop_first=True, dtype=float)
    return X.fillna(X.median()).to_numpy(dtype=np.float64)


def trees(**params):
    from sksurv.ensemble import GradientBoostingSurvivalAnalysis

    settings = {"learning_rate": 0.1, "max_depth": 2, "random_state": 0}
    return GradientBoostingSurvivalAnalysis(**settings | params)


def our_trees(X, y):
    model = trees(n_estimators=MOST_TREES)
    model = TrajectoryEarlyStoppingCV(model, random_state=0).fit(X, y)
    return model, model.best_iter_


def own_early_stopping(X, y):
    model = trees(n_estimators=MOST_TREES, n_iter_no_change=10).fit(X, y)
    return model, model.n_estimators_


def default_trees(X, y):
    model = trees(n_estimators=100).fit(X, y)
    return model, 100


def our_path(X, y):
    model = TrajectoryCoxRegressor(
        "path",
        penalty="elasticnet",
        l1_ratio=L1_RATIO,
        standardize=True,
        max_iter=20,
    )
    model = TrajectoryEarlyStoppingCV(model, random_state=0).fit(X, y)
    return model, model.best_iter_


def tuned_coxnet(X, y):
    from sksurv.linear_model import CoxnetSurvivalAnalysis

    coxnet = CoxnetSurvivalAnalysis(l1_ratio=L1_RATIO, alpha_min_ratio=0.01)
    pipeline = make_pipeline(StandardScaler(), coxnet).fit(X, y)
    alphas = pipeline[-1].alphas_
    grid = {"coxnetsurvivalanalysis__alphas": [[alpha] for alpha in alphas]}
    search = GridSearchCV(pipeline, grid, cv=FOLDS).fit(X, y)
    return search, search.best_index_


# The first of each family is ours.
FAMILIES = {
    "trees": {
        "skacv, five folds": our_trees,
        "own early stopping": own_early_stopping,
        "100 stages": default_trees,
    },
    "elastic net": {
        "skacv, five folds": our_path,
        "Coxnet in GridSearchCV": tuned_coxnet,
    },
}


def measure(fit, split):
    """Concordance and loss on the other rows, stages and seconds."""
    X, X_test, y, y_test = split
    begun = process_time()
    with warnings.catch_warnings(action="ignore"):
        model, n_stages = fit(X, y)
    taken = process_time() - begun
    target = ranked_times(survival_array(y_test))
    losses = Cox().value(target, model.predict(X_test)[:, None])
    return model.score(X_test, y_test), losses.mean(), n_stages, taken


def lines_of(name, X, y, n_splits):
    """Lines of the table of a data set."""
    splits = []
    for seed in range(n_splits):
        n_train = min(len(X) // 2, MOST_ROWS)
        event = y[y.dtype.names[0]]
        splits.append(
            train_test_split(
                X, y, train_size=n_train, random_state=seed, stratify=event
            )
        )
    shape = f"{len(splits[0][0])} x {X.shape[1]}"
    for family, ways in FAMILIES.items():
        ours = None
        for way, fit in ways.items():
            found = np.array([measure(fit, split) for split in splits])
            ours = found if ours is None else ours
            differences = found[:, :2] - ours[:, :2]
            errors = differences.std(axis=0, ddof=1) / np.sqrt(n_splits)
            score, loss, n_stages, taken = found.mean(axis=0)
            said = []
            for mean, error in zip((score, loss), errors):
                said.append(f"{mean:.3f}" + f" ± {error:.3f}" * (found is not ours))
            said += [f"{n_stages:.0f}", f"{taken:.2f}"]
            yield line(name, shape, family, way, *said)


def main(n_splits=10, output=None):
    """Print and write the table."""
    lines = [
        "# Survival times",
        "",
        heading(["scikit-survival"]),
        "",
        __doc__.strip(),
        "",
    ]
    columns = "data", "training rows", "model", "stopped by", "concordance", "loss"
    lines += header(*columns, "stages", "s")
    print(*lines, sep="\n", flush=True)
    with threadpool_limits(1):
        for name, X, y in datasets():
            for text in lines_of(name, X, y, n_splits):
                lines.append(text)
                print(text, flush=True)
    if output is not None:
        output.write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    args = arguments(__doc__, splits=10)
    main(args.splits, args.output)
