"""Do intervals of coefficients and of means cover as often as they say?"""

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
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)
from skacv.risk.reader import Unreadable

from ..data import covered, rows_of
from ..framework import header, line, study

COVERAGE = 0.95
# The mean of targets, and of log odds.
MIDDLE = 0.5


def diabetes(rng):
    """The rows of the data, and their least squares but for age, s3 and s6."""
    X, y = load_diabetes(return_X_y=True)
    coef = LinearRegression().fit(X, y).coef_
    coef[[0, 6, 9]] = 0.0
    return X, coef


def normal(n_rows, covariance):
    """Normal rows of a covariance, every other coefficient one."""
    root = np.linalg.cholesky(covariance)
    coef = (np.arange(len(root)) % 2).astype(float)
    return lambda rng: (rng.standard_normal((n_rows, len(root))) @ root.T, coef)


def one_hot(rng):
    """Three categories of which some levels are rare, the first level left out."""
    columns = []
    for n_levels in (3, 4, 6):
        weights = np.arange(1.0, n_levels + 1)
        columns.append(rng.choice(n_levels, 500, p=(weights / weights.sum())[::-1]))
    encoder = OneHotEncoder(drop="first", sparse_output=False)
    X = encoder.fit_transform(np.stack(columns, axis=1))
    return X, (np.arange(X.shape[1]) % 2).astype(float)


KEPT = {"keep_data": True, "standardize": True, "random_state": 0}
LASSO = TrajectoryEarlyStoppingCV(TrajectoryLasso("path", max_iter=10, **KEPT))
RIDGE = IterativeRidge(
    0.0, solver="nesterov", max_iter=2000, loo=False, risk=False, **KEPT
)
LOGISTIC = TrajectoryEarlyStoppingCV(TrajectoryLogisticRegression(**KEPT))
# A model, and how it is debiased.
MODELS = {
    "lasso path": (LASSO, "auto"),
    "ridge at convergence": (RIDGE, "auto"),
    "lasso path, nodewise": (LASSO, "nodewise"),
    "logistic": (LOGISTIC, "auto"),
}
# With few rows the nodewise lasso refuses some columns, and most draws separate the
# classes.
DESIGNS = {
    "diabetes": (diabetes, MODELS),
    "AR(.9)": (normal(500, toeplitz(0.9 ** np.arange(10))), MODELS),
    "equicorrelated .9": (
        normal(500, np.full((10, 10), 0.9) + 0.1 * np.eye(10)),
        MODELS,
    ),
    "one-hot": (one_hot, MODELS),
    "AR(.9), few rows": (
        normal(100, toeplitz(0.9 ** np.arange(40))),
        ["lasso path", "ridge at convergence"],
    ),
    "AR(.5), many columns": (
        normal(400, toeplitz(0.5 ** np.arange(80))),
        ["logistic"],
    ),
}


@study()
def coefficients(n_repeats=1000):
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
    shares = "least coverage", "mean", "largest", "intercept"
    yield from header(
        *("columns", "shape", "model", *shares, "zero rejected, least", "largest")
    )
    cases = [(*case, name) for case in DESIGNS.items() for name in case[1][1]]
    for title, (design, _), name in cases:
        model, covariance = MODELS[name]
        n_draws = min(50, n_repeats) if covariance == "nodewise" else n_repeats
        rng = np.random.default_rng(0)
        draws = [drawn(design, model, covariance, rng) for _ in range(n_draws)]
        n_rows, zero = draws[0][0], draws[0][1]
        covers, rejects = (np.mean(part, axis=0) for part in list(zip(*draws))[2:])
        columns, intercept = covers[: len(zero)], covers[len(zero) :]
        rejects = rejects[: len(zero)][zero]
        numbers = columns.min(), columns.mean(), columns.max(), *intercept
        cells = [f"{share:.3f}" for share in numbers] + [""] * (1 - len(intercept))
        cells += [f"{share:.3f}" for share in (rejects.min(), rejects.max())]
        yield line(title, f"{n_rows} x {len(zero)}", name, *cells)


