"""Coverage of the intervals of coefficients and means, along the run."""

import warnings
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import toeplitz
from scipy.special import expit
from scipy.stats import norm

from skacv import (
    IterativeRidge,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
)

N_REPEATS, N_NEW = 200, 5
COVERAGE = 0.95
ITERATES, LOGISTIC_ITERATES = (10, 30), (5, 20)
RUN = {"max_iter": 30, "tol": 0.0, "loo": False, "risk": True, "keep_data": True}


class Setting(NamedTuple):
    """A model, its rows and noise; noise of degrees None is normal."""

    name: str
    model: object
    shape: tuple
    degrees: int | None = None
    iterates: tuple = ITERATES


SETTINGS = (
    Setting("lasso, FISTA", TrajectoryLasso(0.05, **RUN), (300, 450)),
    Setting("lasso, FISTA", TrajectoryLasso(0.05, **RUN), (400, 200)),
    Setting(
        "least squares, Nesterov",
        IterativeRidge(0.0, solver="nesterov", **RUN),
        (400, 200),
    ),
    Setting(
        "Huber, Nesterov, t3 noise",
        TrajectoryHuberRegressor(0.01, **RUN),
        (400, 200),
        3,
    ),
    Setting(
        "Huber, SGD, t3 noise",
        TrajectoryHuberRegressor(
            0.01, solver="sgd", batch_size=100, **{**RUN, "max_iter": 10}
        ),
        (400, 200),
        3,
        iterates=(10,),
    ),
)

LOGISTIC = (
    Setting(
        "logistic, Nesterov",
        TrajectoryLogisticRegression(1e6),
        (400, 200),
        iterates=LOGISTIC_ITERATES,
    ),
    Setting(
        "logistic, l1, FISTA",
        TrajectoryLogisticRegression(0.2, l1_ratio=1.0),
        (400, 600),
        iterates=LOGISTIC_ITERATES,
    ),
    Setting(
        "logistic, SGD",
        TrajectoryLogisticRegression(1.0, solver="sgd", batch_size=100),
        (400, 200),
        iterates=(5,),
    ),
)


