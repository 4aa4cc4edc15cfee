"""Do prediction intervals and sets cover as often as they say, how wide are they?"""

from functools import partial

import numpy as np
from sklearn.datasets import load_digits, load_wine, make_classification
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skacv import (
    IterativeRidge,
    SelfStoppingQuantileRegressor,
    SelfStoppingRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)
from skacv.risk.intervals import around_predictions, rank_of

from ..data import covered, mean_cell, rows_of, true_risk
from ..framework import header, line, study
from ..real_data import noisy_labels, shipped
from ..tables import numbers_of

METHODS = ("jackknife+", "loo", "cv", "risk")


@study()
def intervals(n_repeats=200):
    """Coverage of prediction intervals, nominal .9, and their mean width.

    n=100, ten equal coefficients of squared norm 4, noise level 1, intercept
    fitted; 500 unseen rows in each of 200 repeats, standard error over repeats in
    brackets. With 100 rows the rank taken is 91 of 101, .901; "cv" has five folds of
    consecutive rows. "Best" is the iterate
    of least true risk, "chosen" that of least loo_path_, in brackets the median
    one; "training" the prediction plus and minus a quantile of the training
    residuals. The late iterates of Nesterov with p = n are unstable; the two groups
    of rows live on a half of the columns each.
    """
    columns = "rows", "p", "updates", "iterate", *METHODS, "training"
    yield from header(*columns, "mean widths, in this order")
    lasso = TrajectoryLasso(0.1)
    for kind, p, updates, model in (
        ("Gaussian", 150, "GD", IterativeRidge(0.0)),
        ("Gaussian", 150, "FISTA, alpha=.1", lasso),
        ("Gaussian", 100, "Nesterov", IterativeRidge(0.0, solver="nesterov")),
        ("two groups", 150, "GD", IterativeRidge(0.0)),
        ("two groups", 150, "FISTA, alpha=.1", lasso),
    ):
        model.set_params(max_iter=200, tol=0, loo=True, risk="exact", keep_data=True)
        model.set_params(cv=5)
        results = [
            intervals_on(kind, p, model, np.random.default_rng([seed, p]))
            for seed in range(n_repeats)
        ]
        for row, iterate in enumerate(("5", "20", "200", "best", "chosen")):
            iterates, ends = zip(*[repeat[row] for repeat in results])
            if row >= 3:
                iterate += f" ({np.median(iterates):.0f})"
            coverages, widths = np.transpose(ends)  # (n_methods, n_repeats) each
            width_cell = " / ".join(f"{width:.2f}" for width in widths.mean(axis=1))
            yield line(
                kind, p, updates, iterate, *map(mean_cell, coverages), width_cell
            )


def intervals_on(kind, p, model, rng):
    """Iterates, and coverage and mean width of their intervals by each method."""
    X, root = rows_of(kind, 600, p, rng)
    beta = np.zeros(p)
    beta[:10] = 2 / np.sqrt(10)
    y = X @ beta + rng.standard_normal(600) + 2.0
    model.fit(X[:100], y[:100])
    error = model.coef_path_ - beta
    error = error if root is None else error @ root
    best = int(true_risk(error, model.intercept_path_ - 2.0, 0.0).argmin())
    results = []
    for t in (5, 20, 200, best, int(model.loo_path_.argmin())):
        iterate = model.at_iteration(t)
        ends = [iterate.predict_interval(X[100:], method=name) for name in METHODS]
        residuals = y[:100] - iterate.predict(X[:100])
        rank = rank_of(0.9, len(residuals))
        ends.append(around_predictions(iterate.predict(X[100:]), residuals, rank))
        results.append((t, [covered(ours, y[100:]) for ours in ends]))
    return results


# Their targets are as people have them: prices and wages, not their logarithms.
INTERVAL_TABLES = (
    *("ames", "births14", "car_prices", "computers", "concrete", "cps1985"),
    *("diamonds", "nmes1988", "quakes", "sacramento"),
)
INTERVALS = (
    *("blend, constant", "blend, scaled", "trees, constant", "trees, scaled"),
    *("quantiles", "MAPIE"),
)


