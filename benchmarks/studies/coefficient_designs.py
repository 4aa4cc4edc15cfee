"""Do intervals of coefficients cover on correlated columns, column by column?"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import toeplitz
from scipy.special import expit
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import OneHotEncoder

from skacv import (
    IterativeRidge,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)
from skacv.risk.reader import Unreadable

from ..framework import header, line

N_REPEATS = 1000
COVERAGE = 0.95
# The mean of targets, and of log odds.
MIDDLE = 0.5
LEVELS = (3, 4, 6)
# Columns that do not matter: of the diabetes data age, s3 and s6, elsewhere every other
# one.
DIABETES_ZERO = (0, 6, 9)


class Truth(NamedTuple):
    """Rows and true coefficients, and the linear predictors less their mean."""

    X: np.ndarray
    coef: np.ndarray

    @property
    def signal(self):
        results = self.X @ self.coef
        return results - results.mean()


def diabetes(rng):
    """The rows of the data, and their least squares but for three columns."""
    X, y = load_diabetes(return_X_y=True)
    coef = LinearRegression().fit(X, y).coef_
    coef[list(DIABETES_ZERO)] = 0.0
    return Truth(X, coef)


def autoregressive(rng):
    """AR(.9) columns."""
    return normal(500, toeplitz(0.9 ** np.arange(10)), rng)


def equicorrelated(rng):
    """Columns of which any two have a correlation of .9."""
    return normal(500, np.full((10, 10), 0.9) + 0.1 * np.eye(10), rng)


def few_rows(rng):
    """AR(.9) columns, two and a half rows to each."""
    return normal(100, toeplitz(0.9 ** np.arange(40)), rng)


def many_columns(rng):
    """AR(.5) columns, five rows to each."""
    return normal(400, toeplitz(0.5 ** np.arange(80)), rng)


def normal(n_rows, covariance, rng):
    """Normal rows of a covariance, every other coefficient one."""
    root = np.linalg.cholesky(covariance)
    X = rng.standard_normal((n_rows, len(root))) @ root.T
    return Truth(X, (np.arange(len(root)) % 2).astype(float))


def one_hot(rng):
    """Three categories of which some levels are rare, the first level left out."""
    columns = [
        rng.choice(n_levels, 500, p=shares(n_levels)[::-1]) for n_levels in LEVELS
    ]
    encoder = OneHotEncoder(drop="first", sparse_output=False)
    X = encoder.fit_transform(np.stack(columns, axis=1))
    return Truth(X, (np.arange(X.shape[1]) % 2).astype(float))


def shares(n_levels):
    """Shares of levels that rise evenly."""
    weights = np.arange(1.0, n_levels + 1)
    return weights / weights.sum()


KEPT = {"keep_data": True, "standardize": True, "random_state": 0}
LASSO = TrajectoryEarlyStoppingCV(TrajectoryLasso("path", max_iter=10, **KEPT))
RIDGE = IterativeRidge(
    0.0, solver="nesterov", max_iter=2000, loo=False, risk=False, **KEPT
)
LOGISTIC = TrajectoryEarlyStoppingCV(TrajectoryLogisticRegression(**KEPT))
# A model, and how it is debiased.
REGRESSIONS = {
    "lasso path": (LASSO, "auto"),
    "ridge at convergence": (RIDGE, "auto"),
}
MODELS = {
    **REGRESSIONS,
    "lasso path, nodewise": (LASSO, "nodewise"),
    "logistic": (LOGISTIC, "auto"),
}
# With few rows the nodewise lasso refuses some columns, and most draws separate the
# classes.
DESIGNS = {
    "diabetes": (diabetes, MODELS),
    "AR(.9)": (autoregressive, MODELS),
    "equicorrelated .9": (equicorrelated, MODELS),
    "one-hot": (one_hot, MODELS),
    "AR(.9), few rows": (few_rows, REGRESSIONS),
    "AR(.5), many columns": (many_columns, {"logistic": MODELS["logistic"]}),
}
# The nodewise lasso is shown for comparison.
N_NODEWISE = 50


def coefficients(n_repeats=N_REPEATS):
    """Coverage of intervals of coefficients, column by column, nominal .95.

    A thousand draws (fifty with the nodewise lasso, for comparison), so that the
    standard error of the coverage of a column is .007. The rows of the diabetes data
    stay, with their least squares as the truth, but for age, s3 and s6, which are zero;
    those of other designs are drawn anew, and every other coefficient is zero. Noise is
    normal, as much as the signal; log odds have a standard deviation of one about one
    half. One-hot: three categories of 3, 4 and 6 levels, the rarest level in 24 of 500
    rows. The last two columns are the least and the largest share of p-values below .05
    among the columns that are zero. Draws without a maximum likelihood estimate, which
    raise an error, are drawn again.
    """
    yield from header(
        "columns",
        "shape",
        "model",
        "least coverage",
        "mean",
        "largest",
        "intercept",
        "zero rejected, least",
        "largest",
    )
    for name, (design, models) in DESIGNS.items():
        for model_name, (model, covariance) in models.items():
            is_nodewise = covariance == "nodewise"
            n_draws = min(N_NODEWISE, n_repeats) if is_nodewise else n_repeats
            rng = np.random.default_rng(0)
            draws = [drawn(design, model, covariance, rng) for _ in range(n_draws)]
            shape, *results = cells(draws)
            yield line(name, shape, model_name, *results)


class Draw(NamedTuple):
    """What intervals and tests say of one draw; the intercept is last.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    zero : ndarray of bool, shape (n_columns,)
        Which true coefficients are zero.
    covers : ndarray of bool, shape (n_columns,) or (n_columns + 1,)
    rejects : ndarray of bool, of that shape
    """

    shape: tuple
    zero: np.ndarray
    covers: np.ndarray
    rejects: np.ndarray


def drawn(design, model, covariance, rng):
    """One draw; another one where the model has no estimate."""
    truth = design(rng)
    size = truth.signal.std()
    if is_classifier(model):
        truth = truth._replace(coef=truth.coef / size)
        y = rng.random(len(truth.X)) < expit(truth.signal + MIDDLE)
    else:
        y = truth.signal + MIDDLE + size * rng.standard_normal(len(truth.X))
    try:
        table = clone(model).fit(truth.X, y).coef_table(covariance=covariance)
    except Unreadable:
        return drawn(design, model, covariance, rng)
    true = np.append(truth.coef, MIDDLE - truth.X.mean(axis=0) @ truth.coef)
    true = true[: len(table)]
    return Draw(
        truth.X.shape,
        truth.coef == 0,
        ((table["lower"] <= true) & (true <= table["upper"])).to_numpy(),
        (table["p_value"] < 1 - COVERAGE).to_numpy(),
    )


def cells(draws):
    """Shares of the draws, as cells of the table."""
    (n_rows, n_columns), zero = draws[0].shape, draws[0].zero
    covers = np.mean([draw.covers for draw in draws], axis=0)
    rejects = np.mean([draw.rejects for draw in draws], axis=0)[:n_columns][zero]
    columns, rest = covers[:n_columns], covers[n_columns:]
    results = [columns.min(), columns.mean(), columns.max(), *rest]
    results = [f"{share:.3f}" for share in results] + [""] * (1 - len(rest))
    results += [f"{share:.3f}" for share in (rejects.min(), rejects.max())]
    return [f"{n_rows} x {n_columns}", *results]
