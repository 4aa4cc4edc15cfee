"""How large is a fitted model, and how long does a prediction of one row take?"""

import pickle

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, LogisticRegression, Ridge

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)

from ..framework import header, line, seconds

# Predictions of one row that each model makes, in turn with the plain one.
REPEATS = 100
BOOSTED = HistGradientBoostingRegressor(random_state=0)
BOOSTED_CLASSES = HistGradientBoostingClassifier(random_state=0)
EXTRA_TREES = ExtraTreesRegressor(random_state=0)
LOGISTIC = TrajectoryLogisticRegression("path", standardize=True)
KERNEL = KernelEigenProRegressor(standardize=True, random_state=0)
# A model, and scikit-learn's estimators that its members are compared with, by the
# iteration that is chosen.
MODELS = {
    "boosted trees": (BOOSTED, lambda t: clone(BOOSTED).set_params(max_iter=t)),
    "boosted trees, classes": (
        BOOSTED_CLASSES,
        lambda t: clone(BOOSTED_CLASSES).set_params(max_iter=t),
    ),
    "extra trees": (
        EXTRA_TREES,
        lambda t: clone(EXTRA_TREES).set_params(n_estimators=t),
    ),
    "lasso path": (TrajectoryLasso("path"), lambda t: Lasso(0.1)),
    "ridge path": (IterativeRidge("path", solver="newton"), lambda t: Ridge()),
    "logistic path": (LOGISTIC, lambda t: LogisticRegression()),
    "kernel machine": (KERNEL, lambda t: KernelRidge(kernel="rbf")),
}


def least_seconds(works):
    """Least seconds of each work, all of them in turn."""
    times = [[seconds(work)[0] for work in works] for _ in range(REPEATS)]
    return np.min(times, axis=0)


def row_of(name, model, alone, X):
    """A line of the table.

    Parameters
    ----------
    model : TrajectoryEarlyStoppingCV
        Fitted.
    alone : list of estimator
        Fitted estimators of scikit-learn, or members without their record.
    """
    response = "predict_proba" if is_classifier(model) else "predict"
    of_one_row = getattr(model, response)
    ours, theirs = least_seconds(
        [
            lambda: of_one_row(X[:1]),
            lambda: [
                getattr(
                    estimator, response if hasattr(estimator, response) else "predict"
                )(X[:1])
                for estimator in alone
            ],
        ]
    )
    baseline = sum(len(pickle.dumps(estimator)) for estimator in alone)
    small = model.drop_record()
    least = model.drop_record(intervals=False)
    sizes = [len(pickle.dumps(estimator)) for estimator in (model, small, least)]
    kilobytes = [f"{size / 1000:.1f}" for size in (baseline, *sizes)]
    micros = [f"{1e6 * seconds:.0f}" for seconds in (theirs, ours)]
    ratio = f"{sizes[1] / baseline:.2f}", f"{ours / theirs:.2f}"
    return line(name, *kilobytes, ratio[0], *micros, ratio[1])


def model_size():
    """Pickle sizes and prediction times

    Kilobytes of the pickle of TrajectoryEarlyStoppingCV as fitted, after
    `drop_record()` and after `drop_record(intervals=False)`, beside that of
    scikit-learn's estimator fitted with as many stages ("alone"); microseconds of the
    prediction of one row, the least of 100 in turn. For the default models "alone" are
    the members with weight, without their record. Diabetes, 442 x 10, and breast
    cancer, 569 x 30.
    """
    yield from header(
        "model",
        "alone, kB",
        "fitted, kB",
        "dropped, kB",
        "without intervals, kB",
        "dropped / alone",
        "one row alone",
        "one row",
        "ratio",
    )
    numbers = load_diabetes(return_X_y=True)
    classes = load_breast_cancer(return_X_y=True)
    for name, (estimator, plain_at) in MODELS.items():
        X, y = classes if is_classifier(estimator) else numbers
        model = TrajectoryEarlyStoppingCV(estimator, random_state=0).fit(X, y)
        yield row_of(name, model, [plain_at(model.best_iter_).fit(X, y)], X)
    defaults = {
        "SelfStoppingRegressor": (SelfStoppingRegressor(random_state=0), numbers),
        "SelfStoppingClassifier": (SelfStoppingClassifier(random_state=0), classes),
    }
    for name, (model, (X, y)) in defaults.items():
        small = model.fit(X, y).drop_record(intervals=False)
        yield row_of(name, model, list(small.members_.values()), X)
