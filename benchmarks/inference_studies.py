"""Coverage of the intervals of coefficients, along the run."""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.linalg import toeplitz

from skacv import IterativeRidge, TrajectoryHuberRegressor, TrajectoryLasso

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
