"""Are kernel machines with nothing set as good as grids over gamma and a penalty?"""

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from skacv import KernelEigenProClassifier, KernelEigenProRegressor

from ..data import three_directions
from ..framework import header, line, seconds
from ..real_data import CLASSIFICATION, REGRESSION, halves

N_SPLITS = 5
GAMMAS = np.array([1 / 16, 1 / 4, 1.0, 4.0])
ALPHAS, COSTS = np.geomspace(1e-4, 10, 8), np.geomspace(1e-2, 1e3, 8)
# Of the drawn functions there are so many training rows, and test rows.
SIZES, N_TEST = (1000, 2000, 3000), 2000


def simulated(n_rows):
    """A smooth function of three directions of fifty."""
    X, y = three_directions(n_rows + N_TEST)
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def regression(X, y, X_test, y_test):
    """Seconds and errors, over that of the mean: the default, scale alone, the grid."""
    scale, mean = 1 / (X.shape[1] * X.var()), y.mean()
    null = np.mean((y_test - mean) ** 2)
    grid = {"gamma": GAMMAS * scale, "alpha": ALPHAS}
    machines = (
        (KernelEigenProRegressor(random_state=0), 0.0),
        (KernelEigenProRegressor(gamma="scale", random_state=0), 0.0),
        (GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5), mean),
    )
    for machine, offset in machines:
        elapsed, model = seconds(machine.fit, X, y - offset)
        results = model.predict(X_test) + offset
        yield elapsed, np.mean((results - y_test) ** 2) / null


def classification(X, y, X_test, y_test):
    """Seconds, errors and log losses: the default, with loss="log", and peers."""
    scale = 1 / (X.shape[1] * X.var())
    grid = {"gamma": GAMMAS * scale, "C": COSTS}
    machines = (
        KernelEigenProClassifier(random_state=0),
        KernelEigenProClassifier(loss="log", loo=False, cv=5, random_state=0),
        GridSearchCV(SVC(), grid, cv=5),
        LogisticRegressionCV(max_iter=1000),
    )
    for machine in machines:
        elapsed, model = seconds(machine.fit, X, y)
        loss = np.nan
        if hasattr(model, "predict_proba"):
            loss = log_loss(y_test, model.predict_proba(X_test), labels=model.classes_)
        yield elapsed, np.mean(model.predict(X_test) != y_test), loss


def kernel_defaults(n_splits=N_SPLITS):
    """Kernel machines with nothing set.

    Half of the rows train, columns standardised, the others test; means over five
    splits, the functions drawn once. Squared error over that of the mean of y: of the
    default, of gamma="scale" and of `KernelRidge` by a grid of 4 gammas and 8 alphas in
    5 folds. Share of wrong labels of the default and of an `SVC` by a grid of the same
    gammas and 8 values of C; log loss of `loss="log"` and of `LogisticRegressionCV`;
    their seconds.
    """
    columns = "default", "gamma=scale", "grid", "ratio", "seconds", "grid's"
    yield from header("data", *columns)
    logs = []
    sets = {
        name: [halves(data, seed) for seed in range(n_splits)]
        for name, data in REGRESSION.items()
    }
    sets |= {f"three directions, {n} rows": [simulated(n)] for n in SIZES}
    for name, splits in sets.items():
        results = np.mean([list(regression(*split)) for split in splits], axis=0)
        (ours, error), (_, fixed), (grid, theirs) = results
        logs.append(np.log(error / theirs))
        errors = error, fixed, theirs, error / theirs
        times = f"{ours:.2f}", f"{grid:.2f}"
        yield line(name, *(f"{value:.3f}" for value in errors), *times)
    mean = f"{np.exp(np.mean(logs)):.3f}"
    yield line("geometric mean", "", "", "", mean, "", "")
    yield ""
    columns = "default", "SVC", "logistic", "log loss", "logistic's", "seconds"
    yield from header("data", *columns)
    for name, data in CLASSIFICATION.items():
        splits = [halves(data, seed, stratified=True) for seed in range(n_splits)]
        results = np.mean([list(classification(*split)) for split in splits], axis=0)
        default, log, machine, linear = results
        errors = (f"{100 * row[1]:.2f}%" for row in (default, machine, linear))
        times = (f"{row[0]:.2f}" for row in results)
        losses = f"{log[2]:.3f}", f"{linear[2]:.3f}"
        yield line(name, *errors, *losses, ", ".join(times))
