"""Is risk_path_ of a curved loss right? Beside leave-one-out and fresh rows."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.base import clone, is_classifier
from sklearn.model_selection import LeaveOneOut

from skacv import (
    TrajectoryHuberRegressor,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryRegressor,
)
from skacv.optim.losses import Huber
from skacv.optim.schedules import RandomBatches

from ..data import rows_of
from ..framework import header, line

N_ROWS, N_TEST, N_REPEATS = 300, 4000, 40
SIGNAL = 2.0
RUN = {"max_iter": 25, "tol": 0.0, "loo": False}
SGD = {**RUN, "max_iter": 10, "solver": "sgd"}
SPARSE = {"C": 0.5, "l1_ratio": 1.0}
LOGISTIC = TrajectoryLogisticRegression
BATCHES = RandomBatches(1.0, N_ROWS, N_ROWS // 5, 0)
MODELS = {
    "logistic, gradient descent": LOGISTIC(1e6, solver="gd", **RUN),
    "logistic, Nesterov": LOGISTIC(1e6, **RUN),
    "logistic, l1, FISTA": LOGISTIC(**SPARSE, **RUN),
    "Poisson, Nesterov": TrajectoryPoissonRegressor(0.01, **RUN),
    "Huber, t2 noise, Nesterov": TrajectoryHuberRegressor(0.01, **RUN),
    "Huber, t3 noise, Nesterov": TrajectoryHuberRegressor(0.01, **RUN),
    "logistic, SGD": LOGISTIC(1e6, **SGD),
    "logistic, l1, SGD": LOGISTIC(**SPARSE, **SGD),
    "Huber, l1, t2 noise, random batches": TrajectoryRegressor(
        0.02, loss=Huber(1.0), schedule=BATCHES, step_size=0.3, **RUN
    ),
    "smoothed hinge, Nesterov": TrajectoryLinearSVC(0.05, loss="smoothed_hinge", **RUN),
}


class Setting(NamedTuple):
    """A model by its name, columns over rows, and degrees of freedom of t noise."""

    name: str
    ratio: float
    rows: str = "Gaussian"
    noise: int = 2


SETTINGS = (
    Setting("logistic, gradient descent", 0.5),
    Setting("logistic, gradient descent", 1.0),
    Setting("logistic, gradient descent", 1.5),
    Setting("logistic, Nesterov", 0.5),
    Setting("logistic, l1, FISTA", 0.5),
    Setting("logistic, l1, FISTA", 1.5),
    Setting("logistic, Nesterov", 0.5, "AR(.5)"),
    Setting("logistic, Nesterov", 0.5, "t5"),
    Setting("Poisson, Nesterov", 0.5),
    Setting("Huber, t2 noise, Nesterov", 0.5),
    Setting("Huber, t3 noise, Nesterov", 1.0, noise=3),
    Setting("logistic, SGD", 0.5),
    Setting("logistic, SGD", 1.0),
    Setting("logistic, l1, SGD", 1.5),
    Setting("Huber, l1, t2 noise, random batches", 1.0),
    Setting("smoothed hinge, Nesterov", 0.5),
)


def drawn(setting, rng):
    """Rows and targets, to fit on and to test."""
    n, p = N_ROWS + N_TEST, int(setting.ratio * N_ROWS)
    X, _ = rows_of(setting.rows, n, p, rng)
    beta = np.zeros(p)
    beta[: p // 5] = 1.0
    signal = X @ beta
    signal *= SIGNAL / signal.std()
    if setting.name.startswith("Poisson"):
        y = rng.poisson(np.exp(0.3 * signal))
    elif is_classifier(MODELS[setting.name]):
        y = (rng.random(n) < expit(signal)).astype(int)
    else:
        y = signal + rng.standard_t(setting.noise, n)
    return X[:N_ROWS], y[:N_ROWS], X[N_ROWS:], y[N_ROWS:]


def test_path(model, X, y):
    """Mean loss of every iterate on fresh rows."""
    target = model._target(y)[:, :, None].astype(float)
    coef, intercept = model.coef_path_, np.asarray(model.intercept_path_)
    coef = coef.reshape(len(coef), -1)
    predictor = X @ coef.T + intercept.reshape(len(coef))
    return model._loss.reported(target, predictor[:, None]).mean(axis=(0, 1))


def curved_memory(n_repeats=N_REPEATS):
    """The memory matrix of curved losses, against leave-one-out and fresh rows.

    300 rows, a fifth of the columns matter, 25 updates (SGD: 10 passes through batches
    of 32 rows, drawn anew; random batches: 30 rows an update), 40 repeats. "traces" and
    "default" are means of risk_path_ over those of exact leave-one-out (every row a
    replica of the run), at the iterate where that differs most and, in brackets, at the
    last one: with exact traces, and with the default number of random signs. "truth" is
    leave-one-out over the loss on 4000 fresh rows, at the last iterate. "error" is the
    standard error that risk_mc_se_path_ reports of the default over its spread about
    exact traces, at the last iterate. "rows" is the correlation of the held-out
    predictors with those of leave-one-out, there. "regret" is the mean loss of the
    chosen iterate on fresh rows over the mean of the least on every path, less one: by
    exact traces, by the default, by leave-one-out.
    """
    estimates = "traces", "default", "truth", "error", "rows", "regret"
    yield from header("run", "p/n", "rows", *estimates)
    for setting in SETTINGS:
        rng = np.random.default_rng(0)
        results = [_repeat(setting, rng) for _ in range(n_repeats)]
        yield _line(setting, results)


class Repeat(NamedTuple):
    """What is said of one draw, (n_iterates,) each, and how alike predictors are."""

    exact: np.ndarray
    default: np.ndarray
    reported: np.ndarray
    loo: np.ndarray
    test: np.ndarray
    correlation: float


def _repeat(setting, rng):
    X, y, X_test, y_test = drawn(setting, rng)
    seed = int(rng.integers(1 << 30))
    model = clone(MODELS[setting.name]).set_params(random_state=seed)
    exact = clone(model).set_params(risk="exact", cv=LeaveOneOut()).fit(X, y)
    default = clone(model).set_params(risk="hutchinson").fit(X, y)
    order = np.argsort(np.hstack(exact.cv_indices_))
    pairs = exact.risk_prediction_path_[-1], exact.cv_prediction_path_[-1][order]
    return Repeat(
        exact.risk_path_,
        default.risk_path_,
        default.risk_mc_se_path_,
        exact.cv_path_,
        test_path(exact, X_test, y_test),
        np.corrcoef(*pairs)[0, 1],
    )


def _line(setting, results):
    """One line of the table."""
    exact, default, reported, loo, test = (
        np.array([getattr(item, name) for item in results])
        for name in ("exact", "default", "reported", "loo", "test")
    )
    cells = [setting.name, f"{setting.ratio}", setting.rows]
    for path in (exact, default):
        ratio = path.mean(axis=0) / loo.mean(axis=0)
        worst = ratio[np.abs(ratio - 1).argmax()]
        cells.append(f"{worst:.3f} ({ratio[-1]:.3f})")
    cells.append(f"{loo[:, -1].mean() / test[:, -1].mean():.3f}")
    spread = np.sqrt(np.mean((default - exact)[:, -1] ** 2))
    cells.append(f"{np.sqrt(np.mean(reported[:, -1] ** 2)) / spread:.2f}")
    cells.append(f"{np.mean([item.correlation for item in results]):.4f}")
    least = test.min(axis=1).mean()
    regrets = [
        test[np.arange(len(test)), path.argmin(axis=1)].mean() / least - 1
        for path in (exact, default, loo)
    ]
    cells.append(", ".join(f"{regret:.3f}" for regret in regrets))
    return line(*cells)
