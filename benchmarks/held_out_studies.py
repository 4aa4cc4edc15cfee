"""Criteria and prediction intervals over repeats."""

import numpy as np

from skacv import IterativeRidge, TrajectoryEarlyStoppingCV, TrajectoryLasso
from skacv.risk.intervals import around_predictions, rank_of

from .data import mean_cell, rows_of, true_risk


def criteria(n_repeats=25):
    """What each criterion reads at the iterate that it chooses, and what that costs.

    Gaussian rows, n/20 equal coefficients of squared norm 4, noise level 1,
    TrajectoryLasso(alpha="path", max_iter=20); mean over 25 repeats, standard
    error in brackets. "Estimate / truth" at the chosen iterate, "risk / least" its
    true risk over the least on the path of all rows. "A quarter held out" is what is
    done without any of this: the run sees three quarters of the rows, and the others
    choose.
    """
    yield "| n | p | criterion | estimate / truth | risk / least |"
    yield "|---|---|---|---|---|"
    names = {
        "risk": {},
        "loo": {"loo": True},
        "5 folds": {"cv": 5},
        "10 folds": {"cv": 10},
    }
    for n, p in ((100, 50), (100, 400), (300, 600)):
        found = {name: [] for name in [*names, "a quarter held out"]}
        for seed in range(n_repeats):
            rng = np.random.default_rng([seed, n, p])
            X, beta = rng.standard_normal((n, p)), np.zeros(p)
            beta[: n // 20] = 2 / np.sqrt(n // 20)
            y = X @ beta + rng.standard_normal(n)
            for name, held_out in names.items():
                inner = TrajectoryLasso(
                    "path", max_iter=20, random_state=seed, **held_out
                )
                criterion = "cv" if "cv" in held_out else name
                model = TrajectoryEarlyStoppingCV(inner, criterion=criterion).fit(X, y)
                paths = model.estimator_.coef_path_, model.estimator_.intercept_path_
                truth = true_risk(*paths, beta, 1.0)
                chosen = truth[model.best_iter_]
                found[name].append((model.best_score_ / chosen, chosen / truth.min()))
            estimate, chosen = held_out_quarter(X, y, beta)
            pair = estimate / chosen, chosen / truth.min()
            found["a quarter held out"].append(pair)
        for name, pairs in found.items():
            cells = " | ".join(mean_cell(np.array(column)) for column in zip(*pairs))
            yield f"| {n} | {p} | {name} | {cells} |"


def held_out_quarter(X, y, beta):
    """Error on the last quarter, and true risk, of the iterate that it chooses."""
    n_seen = 3 * len(y) // 4
    model = TrajectoryLasso("path", max_iter=20, risk=False, loo=False)
    model.fit(X[:n_seen], y[:n_seen])
    predictions = X[n_seen:] @ model.coef_path_.T + model.intercept_path_
    errors = ((y[n_seen:, None] - predictions) ** 2).mean(axis=0)
    best = errors.argmin()
    truth = true_risk(model.coef_path_, model.intercept_path_, beta, 1.0)
    return errors[best], truth[best]


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
    yield (
        f"| rows | p | updates | iterate | {' | '.join(names)} "
        "| mean widths, in this order |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
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
            cells = " | ".join(mean_cell(coverage) for coverage in coverages)
            width_cell = " / ".join(f"{width:.2f}" for width in widths.mean(axis=1))
            yield f"| {kind} | {p} | {updates} | {iterate} | {cells} | {width_cell} |"


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
        found.append((t, [coverage_and_width(own, y[100:]) for own in ends]))
    return found


def coverage_and_width(ends, y):
    lower, upper = ends.T
    return np.mean((lower <= y) & (y <= upper)), np.mean(upper - lower)
