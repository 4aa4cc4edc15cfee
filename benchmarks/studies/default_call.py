"""Is the default call as good as what users tune today? Over the best peer of a set."""

import numpy as np
from scipy.stats import gmean
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import ElasticNetCV, LassoCV, LogisticRegression, RidgeCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from skacv import TrajectoryEarlyStoppingCV

from ..framework import header, line, seconds
from ..real_data import CLASSIFICATION, REGRESSION, halves

N_SPLITS = 20
OURS = "skacv"
GAMMAS = np.array([0.1, 0.3, 1.0, 3.0])
# Values of the strength of a ridge penalty and of the SVM's C.
STRENGTHS = np.logspace(-4, 3, 8)


def kernel_ridge(p):
    """Kernel ridge regression of centred targets, 4 gammas x 8 alphas, 5 folds."""
    grid = {"gamma": GAMMAS / p, "alpha": STRENGTHS}
    search = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5)
    return TransformedTargetRegressor(search, transformer=StandardScaler())


def regression_peers(p):
    """What users run for numbers, by name; p columns."""
    return {
        "LassoCV": LassoCV(cv=5),
        "ElasticNetCV": ElasticNetCV(l1_ratio=[0.1, 0.5, 0.9], cv=5),
        "RidgeCV": RidgeCV(np.logspace(-3, 5, 25)),
        "KernelRidge": kernel_ridge(p),
    }


def classification_peers(p):
    """What users run for classes, by name; p columns."""
    folds = StratifiedKFold(5)
    values = {"C": np.logspace(-4, 4, 10)}
    svc = {"gamma": GAMMAS / p, "C": np.logspace(-1, 3, 5)}
    logistic = LogisticRegression(max_iter=1000)
    return {
        "logistic regression": GridSearchCV(logistic, values, cv=folds),
        "SVC": GridSearchCV(SVC(), svc, cv=folds),
    }


def probability_peers(p):
    """What users run for probabilities, by name; p columns."""
    peers = classification_peers(p)
    logistic, svc = peers["logistic regression"], peers["SVC"]
    return {
        "logistic regression": logistic.set_params(scoring="neg_log_loss"),
        "SVC, calibrated": CalibratedClassifierCV(svc, cv=StratifiedKFold(5)),
    }


def mean_squared_error(model, X, y):
    return float(np.mean((model.predict(X) - y) ** 2))


def error_rate(model, X, y):
    return float(np.mean(model.predict(X) != y))


def test_log_loss(model, X, y):
    return float(log_loss(y, model.predict_proba(X), labels=model.classes_))


TASKS = (
    ("regression", REGRESSION, regression_peers, mean_squared_error),
    ("classification", CLASSIFICATION, classification_peers, error_rate),
)


def errors_of(task, data, peers, error, n_splits):
    """Test errors and seconds on every split, (n_splits, 2) by the name of a model.

    Returns
    -------
    dict of ndarray
    """
    results = {}
    for seed in range(n_splits):
        X, y, X_test, y_test = halves(data, seed, task == "classification")
        ours = TrajectoryEarlyStoppingCV(task=task)
        for name, model in {OURS: ours, **peers(X.shape[1])}.items():
            elapsed, fitted = seconds(model.fit, X, y)
            results.setdefault(name, []).append(
                (error(fitted, X_test, y_test), elapsed)
            )
    return {name: np.array(values) for name, values in results.items()}


def table(task, sets, peers, error, n_splits, ratios):
    """Lines of a table of mean errors and median seconds; its ratios go to a list."""
    names = [OURS, *peers(1)]
    yield from header(task, *names, "ratio", *(f"{n}, s" for n in names))
    for name, data in sets.items():
        results = errors_of(task, data, peers, error, n_splits)
        scale = 1.0
        if task == "regression":
            scale = np.mean([np.var(halves(data, s)[3]) for s in range(n_splits)])
        mean = {n: results[n][:, 0].mean() / scale for n in names}
        ratios.append(mean[OURS] / min(mean[n] for n in names[1:]))
        cells = [f"{mean[n]:.3f}" for n in names] + [f"{ratios[-1]:.3f}"]
        cells += [f"{np.median(results[n][:, 1]):.2f}" for n in names]
        yield line(name, *cells)
    yield ""


def defaults(n_splits=N_SPLITS):
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
    for task, sets, peers, error in TASKS:
        yield from table(task, sets, peers, error, n_splits, ratios)
    yield f"Geometric mean of ratios {gmean(ratios):.3f}, at most {max(ratios):.3f}."


def default_probabilities(n_splits=10):
    """Probabilities of the default call against tuned peers.

    ``TrajectoryEarlyStoppingCV(task="classification")`` with nothing else set; half of
    the rows train, columns standardised, the others test; 10 splits. Mean log losses of
    the test rows, "ratio" that of ours over the least of the peers', median seconds.
    Logistic regression with 10 values of C, by its log loss on 5 folds; SVC with 4
    gammas x 5 values of C, by 5 folds within each of the 5 that calibrate it.
    """
    ratios, task = [], "classification"
    yield from table(
        task, CLASSIFICATION, probability_peers, test_log_loss, n_splits, ratios
    )
    yield f"Geometric mean of ratios {gmean(ratios):.3f}, at most {max(ratios):.3f}."
