"""Do intervals of coefficients and of means cover as often as they say?

Nominal .95; tests of coefficients that are zero should be within 1.96 as often.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import toeplitz
from scipy.special import expit
from scipy.stats import norm
from sklearn.base import clone

from skacv import (
    IterativeRidge,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
)

from ..data import covered, rows_of
from ..framework import header, line

N_REPEATS, N_NEW = 200, 5
COVERAGE = 0.95
RUN = {"max_iter": 30, "tol": 0.0, "loo": False, "risk": True, "keep_data": True}


class Setting(NamedTuple):
    """A model, its rows and noise; noise of degrees None is normal."""

    name: str
    model: object
    shape: tuple
    degrees: int | None = None
    iterates: tuple = (10, 30)


TALL = (400, 200)
SGD = {"solver": "sgd", "batch_size": 100}
NESTEROV = IterativeRidge(0.0, solver="nesterov", **RUN)
HUBER = TrajectoryHuberRegressor(0.01, **RUN)
HUBER_SGD = clone(HUBER).set_params(max_iter=10, **SGD)
SETTINGS = (
    Setting("lasso, FISTA", TrajectoryLasso(0.05, **RUN), (300, 450)),
    Setting("lasso, FISTA", TrajectoryLasso(0.05, **RUN), TALL),
    Setting("least squares, Nesterov", NESTEROV, TALL),
    Setting("Huber, Nesterov, t3 noise", HUBER, TALL, 3),
    Setting("Huber, SGD, t3 noise", HUBER_SGD, TALL, 3, (10,)),
)
SPARSE = TrajectoryLogisticRegression(0.2, l1_ratio=1.0)
UNPENALISED = TrajectoryLogisticRegression(1e6)
LOGISTIC_SGD = TrajectoryLogisticRegression(1.0, **SGD)
LOGISTIC = (
    Setting("logistic, Nesterov", UNPENALISED, TALL, iterates=(5, 20)),
    Setting("logistic, l1, FISTA", SPARSE, (400, 600), iterates=(5, 20)),
    Setting("logistic, SGD", LOGISTIC_SGD, TALL, iterates=(5,)),
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
    required = "iterate", "of", "covariance", "coverage", "length"
    yield from header("run", "rows x columns", *required)
    repeats = [
        *((setting, partial(_repeat, setting)) for setting in SETTINGS),
        *((setting, partial(_logistic_repeat, setting)) for setting in LOGISTIC),
    ]
    for setting, repeat in repeats:
        rng = np.random.default_rng(0)
        results = [repeat(rng) for _ in range(n_repeats)]
        for name in results[0]:
            shares, lengths = np.transpose([setting[name] for setting in results])
            size = "{} x {}".format(*setting.shape)
            numbers = f"{shares.mean():.3f}", f"{np.median(lengths):.3f}"
            yield line(setting.name, size, *name, *numbers)


CLASSIFIERS = {
    "logistic, Nesterov": (UNPENALISED, TALL),
    "logistic, l1, FISTA": (SPARSE, (400, 600)),
    "squared hinge, Nesterov": (TrajectoryLinearSVC(0.1), TALL),
}


def nulls(n_repeats=N_REPEATS):
    """Tests of coefficients that are zero, of classifiers.

    Columns correlated as an AR(.5), 20 of them matter by as much, strength 2, an
    intercept of 1; 200 repeats, iterate 20. The share of the others whose z is within
    1.96, by the covariance as it is known (all of them) and by the nodewise lasso (five
    of a repeat), which should be .95; and the standard deviation of z, which should be
    1.
    """
    required = "covariance", "within 1.96", "sd of z"
    yield from header("run", "rows x columns", *required)
    for name, (model, shape) in CLASSIFIERS.items():
        rng, results = np.random.default_rng(0), {"known": [], "nodewise": []}
        model.set_params(**{**RUN, "max_iter": 20})
        for _ in range(n_repeats):
            for how, z in _z_of_nulls(model, shape, rng).items():
                results[how].extend(z)
        for how, z in results.items():
            share, spread = np.mean(np.abs(z) < norm.ppf(0.975)), np.std(z)
            size = "{} x {}".format(*shape)
            yield line(name, size, how, f"{share:.3f}", f"{spread:.3f}")


def _drawn(shape, n_active, rng):
    """Covariance, rows, coefficients of signal variance one, and which are not zero."""
    n, p = shape
    beta, chosen = np.zeros(p), rng.choice(p, n_active, replace=False)
    covariance = toeplitz(0.5 ** np.arange(p))
    beta[chosen] = 1 / np.sqrt(covariance[np.ix_(chosen, chosen)].sum())
    return covariance, rows_of("AR(.5)", n, p, rng)[0], beta, chosen


def _logistic_draw(shape, rng):
    """The same with labels, whose log odds have a standard deviation of 2 about 1."""
    covariance, X, beta, chosen = _drawn(shape, 20, rng)
    return covariance, X, 2 * beta, chosen, rng.random(len(X)) < expit(2 * X @ beta + 1)


def _z_of_nulls(model, shape, rng):
    """The z of columns that do not matter, on one draw."""
    covariance, X, beta, _, y = _logistic_draw(shape, rng)
    model.set_params(random_state=int(rng.integers(1 << 30))).fit(X, y)
    null = np.flatnonzero(beta == 0)
    return {
        "known": model.coef_table(null, covariance=covariance)["z"],
        "nodewise": model.coef_table(null[:5], covariance="nodewise")["z"],
    }


def _asked(beta, chosen, rng):
    """Seven columns that matter, and seven that do not."""
    return np.r_[chosen[:7], rng.choice(np.flatnonzero(beta == 0), 7, replace=False)]


def _readings(setting, covariance):
    """By iterate and covariance: their names, and how to ask for them."""
    for t in setting.iterates:
        for name, given in (("known", covariance), ("nodewise", "nodewise")):
            yield str(t), name, {"iteration": t, "covariance": given}


def _logistic_repeat(setting, rng):
    """Share of intervals that cover, and mean length, by iterate and covariance."""
    covariance, X, beta, chosen, y = _logistic_draw(setting.shape, rng)
    required = _asked(beta, chosen, rng)
    seed = int(rng.integers(1 << 30))
    last = max(setting.iterates)
    model = setting.model.set_params(**{**RUN, "max_iter": last}, random_state=seed)
    model.fit(X, y)
    results = {}
    for t, name, how in _readings(setting, covariance):
        ends = model.coef_interval(required, COVERAGE, **how)
        results[t, "coefficients", name] = covered(ends, beta[required])
    return results


def _repeat(setting, rng):
    """The same of a regression, and of means at new rows."""
    covariance, X, beta, chosen = _drawn(setting.shape, 15, rng)
    beta *= np.sqrt(5)
    n, p = setting.shape
    noise = rng.standard_normal(n)
    if setting.degrees is not None:
        noise = rng.standard_t(setting.degrees, n)
    required = _asked(beta, chosen, rng)
    model = setting.model.set_params(random_state=int(rng.integers(1 << 30)))
    model.fit(X, X @ beta + 3 + noise)
    new, _ = rows_of("AR(.5)", N_NEW, p, rng)
    results = {}
    for t, name, how in _readings(setting, covariance):
        ends = model.coef_interval(required, COVERAGE, **how)
        results[t, "coefficients", name] = covered(ends, beta[required])
        ends = model.predict_mean_interval(new, COVERAGE, **how)
        results[t, "means", name] = covered(ends, new @ beta + 3)
    return results
