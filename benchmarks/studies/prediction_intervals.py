"""Do prediction intervals cover as often as they say, at every iterate?"""

import numpy as np

from skacv import IterativeRidge, TrajectoryLasso
from skacv.risk.intervals import around_predictions, rank_of

from ..data import covered, mean_cell, rows_of, true_risk
from ..framework import header, line

METHODS = ("jackknife+", "loo", "cv", "risk")


def intervals(n_repeats=200):
    """Coverage of prediction intervals, nominal .9, and their mean width.

    n=100, ten equal coefficients of squared norm 4, noise level 1, intercept
    fitted; 500 unseen rows in each of 200 repeats, standard error over repeats in
    brackets. With 100 rows the rank taken is 91 of 101, .901; "cv" has five folds of
    consecutive rows. "Best" is the iterate
    of least true risk, "chosen" that of least loo_path_, in brackets the median
    one; "training" the prediction plus and minus a quantile of the training
    residuals. The late iterates of Nesterov with p = n are unstable; the two groups
    of rows live on a half of the columns each.
    """
    lasso = TrajectoryLasso(0.1)
    settings = [
        ("Gaussian", 150, "GD", IterativeRidge(0.0)),
        ("Gaussian", 150, "FISTA, alpha=.1", lasso),
        ("Gaussian", 100, "Nesterov", IterativeRidge(0.0, solver="nesterov")),
        ("two groups", 150, "GD", IterativeRidge(0.0)),
        ("two groups", 150, "FISTA, alpha=.1", lasso),
    ]
    names = [*METHODS, "training"]
    columns = "rows", "p", "updates", "iterate"
    yield from header(*columns, *names, "mean widths, in this order")
    for kind, p, updates, model in settings:
        model.set_params(max_iter=200, tol=0, loo=True, risk="exact", keep_data=True)
        model.set_params(cv=5)
        found = [
            intervals_on(kind, p, model, np.random.default_rng([seed, p]))
            for seed in range(n_repeats)
        ]
        for row, iterate in enumerate(("5", "20", "200", "best", "chosen")):
            iterates, ends = zip(*[repeat[row] for repeat in found])
            if row >= 3:
                iterate += f" ({np.median(iterates):.0f})"
            coverages, widths = np.transpose(ends)  # (n_methods, n_repeats) each
            width_cell = " / ".join(f"{width:.2f}" for width in widths.mean(axis=1))
            cells = *map(mean_cell, coverages), width_cell
            yield line(kind, p, updates, iterate, *cells)


def intervals_on(kind, p, model, rng):
    """Iterates, and coverage and mean width of their intervals by each method."""
    X, root = rows_of(kind, 600, p, rng)
    beta = np.zeros(p)
    beta[:10] = 2 / np.sqrt(10)
    y = X @ beta + rng.standard_normal(600) + 2.0
    model.fit(X[:100], y[:100])
    away = model.coef_path_ - beta
    away = away if root is None else away @ root
    best = int(true_risk(away, model.intercept_path_ - 2.0, 0.0).argmin())
    found = []
    for t in (5, 20, 200, best, int(model.loo_path_.argmin())):
        iterate = model.at_iteration(t)
        ends = [iterate.predict_interval(X[100:], method=name) for name in METHODS]
        residuals = y[:100] - iterate.predict(X[:100])
        rank = rank_of(0.9, len(residuals))
        ends.append(around_predictions(iterate.predict(X[100:]), residuals, rank))
        found.append((t, [covered(own, y[100:]) for own in ends]))
    return found
