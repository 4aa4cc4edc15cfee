"""How good and how large is the default, and does it keep a limit of time?"""

import pickle
from functools import partial

import numpy as np
from scipy.stats import gmean
from sklearn.base import is_classifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import ElasticNetCV, LassoCV, LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from skacv import (
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    TrajectoryEarlyStoppingCV,
)

from ..framework import header, line, seconds, study
from ..real_data import CLASSIFICATION, REGRESSION, halves
from .scores import new_loss

OURS = "skacv"
GAMMAS = np.array([0.1, 0.3, 1.0, 3.0])


def regression_peers(p):
    """What users run for numbers, by name; p columns."""
    grid = {"gamma": GAMMAS / p, "alpha": np.logspace(-4, 3, 8)}
    kernel = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5)
    return {
        "LassoCV": LassoCV(cv=5),
        "ElasticNetCV": ElasticNetCV(l1_ratio=[0.1, 0.5, 0.9], cv=5),
        "RidgeCV": RidgeCV(np.logspace(-3, 5, 25)),
        "KernelRidge": TransformedTargetRegressor(kernel, transformer=StandardScaler()),
    }


def classification_peers(p):
    """What users run for classes, by name; p columns."""
    search = partial(GridSearchCV, cv=StratifiedKFold(5))
    logistic = LogisticRegression(max_iter=1000)
    svc = {"gamma": GAMMAS / p, "C": np.logspace(-1, 3, 5)}
    return {
        "logistic regression": search(logistic, {"C": np.logspace(-4, 4, 10)}),
        "SVC": search(SVC(), svc),
    }


@study()
def defaults(n_splits=20):
    """The default call against tuned peers.

    ``TrajectoryEarlyStoppingCV(task=...)`` with nothing else set; half of the rows
    train, columns standardised, the others test; 20 splits. Mean test errors: squared
    errors over the variance of the test targets, or the share of wrong labels.
    "ratio" is our error over that of the best peer of the set; "seconds" are medians.
    LassoCV, ElasticNetCV with 3 ratios, RidgeCV with 25 alphas, KernelRidge with 4
    gammas x 8 alphas on centred targets; logistic regression with 10 values of C, SVC
    with 4 gammas x 5 values of C; 5 folds each.
    """
    ratios = []
    for task, sets, peers in (
        ("regression", REGRESSION, regression_peers),
        ("classification", CLASSIFICATION, classification_peers),
    ):
        names, is_class = [OURS, *peers(1)], task == "classification"
        yield from header(task, *names, "ratio", *(f"{n}, s" for n in names))
        for title, data in sets.items():
            results, variances = {name: [] for name in names}, []
            for seed in range(n_splits):
                X, y, X_test, y_test = halves(data, seed, is_class)
                variances.append(np.var(y_test))
                ours = TrajectoryEarlyStoppingCV(task=task)
                for name, model in {OURS: ours, **peers(X.shape[1])}.items():
                    elapsed, fitted = seconds(model.fit, X, y)
                    wrong = fitted.predict(X_test)
                    wrong = wrong != y_test if is_class else (wrong - y_test) ** 2
                    results[name].append((np.mean(wrong), elapsed))
            errors, times = np.moveaxis(np.array([*results.values()]), 2, 0)
            mean = errors.mean(axis=1) / (1.0 if is_class else np.mean(variances))
            ratios.append(mean[0] / mean[1:].min())
            cells = [f"{error:.3f}" for error in (*mean, ratios[-1])]
            cells += [f"{taken:.2f}" for taken in np.median(times, axis=1)]
            yield line(title, *cells)
        yield ""
    yield f"Geometric mean of ratios {gmean(ratios):.3f}, at most {max(ratios):.3f}."


LIMITS = (1, 5, 20)


