"""Coverage of the intervals of coefficients, along the run."""

import warnings
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

N_REPEATS, N_ASKED = 200, 14
COVERAGE = 0.95
ITERATES = (10, 30)
RUN = {"max_iter": 30, "tol": 0.0, "loo": False, "risk": True, "keep_data": True}


class Setting(NamedTuple):
    """A model, its rows and noise; noise of degrees None is normal."""

    name: str
    model: object
    shape: tuple
    degrees: int | None = None


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
)


def coverage(n_repeats=N_REPEATS):
    """Coverage of intervals of coefficients, nominal .95, and their mean length.

    Columns correlated as an AR(.5), 15 of them matter by as much, five times as much
    signal as noise, an intercept of 3; 200 repeats, of 14 columns: seven that matter
    and seven that do not. Intervals of iterates 10 and 30, by the covariance as it is
    known, and by the nodewise lasso. The standard error of a coverage is about .004:
    intervals of a repeat are not independent.
    """
    yield "| run | rows x columns | iterate | covariance | coverage | length |"
    yield "|---|---|---|---|---|---|"
    for setting in SETTINGS:
        rng = np.random.default_rng(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [_repeat(setting, rng) for _ in range(n_repeats)]
        for name in found[0]:
            covered, length = np.mean([each[name] for each in found], axis=0)
            cells = [setting.name, "{} x {}".format(*setting.shape), *name]
            yield f"| {' | '.join(cells)} | {covered:.3f} | {length:.3f} |"


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


def _z_of_nulls(model, shape, rng):
    """The z of columns that do not matter, on one draw."""
    n, p = shape
    covariance, beta = toeplitz(0.5 ** np.arange(p)), np.zeros(p)
    beta[rng.choice(p, 20, replace=False)] = 1.0
    beta *= 2 / np.sqrt(beta @ covariance @ beta)
    X = rng.standard_normal((n, p)) @ np.linalg.cholesky(covariance).T
    y = rng.random(n) < expit(X @ beta + 1)
    model.set_params(random_state=int(rng.integers(1 << 30))).fit(X, y)
    null = np.flatnonzero(beta == 0)
    return {
        "known": model.coef_table(null, covariance=covariance)["z"],
        "nodewise": model.coef_table(null[:5])["z"],
    }


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
    found = {}
    for t in ITERATES:
        for name, given in (("known", covariance), ("nodewise", "nodewise")):
            ends = model.coef_interval(asked, COVERAGE, iteration=t, covariance=given).T
            covers = (ends[0] <= beta[asked]) & (beta[asked] <= ends[1])
            found[str(t), name] = covers.mean(), (ends[1] - ends[0]).mean()
    return found
