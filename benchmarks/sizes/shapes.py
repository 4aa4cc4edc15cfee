"""What of many columns, many classes, sparse texts, and the named classes?"""

from dataclasses import replace
from functools import partial

import numpy as np
from sklearn.datasets import make_classification
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegressionCV

from skacv import KernelEigenProRegressor, TrajectoryEarlyStoppingCV

from .bars import Bar, at_most, over
from .data import Data, drawn
from .measure import compared, megabytes
from .methods import HISTOGRAMS, LIGHTGBM, MOST_TREES, OURS, SEED, methods
from .tables import TEXT, read, split

TITLE = "Other shapes, and the named classes"
ABOUT = """
- wide: 500 x 50,000 normal columns, twenty of which have effects of one; noise of
  standard deviation two, 500 fresh rows.
- classes: 6000 x 60 with 30 classes, 6000 fresh rows; without CatBoost, whose 5000
  trees take minutes even of 300 rows.
- memory: 200,000 x 50 of the rows above.
- staged: `TrajectoryEarlyStoppingCV(LGBMRegressor(n_estimators=5000))` on 300,000 x 50.
- kernel: `KernelEigenProRegressor()` on 40,000 x 20.
- text: tf-idf of some 20,000 short texts by the program that sent them, classes of a
  thousandth of them or more; a fifth are fresh. Against
  `LogisticRegressionCV(scoring="neg_log_loss")`, ten values of C in five folds.
"""
LOGISTIC = "LogisticRegressionCV"


def wide_rows(settings):
    n, n_columns = settings.rows(500), settings.rows(50_000)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + 500, n_columns))
    truth = X[:, :20].sum(axis=1)
    y = truth + 2 * rng.standard_normal(len(X))
    return Data("regression", X[:n].copy(), y[:n], X[n:].copy(), y[n:], truth[n:])


def many_classes(settings):
    n, n_fresh = settings.rows(6000), 6000
    X, y = make_classification(
        n + n_fresh,
        60,
        n_informative=20,
        n_redundant=10,
        n_classes=30,
        n_clusters_per_class=1,
        class_sep=1.5,
        random_state=0,
    )
    return Data("classification", X[:n].copy(), y[:n], X[n:].copy(), y[n:])


def of_drawn(n, n_columns, settings):
    return drawn("regression", settings.rows(n), n_columns)


def texts(settings):
    """Words of documents as sparse rows, and who sent them."""
    frame, y, _ = read(TEXT)
    data = split("classification", frame["text"], y, settings)
    words = TfidfVectorizer().fit(data.X)
    return replace(
        data, X=words.transform(data.X), X_fresh=words.transform(data.X_fresh)
    )


def staged(task, threads, is_frame):
    from lightgbm import LGBMRegressor

    model = LGBMRegressor(
        n_estimators=MOST_TREES, n_jobs=threads, random_state=SEED, verbose=-1
    )
    return TrajectoryEarlyStoppingCV(model, random_state=0)


def kernel(task, threads, is_frame):
    return KernelEigenProRegressor(random_state=0)


def logistic(task, threads, is_frame):
    return LogisticRegressionCV(max_iter=1000, scoring="neg_log_loss")


STAGED, KERNEL = {"staged": staged}, {"kernel": kernel}
# Data of the settings, and methods.
SHAPES = {
    "wide": (wide_rows, methods(OURS, LIGHTGBM)),
    "classes": (many_classes, methods(OURS, LIGHTGBM, HISTOGRAMS)),
    "memory": (partial(of_drawn, 200_000, 50), methods(OURS, LIGHTGBM)),
    "staged": (partial(of_drawn, 300_000, 50), STAGED | methods(LIGHTGBM)),
    "kernel": (partial(of_drawn, 40_000, 20), KERNEL | methods(LIGHTGBM)),
    "text": (texts, methods(OURS) | {LOGISTIC: logistic}),
}


def measured(rows, compared_methods, settings):
    data = rows(settings)
    results = compared(compared_methods, data, settings)
    return {"x_megabytes": megabytes(data.X), "methods": results}


def cases():
    """Functions of the settings, by name."""
    return {name: partial(measured, *shape) for name, shape in SHAPES.items()}


def bars(results):
    """Bars of all cases that are there.

    Parameters
    ----------
    results : dict of str to dict
        What the cases have given, by name.
    """
    found = {name: outcome["methods"] for name, outcome in results.items()}
    if "wide" in found:
        yield from at_most("wide", found["wide"], seconds=60.0)
    if "classes" in found:
        yield from at_most("classes", found["classes"], seconds=25.0, megabytes=200.0)
    if "megabytes" in found.get("memory", {}).get(OURS, {}):
        ratio = found["memory"][OURS]["megabytes"] / results["memory"]["x_megabytes"]
        yield Bar("memory", "megabytes, over those of X", ratio, 4.0)
    if "staged" in found:
        yield from over("staged", found["staged"], LIGHTGBM, seconds=2.5, error=1.0)
    if "text" in found:
        yield from over("text", found["text"], LOGISTIC, error=1.0)