def coverage(n_repeats=N_REPEATS):
    """Coverage of intervals along the run, nominal .95, and their length.

    Columns correlated as an AR(.5), 15 of them matter by as much, five times as much
    signal as noise, an intercept of 3; 200 repeats, of 14 columns: seven that matter
    and seven that do not. Intervals of iterates 10 and 30, by the covariance as it is
    known, and by the nodewise lasso. "Means" are those of targets, at five new rows.
    SGD: passes through batches of 100 rows, drawn anew.

    Logistic models: 20 columns that matter by as much, log odds of standard deviation 2
    about 1, iterates 5 and 20.

    Length is the median over repeats of the mean. The standard error of a coverage is
    about .004: intervals of a repeat are not independent.
    """
    yield "| run | rows x columns | iterate | of | covariance | coverage | length |"
    yield "|---|---|---|---|---|---|---|"
    repeats = [
        *((each, partial(_repeat, each)) for each in SETTINGS),
        *((each, partial(_logistic_repeat, each)) for each in LOGISTIC),
    ]
    for setting, repeat in repeats:
        rng = np.random.default_rng(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [repeat(rng) for _ in range(n_repeats)]
        for name in found[0]:
            covered, length = np.transpose([each[name] for each in found])
            cells = [setting.name, "{} x {}".format(*setting.shape), *name]
            numbers = f"{covered.mean():.3f} | {np.median(length):.3f}"
            yield f"| {' | '.join(cells)} | {numbers} |"


CLASSIFIERS = {
    "logistic, Nesterov": (TrajectoryLogisticRegression(1e6), (400, 200)),
    "logistic, l1, FISTA": (
        TrajectoryLogisticRegression(0.2, l1_ratio=1.0),
        (400, 600),
    ),
    "squared hinge, Nesterov": (TrajectoryLinearSVC(0.1), (400, 200)),
}


def nulls(n_repeats=N_REPEATS):
    """Tests of coefficients that are zero, of classifiers.

    Columns correlated as an AR(.5), 20 of them matter by as much, strength 2, an
    intercept of 1; 200 repeats, iterate 20. The share of the others whose z is within
    1.96, by the covariance as it is known (all of them) and by the nodewise lasso (five
    of a repeat), which should be .95; and the standard deviation of z, which should be
    1.
    """
    yield "| run | rows x columns | covariance | within 1.96 | sd of z |"
    yield "|---|---|---|---|---|"
    for name, (model, shape) in CLASSIFIERS.items():
        rng, found = np.random.default_rng(0), {"known": [], "nodewise": []}
        model.set_params(**{**RUN, "max_iter": 20})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(n_repeats):
                for how, z in _z_of_nulls(model, shape, rng).items():
                    found[how].extend(z)
        for how, z in found.items():
            share, spread = np.mean(np.abs(z) < norm.ppf(0.975)), np.std(z)
            size = "{} x {}".format(*shape)
            yield f"| {name} | {size} | {how} | {share:.3f} | {spread:.3f} |"


def _logistic_draw(shape, rng):
    """Covariance, coefficients, rows and labels; the columns that matter."""
    n, p = shape
    covariance, beta = toeplitz(0.5 ** np.arange(p)), np.zeros(p)
    chosen = rng.choice(p, 20, replace=False)
    beta[chosen] = 1.0
    beta *= 2 / np.sqrt(beta @ covariance @ beta)
    X = rng.standard_normal((n, p)) @ np.linalg.cholesky(covariance).T
    return covariance, beta, X, rng.random(n) < expit(X @ beta + 1), chosen


def _z_of_nulls(model, shape, rng):
    """The z of columns that do not matter, on one draw."""
    covariance, beta, X, y, _ = _logistic_draw(shape, rng)
    model.set_params(random_state=int(rng.integers(1 << 30))).fit(X, y)
    null = np.flatnonzero(beta == 0)
    return {
        "known": model.coef_table(null, covariance=covariance)["z"],
        "nodewise": model.coef_table(null[:5])["z"],
    }


def _logistic_repeat(setting, rng):
    """Share of intervals that cover, and mean length, by iterate and covariance."""
    covariance, beta, X, y, chosen = _logistic_draw(setting.shape, rng)
    null = rng.choice(np.flatnonzero(beta == 0), 7, replace=False)
    asked = np.r_[chosen[:7], null]
    seed = int(rng.integers(1 << 30))
    last = max(setting.iterates)
    model = setting.model.set_params(**{**RUN, "max_iter": last}, random_state=seed)
    model.fit(X, y)
    found = {}
    for t in setting.iterates:
        for name, given in (("known", covariance), ("nodewise", "nodewise")):
            ends = model.coef_interval(asked, COVERAGE, iteration=t, covariance=given)
            found[str(t), "coefficients", name] = _covered(ends, beta[asked])
    return found


def _covered(ends, truth):
    """Share of intervals that cover the truth, and their mean length."""
    lower, upper = ends.T
    return np.mean((lower <= truth) & (truth <= upper)), np.mean(upper - lower)


def _repeat(setting, rng):
    """Share of intervals that cover, and mean length, by iterate and covariance."""
    n, p = setting.shape
    covariance = toeplitz(0.5 ** np.arange(p))
    beta, chosen = np.zeros(p), rng.choice(p, 15, replace=False)
    beta[chosen] = 1.0
    beta *= np.sqrt(5 / (beta @ covariance @ beta))
    X = rng.standard_normal((n, p)) @ np.linalg.cholesky(covariance).T
    noise = rng.standard_normal(n)
    if setting.degrees is not None:
        noise = rng.standard_t(setting.degrees, n)
    asked = np.r_[chosen[:7], rng.choice(np.flatnonzero(beta == 0), 7, replace=False)]
    model = setting.model.set_params(random_state=int(rng.integers(1 << 30)))
    model.fit(X, X @ beta + 3 + noise)
    new = rng.standard_normal((N_NEW, p)) @ np.linalg.cholesky(covariance).T
    found = {}
    for t in setting.iterates:
        for name, given in (("known", covariance), ("nodewise", "nodewise")):
            how = {"iteration": t, "covariance": given}
            ends = model.coef_interval(asked, COVERAGE, **how)
            found[str(t), "coefficients", name] = _covered(ends, beta[asked])
            ends = model.predict_mean_interval(new, COVERAGE, **how)
            found[str(t), "means", name] = _covered(ends, new @ beta + 3)
    return found
