"""Is best_score_, or best_score_corrected_, the error of what was chosen?

Against the error of the choice on test rows, over which they should be one.
"""

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import gmean
from sklearn.model_selection import KFold

from skacv import (
    KernelEigenProRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)

from ..framework import header, line
from ..real_data import CLASSIFICATION, REGRESSION, halves
from ..unseen.tables import read
from .default_call import mean_squared_error, test_log_loss

N_SPLITS = 50
# Of the sets, those of few rows and some of more, to see it vanish.
NUMBERS = (
    "linnerud",
    "diabetes, products, 40 rows",
    "diabetes, products, 80 rows",
    "diabetes, products, 160 rows",
    "diabetes",
    "diabetes, heavy tails",
    "spectra",
)
CLASSES = (
    "breast cancer, 40 rows",
    "breast cancer, 80 rows",
    "breast cancer, 160 rows",
    "breast cancer, noisy",
    "iris",
    "wine",
)
LASSO = TrajectoryLasso("path", max_iter=20)
C_PATH = TrajectoryLogisticRegression("path", max_iter=30, tol=1e-4, standardize=True)
UNPENALISED = TrajectoryLogisticRegression(np.inf, max_iter=200, standardize=True)
LOGISTIC = [("logistic", C_PATH), ("logistic, no penalty", UNPENALISED)]
GROUPS = (
    ("regression", NUMBERS, REGRESSION, mean_squared_error, LASSO, None),
    ("classification", CLASSES, CLASSIFICATION, test_log_loss, C_PATH, LOGISTIC),
)


def readings(data, model, criterion, task, loss, seed):
    """What is said of the choice on one split, and what it costs on the test half.

    Returns
    -------
    score, corrected, loss : float
    """
    X, y, X_test, y_test = halves(data, seed, task == "classification")
    chosen = TrajectoryEarlyStoppingCV(
        model, criterion=criterion, task=task, random_state=seed
    ).fit(X, y)
    said = chosen.best_score_, chosen.best_score_corrected_
    return *said, loss(chosen, X_test, y_test)


def optimism(n_splits=N_SPLITS):
    """What best_score_ says of the choice, and what the corrected score says.

    Half of the rows train, columns standardised, the others test; 50 splits. "score"
    and "corrected" are the means of best_score_ and of best_score_corrected_ over the
    mean test loss of the choice: one is the truth. The last columns are the mean
    distance of each from the test loss, over the mean test loss. "portfolio" is the
    default of TrajectoryEarlyStoppingCV, of classes its logistic members, which have
    one loss; "path" is its first member alone. Squared error for regression, log loss
    for classes. A fold's fit has four rows out of five, and
    costs more than a fit of all of them: that raises both readings of "cv".
    """
    numbers = "score", "corrected", "score off", "corrected off"
    yield from header("data", "rows", "model", "by", *numbers)
    for task, names, sets, loss, path, members in GROUPS:
        for name in names:
            n_rows = len(halves(sets[name], 0)[1])
            for called, model, criterion in (
                ("path", path, "loo"),
                ("path", path, "cv"),
                ("portfolio", members, "cv"),
            ):
                settings = sets[name], model, criterion, task, loss
                results = [readings(*settings, seed) for seed in range(n_splits)]
                numbers = _compared(np.array(results).T)
                yield line(name, n_rows, called, criterion, *numbers)


def _compared(results):
    """Both readings over the truth, and how far off they are."""
    *said, loss = results
    means = [item.mean() / loss.mean() for item in said]
    distances = [np.abs(item - loss).mean() / loss.mean() for item in said]
    return [f"{value:.3f}" for value in (*means, *distances)]


# Of https://vincentarelbundock.github.io/Rdatasets (package/table), and bodyfat and
# plasma_retinol of StatLib.
FEW_ROWS = (
    "environmental",  # lattice/environmental
    "auto",  # ISLR/Auto
    "bodyfat",
    "caschools",  # AER/CASchools
    "prestige",  # carData/Prestige
    "plasma_retinol",
    "hprice1",  # wooldridge/hprice1
    "kids198",  # Stat2Data/Kids198
)
TRAINING_SHARE, MOST_ROWS = 0.6, 500


def kernel_machine(seed):
    """A kernel machine with nothing set, judged by folds."""
    model = KernelEigenProRegressor(standardize=True)
    return TrajectoryEarlyStoppingCV(model, criterion="cv", random_state=seed)


def kernel_readings(name, seed):
    """What is said of a choice, by itself and by nested folds, and the truth.

    Returns
    -------
    score, corrected, nested, loss : float
    """
    X, y = read(name)
    n_rows = min(int(TRAINING_SHARE * len(y)), MOST_ROWS)
    order = np.random.default_rng(seed).permutation(len(y))
    X_test, y_test = X[order[n_rows:]], y[order[n_rows:]]
    X, y = X[order[:n_rows]], y[order[:n_rows]]
    model = kernel_machine(seed).fit(X, y)
    nested = np.empty(n_rows)
    for fitted, judged in KFold(5, shuffle=True, random_state=seed).split(X):
        inner = kernel_machine(seed).fit(X[fitted], y[fitted])
        nested[judged] = (inner.predict(X[judged]) - y[judged]) ** 2
    loss = np.mean((model.predict(X_test) - y_test) ** 2)
    return model.best_score_, model.best_score_corrected_, nested.mean(), loss


def kernel_scores(n_splits=40):
    """What the scores of a kernel machine say of it, on tables of few rows.

    KernelEigenProRegressor(standardize=True), its gamma and its iterate chosen by five
    folds; 60% of the rows train, the others test; 40 splits. Means of best_score_, of
    best_score_corrected_ and of nested folds over the mean test error: one is the
    truth.
    """
    scores = "score", "corrected", "nested folds"
    yield from header("table", "training rows x columns", *scores)
    ratios = []
    for name in FEW_ROWS:
        readings = Parallel(n_jobs=-1)(
            delayed(kernel_readings)(name, seed) for seed in range(n_splits)
        )
        *said, loss = np.mean(readings, axis=0)
        ratios.append(np.array(said) / loss)
        X, y = read(name)
        shape = f"{int(TRAINING_SHARE * len(y))} x {X.shape[1]}"
        yield line(name, shape, *(f"{r:.3f}" for r in ratios[-1]))
    means = (f"{mean:.3f}" for mean in gmean(ratios, axis=0))
    yield line("geometric mean", "", *means)