def drawn(design, model, covariance, rng):
    """One draw, or another where the model has no estimate: rows, zero columns, columns
    that intervals cover, and that tests reject, the intercept last.
    """
    X, coef = design(rng)
    size = (X @ coef).std()
    if is_classifier(model):
        coef = coef / size
        y = rng.random(len(X)) < expit(centred(X @ coef) + MIDDLE)
    else:
        y = centred(X @ coef) + MIDDLE + size * rng.standard_normal(len(X))
    try:
        table = clone(model).fit(X, y).coef_table(covariance=covariance)
    except Unreadable:
        return drawn(design, model, covariance, rng)
    true = np.append(coef, MIDDLE - X.mean(axis=0) @ coef)[: len(table)]
    covers = ((table["lower"] <= true) & (true <= table["upper"])).to_numpy()
    return len(X), coef == 0, covers, (table["p_value"] < 1 - COVERAGE).to_numpy()


def centred(values):
    return values - values.mean()


RUN = {"max_iter": 30, "tol": 0.0, "loo": False, "risk": True, "keep_data": True}
TALL = (400, 200)
SGD = {"solver": "sgd", "batch_size": 100}
HUBER = TrajectoryHuberRegressor(0.01, **RUN)
UNPENALISED = TrajectoryLogisticRegression(1e6)
SPARSE = TrajectoryLogisticRegression(0.2, l1_ratio=1.0)
LEAST_SQUARES = IterativeRidge(0.0, solver="nesterov", **RUN)
# Models with rows and columns, degrees of freedom of t noise, and iterates.
RUNS = [
    ("lasso, FISTA", TrajectoryLasso(0.05, **RUN), (300, 450), None, (10, 30)),
    ("lasso, FISTA", TrajectoryLasso(0.05, **RUN), TALL, None, (10, 30)),
    ("least squares, Nesterov", LEAST_SQUARES, TALL, None, (10, 30)),
    ("Huber, Nesterov, t3 noise", HUBER, TALL, 3, (10, 30)),
    (
        "Huber, SGD, t3 noise",
        clone(HUBER).set_params(max_iter=10, **SGD),
        *(TALL, 3, (10,)),
    ),
    ("logistic, Nesterov", UNPENALISED, TALL, None, (5, 20)),
    ("logistic, l1, FISTA", SPARSE, (400, 600), None, (5, 20)),
    ("logistic, SGD", TrajectoryLogisticRegression(1.0, **SGD), TALL, None, (5,)),
]


@study()
def coverage(n_repeats=200):
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
    for name, *setting in RUNS:
        rng = np.random.default_rng(0)
        results = [_repeat(*setting, rng) for _ in range(n_repeats)]
        for what in results[0]:
            shares, lengths = np.transpose([result[what] for result in results])
            size = "{} x {}".format(*setting[1])
            numbers = f"{shares.mean():.3f}", f"{np.median(lengths):.3f}"
            yield line(name, size, *what, *numbers)


def correlated(shape, n_active, rng):
    """Covariance, rows, coefficients of signal variance one, and which are not zero."""
    n, p = shape
    beta, chosen = np.zeros(p), rng.choice(p, n_active, replace=False)
    covariance = toeplitz(0.5 ** np.arange(p))
    beta[chosen] = 1 / np.sqrt(covariance[np.ix_(chosen, chosen)].sum())
    return covariance, rows_of("AR(.5)", n, p, rng)[0], beta, chosen


def _repeat(model, shape, degrees, iterates, rng):
    """Share of intervals that cover, and mean length, by iterate and covariance."""
    of_classes = is_classifier(model)
    covariance, X, beta, chosen = correlated(shape, 20 if of_classes else 15, rng)
    if of_classes:
        beta = 2 * beta
        y = rng.random(len(X)) < expit(X @ beta + 1)
        model.set_params(**{**RUN, "max_iter": max(iterates)})
    else:
        beta = np.sqrt(5) * beta
        noise = rng.standard_normal(len(X))
        if degrees is not None:
            noise = rng.standard_t(degrees, len(X))
        y = X @ beta + 3 + noise
    zero = rng.choice(np.flatnonzero(beta == 0), 7, replace=False)
    columns = np.r_[chosen[:7], zero]
    model.set_params(random_state=int(rng.integers(1 << 30))).fit(X, y)
    if not of_classes:
        new, _ = rows_of("AR(.5)", 5, shape[1], rng)
    results = {}
    for t in iterates:
        for name, given in (("known", covariance), ("nodewise", "nodewise")):
            how = {"iteration": t, "covariance": given}
            ends = model.coef_interval(columns, COVERAGE, **how)
            results[str(t), "coefficients", name] = covered(ends, beta[columns])
            if not of_classes:
                ends = model.predict_mean_interval(new, COVERAGE, **how)
                results[str(t), "means", name] = covered(ends, new @ beta + 3)
    return results