@study("tables", "mapie")
def interval_tables(most_training=2000, most_new=4000):
    """Prediction intervals on ten tables, nominal .9, by fifths of the prediction.

    The tables are those of benchmarks/unseen, and ggplot2/diamonds with the target
    price, in the folder that SKACV_TABLES names. Half of the rows of a table, at most
    2000, train, and at most 4000 others are new. "Constant" and "scaled" are "cv" and
    "auto" as the method of SelfStoppingRegressor() and of boosted trees in
    TrajectoryEarlyStoppingCV. "Quantiles" is SelfStoppingQuantileRegressor of boosted
    trees, levels .05 and .95, and "MAPIE" its ConformalizedQuantileRegressor of the
    same, which sets a quarter of the training rows aside. A cell has the share of new
    rows covered, in brackets the least and the largest share in a fifth of the new
    rows, by the prediction of the blend, and the mean width in standard deviations of
    the target. The last line has means, the number of fifths outside .84 to .95, and
    geometric means of the widths relative to the first column.
    """
    yield from header("table", "rows", *INTERVALS)
    coverages, widths = [], []
    for name in INTERVAL_TABLES:
        X, y = numbers_of(name)
        order = np.random.default_rng(0).permutation(len(y))
        n_training = min(most_training, len(y) // 2)
        order = order[: n_training + most_new]
        X, y = X[order], y[order]
        middle, intervals = intervals_of_models(X, y, n_training)
        y = y[n_training:]
        fifths = np.array_split(np.argsort(middle, kind="stable"), 5)
        inside = [(e[:, 0] <= y) & (y <= e[:, 1]) for e in intervals]
        shares = np.array([[rows[fifth].mean() for fifth in fifths] for rows in inside])
        width = np.array([np.ptp(ends, axis=1).mean() / y.std() for ends in intervals])
        coverages.append(shares)
        widths.append(width)
        cells = (
            f"{rows.mean():.2f} ({row.min():.2f} to {row.max():.2f}), {size:.2f}"
            for rows, row, size in zip(inside, shares, width)
        )
        yield line(name, f"{n_training} + {len(y)}", *cells)
    shares, sizes = np.array(coverages), np.array(widths)
    outside = np.sum((shares < 0.84) | (shares > 0.95), axis=(0, 2))
    relative = np.exp(np.mean(np.log(sizes / sizes[:, :1]), axis=0))
    cells = (
        f"{share:.3f}, {count} of {shares[:, 0].size} fifths, {size:.2f}"
        for share, count, size in zip(shares.mean(axis=(0, 2)), outside, relative)
    )
    yield line("all", "", *cells)


def intervals_of_models(X, y, n_training):
    """The prediction of the blend for new rows, and intervals by every model."""
    from mapie.regression import ConformalizedQuantileRegressor

    train, new = slice(n_training), slice(n_training, None)
    n_fitted = n_training - n_training // 4
    fitted, apart = slice(n_fitted), slice(n_fitted, n_training)
    blend = SelfStoppingRegressor(random_state=0).fit(X[train], y[train])
    trees = TrajectoryEarlyStoppingCV(HistGradientBoostingRegressor(), random_state=0)
    trees.fit(X[train], y[train])
    of_quantile = HistGradientBoostingRegressor(max_iter=300)
    quantiles = SelfStoppingQuantileRegressor(of_quantile, levels=[0.05, 0.95])
    quantiles.fit(X[train], y[train])
    of_quantile.set_params(loss="quantile", quantile=0.5, max_iter=100)
    theirs = ConformalizedQuantileRegressor(of_quantile, confidence_level=0.9)
    theirs.fit(X[fitted], y[fitted]).conformalize(X[apart], y[apart])
    intervals = [
        *(blend.predict_interval(X[new], 0.9, method) for method in ("cv", "auto")),
        *(trees.predict_interval(X[new], 0.9, method) for method in ("cv", "auto")),
        quantiles.predict_interval(X[new], 0.9),
        theirs.predict_interval(X[new])[1][..., 0],
    ]
    return blend.predict(X[new]), intervals


SETS = {
    "five classes, simulated": lambda seed: make_classification(
        1500, n_features=20, n_informative=8, n_classes=5, random_state=seed
    ),
    "digits, a fifth of the labels random": partial(noisy_labels, load_digits),
    "digits": partial(shipped, load_digits),
    "wine, a fifth of the labels random": partial(noisy_labels, load_wine),
}


@study("mapie")
def prediction_sets(n_repeats=10):
    """Prediction sets of logistic regression, nominal .9, and MAPIE's.

    Half of the rows train, in ten random splits; columns are standardised. Ours are of
    TrajectoryEarlyStoppingCV of a path of logistic regression, from its folds; MAPIE's
    SplitConformalClassifier fits LogisticRegression and sets a quarter of the training
    rows aside. A cell has the mean share of new rows whose class is in the set, in
    brackets that of the fifth of them with the least probable likeliest class, and the
    mean number of classes in a set.
    """
    yield from header("data", "lac", "aps", "MAPIE, lac", "MAPIE, aps")
    for name, data in SETS.items():
        results = [sets_on(*data(seed), seed) for seed in range(n_repeats)]
        cells = (
            f"{share:.3f} ({doubtful:.2f}), {size:.2f}"
            for share, doubtful, size in np.mean(results, axis=0)
        )
        yield line(name, *cells)


def sets_on(X, y, seed):
    """Shares of new rows in their sets, of all and of doubtful ones, and sizes."""
    from mapie.classification import SplitConformalClassifier

    split = partial(train_test_split, random_state=seed)
    X, X_new, y, y_new = split(X, y, test_size=0.5, stratify=y)
    scaler = StandardScaler().fit(X)
    X, X_new = scaler.transform(X), scaler.transform(X_new)
    path = TrajectoryLogisticRegression("path", cv=5, loo=False, risk=False)
    model = TrajectoryEarlyStoppingCV(path, random_state=seed).fit(X, y)
    sets = [model.predict_set(X_new, 0.9, method) for method in ("lac", "aps")]
    fitted, apart, y_fitted, y_apart = split(X, y, test_size=0.25, stratify=y)
    theirs = {"confidence_level": 0.9, "prefit": False, "random_state": seed}
    for score in ("lac", "aps"):
        logistic = LogisticRegression(max_iter=1000)
        peer = SplitConformalClassifier(logistic, conformity_score=score, **theirs)
        peer.fit(fitted, y_fitted).conformalize(apart, y_apart)
        sets.append(peer.predict_set(X_new)[1][..., 0])
    label = np.searchsorted(model.classes_, y_new)
    order = np.argsort(model.predict_proba(X_new).max(axis=1))
    doubtful = order[: len(order) // 5]
    results = []
    for members in sets:
        is_in = members[np.arange(len(label)), label]
        results.append((is_in.mean(), is_in[doubtful].mean(), members.sum(1).mean()))
    return results
