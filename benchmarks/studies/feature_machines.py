"""Do learned scales of the columns pay, and is the score of such a machine honest?"""

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from skacv import (
    KernelEigenProRegressor,
    RecursiveFeatureMachineRegressor,
    TrajectoryEarlyStoppingCV,
)

from ..framework import header, line

N_TEST, NOISE, SEEDS = 2000, 0.5, range(5)
FUNCTIONS = {
    "sines": lambda X: np.sin(2 * X[:, :5]).sum(axis=1),
    "interactions": lambda X: X[:, 0] * (X[:, 1] + X[:, 4] / 2) + X[:, 2] * X[:, 3],
    "steps": lambda X: (
        (X[:, 0] > 0) + 2.0 * (X[:, 1] > 0.5) * (X[:, 2] > 0) + (X[:, 3] > -0.5)
    ),
}


def drawn(name, n_rows, n_columns, seed):
    """Training rows and targets with noise, and new rows with the truth."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows + N_TEST, n_columns))
    truth = FUNCTIONS[name](X)
    truth /= truth.std()
    y = truth + NOISE * rng.standard_normal(len(X))
    return X[:n_rows], y[:n_rows], X[n_rows:], truth[n_rows:]


def stopped(**settings):
    """A feature machine whose rounds folds choose."""
    machine = RecursiveFeatureMachineRegressor(random_state=0)
    return TrajectoryEarlyStoppingCV(machine, random_state=0, **settings)


def methods():
    """Estimators by their names; those of other packages where they are installed."""
    grid = {
        "svr__C": np.geomspace(0.1, 100, 4),
        "svr__gamma": np.geomspace(0.01, 0.3, 4),
    }
    svr = GridSearchCV(make_pipeline(StandardScaler(), SVR()), grid, cv=5)
    kernel = KernelEigenProRegressor(standardize=True, random_state=0)
    found = {"kernel": kernel, "feature machine": stopped(), "SVR": svr}
    try:
        from catboost import CatBoostRegressor

        found["CatBoost"] = CatBoostRegressor(
            random_seed=0, verbose=0, allow_writing_files=False, thread_count=1
        )
    except ImportError:
        pass
    try:
        from xrfm import xRFM

        found["xRFM"] = OfValidationRows(xRFM)
    except ImportError:
        pass
    return found


class OfValidationRows:
    """xRFM, which wants validation rows: a fifth of those that train."""

    def __init__(self, cls):
        self.cls = cls

    def fit(self, X, y):
        """Fit to four fifths of the rows, and choose by the others."""
        import torch

        torch.manual_seed(0)
        X, y = X.astype(np.float32), y.astype(np.float32)[:, None]
        scaler = StandardScaler().fit(X)
        self.scaler, n = scaler, len(X) * 4 // 5
        X = scaler.transform(X)
        self.model = self.cls(device="cpu", tuning_metric="mse")
        self.model.fit(X[:n], y[:n], X[n:], y[n:])
        return self

    def predict(self, X):
        """Predictions for new rows."""
        X = self.scaler.transform(X.astype(np.float32))
        return np.ravel(self.model.predict(X))


def feature_machines(seeds=SEEDS):
    """Machines that learn scales of the columns, against others.

    Functions of some of the normal columns, of variance one, with noise of standard
    deviation one half. Mean squared distance to the function on 2000 new rows, mean of
    five draws: the kernel machine with equal scales, the feature machine whose rounds
    five folds choose, SVR by a grid of 4 C x 4 gamma, CatBoost with nothing set, and
    xRFM with a fifth of the rows to choose by, where these are installed.
    """
    yield from header("function", "rows x columns", *methods())
    for name in FUNCTIONS:
        for n_rows in (300, 1000):
            for n_columns in (10, 20):
                errors = {key: [] for key in methods()}
                for seed in seeds:
                    X, y, X_new, truth = drawn(name, n_rows, n_columns, seed)
                    for key, method in methods().items():
                        prediction = method.fit(X, y).predict(X_new)
                        errors[key].append(np.mean((prediction - truth) ** 2))
                means = (f"{np.mean(values):.3f}" for values in errors.values())
                yield line(name, f"{n_rows} x {n_columns}", *means)
    yield ""


def feature_machine_scores(n_draws=40):
    """Is the score of a machine that learns scales honest?

    Means over 40 draws of 300 rows and 10 columns, over the true error with its noise:
    the score by twenty folds, each of which learns its own scales, that corrected for
    the choice of the round, and the leave-one-out error of the same round, whose scales
    have seen all rows.
    """
    columns = "folds", "corrected", "leave-one-out, scales of all rows"
    yield from header("function", *columns)
    for name in FUNCTIONS:
        ratios = []
        for seed in range(n_draws):
            X, y, X_new, truth = drawn(name, 300, 10, seed)
            model = stopped(cv=20).fit(X, y)
            error = np.mean((model.predict(X_new) - truth) ** 2) + NOISE**2
            loo = model.estimator_.loo_errors_[model.best_iter_ - 1]
            scores = model.best_score_, model.best_score_corrected_, loo
            ratios.append(np.array(scores) / error)
        yield line(name, *(f"{value:.3f}" for value in np.mean(ratios, axis=0)))
    yield ""