def ten_effects(seed, n_rows):
    """Numbers from linear, smooth and product effects of ten columns, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 30))
    mean = X[:, 0] - 0.5 * X[:, 1] + 0.5 * X[:, 2]
    mean += np.sin(2 * X[:, 3]) + np.abs(X[:, 4]) + X[:, 5] * X[:, 6]
    mean += (X[:, 7] > 0) * X[:, 8] + 0.3 * X[:, 9] ** 2
    return X, mean + rng.standard_normal(n_rows)


@study("flaml")
def time_limit():
    """Seconds and errors of the default call under a time limit.

    50,000 x 30 simulated rows train, 20,000 test: eight effects of ten columns, linear,
    smooth, products and a step, with noise of standard deviation one; for classes
    whether a target is above the median. ``SelfStoppingRegressor(time_limit=...)`` and
    ``SelfStoppingClassifier(time_limit=...)``, and FLAML with the same
    ``time_budget``, in one process with as many threads as OMP_NUM_THREADS says:
    seconds of ``fit`` from its start to its end, root mean squared error or log loss of
    the test rows, and the members that were run, with their numbers of iterates. The
    true mean has a root mean squared error of 1. A warm-up on 200 rows comes first.
    """
    from flaml import AutoML

    columns = "skacv: seconds", "error", "members", "FLAML: seconds", "error"
    yield from header("task", "limit, s", *columns)
    (X, numbers), (X_test, numbers_test) = (
        ten_effects(0, 50_000),
        ten_effects(1, 20_000),
    )
    for task, kind, metric in (
        ("regression", SelfStoppingRegressor, "rmse"),
        ("classification", SelfStoppingClassifier, "log_loss"),
    ):
        y, y_test = numbers, numbers_test
        if task == "classification":
            y, y_test = (1 * (part > np.median(numbers)) for part in (y, y_test))
        kind(random_state=0).fit(X[:200], y[:200])
        for limit in LIMITS:
            ours = kind(time_limit=limit, random_state=0)
            settings = {"time_budget": limit, "metric": metric, "n_jobs": 1, "seed": 0}
            peer, cells = AutoML(task=task, verbose=0, **settings), []
            for model in (ours, peer):
                taken, _ = seconds(model.fit, X, y)
                error = new_loss(model, X_test, y_test)
                error = np.sqrt(error) if task == "regression" else error
                cells += [f"{taken:.2f}", f"{error:.3f}"]
            cells.insert(2, _members_of(ours))
            yield line(task, limit, *cells)


def _members_of(model):
    """Members with their number of iterates."""
    columns = (model.results_[name] for name in ("member", "n_iter", "left_out"))
    return ", ".join(
        f"{name} {n_iter}" for name, n_iter, why in zip(*columns) if not why
    )


@study()
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
        *("model", "alone, kB", "fitted, kB", "dropped, kB", "without intervals, kB"),
        *("dropped / alone", "one row alone", "one row", "ratio"),
    )
    numbers = load_diabetes(return_X_y=True)
    classes = load_breast_cancer(return_X_y=True)
    for name, trees, stages, (X, y) in (
        ("boosted trees", HistGradientBoostingRegressor, "max_iter", numbers),
        ("boosted trees, classes", HistGradientBoostingClassifier, "max_iter", classes),
        ("extra trees", ExtraTreesRegressor, "n_estimators", numbers),
    ):
        stopping = TrajectoryEarlyStoppingCV(trees(random_state=0), random_state=0)
        stages = {stages: stopping.fit(X, y).best_iter_}
        yield size_line(name, stopping, [trees(random_state=0, **stages).fit(X, y)], X)
    for kind, (X, y) in (
        (SelfStoppingRegressor, numbers),
        (SelfStoppingClassifier, classes),
    ):
        model = kind(random_state=0).fit(X, y)
        small = model.drop_record(intervals=False)
        yield size_line(kind.__name__, model, [*small.members_.values()], X)


def size_line(name, model, alone, X, repeats=100):
    """A line of the table, of a fitted model and of those that it is compared with."""
    response = "predict_proba" if is_classifier(model) else "predict"

    def predict(*models):
        for each in models:
            getattr(each, response if hasattr(each, response) else "predict")(X[:1])

    times = [
        [seconds(predict, *models)[0] for models in (alone, [model])]
        for _ in range(repeats)
    ]
    theirs, ours = np.min(times, axis=0)
    baseline = sum(len(pickle.dumps(estimator)) for estimator in alone)
    kept = model, model.drop_record(), model.drop_record(intervals=False)
    sizes = [len(pickle.dumps(estimator)) for estimator in kept]
    cells = [f"{size / 1000:.1f}" for size in (baseline, *sizes)]
    cells += [f"{sizes[1] / baseline:.2f}", f"{1e6 * theirs:.0f}", f"{1e6 * ours:.0f}"]
    return line(name, *cells, f"{ours / theirs:.2f}")
