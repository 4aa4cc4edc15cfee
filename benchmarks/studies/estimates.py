"""Is an estimate the true risk of its iterate, fixed beforehand or chosen by it?"""

from collections import defaultdict
from itertools import product

import numpy as np

from skacv import IterativeRidge, TrajectoryEarlyStoppingCV, TrajectoryLasso

from ..data import mean_cell, rows_of, sparse_regression, true_risk
from ..framework import header, line, study

OFF = {"risk": False, "loo": False, "cv": None}
FOLDS = {"5 folds": {"cv": 5}, "10 folds": {"cv": 10}}
CRITERIA = {"risk": {"risk": "auto"}, "loo": {"loo": True}, **FOLDS}


@study()
def criteria(n_repeats=25):
    """What each criterion estimates at the iterate that it chooses, and the cost.

    Gaussian rows, n/20 equal coefficients of squared norm 4, noise level 1,
    TrajectoryLasso(alpha="path", max_iter=20); mean over 25 repeats, standard
    error in brackets. "Estimate / truth" at the chosen iterate, "risk / least" its
    true risk over the least on the path of all rows. "A quarter held out" is what is
    done without any of this: the run sees three quarters of the rows, and the others
    choose.
    """
    yield from header("n", "p", "criterion", "estimate / truth", "risk / least")
    for n, p in ((100, 50), (100, 400), (300, 600)):
        results = defaultdict(list)
        for seed in range(n_repeats):
            rng = np.random.default_rng([seed, n, p])
            X, beta = rng.standard_normal((n, p)), np.zeros(p)
            beta[: n // 20] = 2 / np.sqrt(n // 20)
            y = X @ beta + rng.standard_normal(n)
            for name, switches in CRITERIA.items():
                inner = TrajectoryLasso("path", max_iter=20, random_state=seed)
                inner.set_params(**{**OFF, **switches})
                criterion = "cv" if name in FOLDS else name
                model = TrajectoryEarlyStoppingCV(inner, criterion=criterion).fit(X, y)
                truth = risks_along(model.estimator_, beta)
                chosen = truth[model.best_iter_]
                results[name].append((model.best_score_ / chosen, chosen / truth.min()))
            estimate, chosen = held_out_quarter(X, y, beta)
            pair = estimate / chosen, chosen / truth.min()
            results["a quarter held out"].append(pair)
        for name, pairs in results.items():
            yield line(n, p, name, *map(mean_cell, np.transpose(pairs)))


def risks_along(model, beta):
    """The true risk of every iterate, noise level 1."""
    return true_risk(model.coef_path_, model.intercept_path_, beta, 1.0)


def held_out_quarter(X, y, beta):
    """Error on the last quarter, and true risk, of the iterate that it chooses."""
    n_seen = 3 * len(y) // 4
    model = TrajectoryLasso("path", max_iter=20, risk=False, loo=False)
    model.fit(X[:n_seen], y[:n_seen])
    predictions = X[n_seen:] @ model.coef_path_.T + model.intercept_path_
    errors = ((y[n_seen:, None] - predictions) ** 2).mean(axis=0)
    return errors.min(), risks_along(model, beta)[errors.argmin()]


@study()
def designs(n_repeats=200):
    """Mean of estimate / truth by kind of rows, without row scales and with them.

    n=300, coefficients of squared norm 4, noise level 1, intercept fitted, GD
    and ISTA with alpha=.05, exact traces; 200 repeats, standard error in
    brackets. "Even" is risk_row_scales=False, the published estimate, which
    gives every row the leverage of the average row; "scaled" the default, with
    the mean row_scale_share_ in the last column. The two groups of rows live on
    a half of the columns each, one of twice the size: their leverages do not
    follow their norms by one factor. (Published for GD at iterate
    10, at a signal of its own: Gaussian 1.03 / 1.03, AR(.5) 1.02 / 1.03,
    Rademacher 1.00 / 1.01, t5 rows .86 / .77 at p=150 / p=450.)
    """
    ratios = [f"t={t}, {how}" for t in (10, 30) for how in ("even", "scaled")]
    yield from header("rows", "p", "solver", *ratios, "share")
    kinds = ("Gaussian", "AR(.5)", "Rademacher", "t5 rows", "t3 rows", "two groups")
    models = {
        "GD": IterativeRidge(0.0, max_iter=30, tol=0),
        "ISTA": TrajectoryLasso(0.05, solver="ista", max_iter=30, tol=0, risk="exact"),
    }
    for (number, kind), p in product(enumerate(kinds), (150, 450)):
        results = {solver: [] for solver in models}
        for seed in range(n_repeats):
            rng = np.random.default_rng([seed, number, p])
            X, root = rows_of(kind, 300, p, rng)
            for solver, row in ratios_on(X, root, rng, models).items():
                results[solver].append(row)
        for solver, rows in results.items():
            *ratios, share = np.transpose(rows)
            yield line(kind, p, solver, *map(mean_cell, ratios), f"{share.mean():.2f}")


def ratios_on(X, root, rng, models):
    """Estimate / truth at iterates 10 and 30, even and scaled, and the share."""
    n, p = X.shape
    beta = np.zeros(p)
    beta[:20] = 2 / np.sqrt(20)
    y = X @ beta + rng.standard_normal(n) + 2.0
    results = {}
    for solver, model in models.items():
        even = model.set_params(risk_row_scales=False).fit(X, y).risk_path_
        scaled = model.set_params(risk_row_scales=True).fit(X, y).risk_path_
        error = model.coef_path_ - beta
        error = error if root is None else error @ root
        truth = (error**2).sum(axis=1) + (model.intercept_path_ - 2.0) ** 2 + 1
        ratios = [path[t] / truth[t] for t in (10, 30) for path in (even, scaled)]
        results[solver] = [*ratios, model.row_scale_share_]
    return results


@study()
def few_rows(n_repeats=50):
    """Few rows, many features: the chosen iterate's estimate over its true risk.

    n=35, p=4000, five coefficients, Gaussian rows, 50 repeats. Traces are
    exact, no probes. The least of a noisy path is optimistic.
    """
    models = {
        'TrajectoryLasso(alpha="path", max_iter=20)': TrajectoryLasso(
            "path", max_iter=20
        ),
        "TrajectoryLasso(alpha=0.5)": TrajectoryLasso(0.5),
        "IterativeRidge(alpha=0)": IterativeRidge(0.0),
    }
    yield from header(
        "estimator",
        *("mean best_score_ / true risk", "spread (s.d.)", "min", "max"),
        "mean true risk / null model's",
    )
    for name, model in models.items():
        ratios, gains = [], []
        for seed in range(n_repeats):
            X, y, beta = sparse_regression(35, 4000, 5, seed)
            model.set_params(random_state=seed)
            stopped = TrajectoryEarlyStoppingCV(model, criterion="risk").fit(X, y)
            truth = true_risk(stopped.coef_, stopped.intercept_, beta)
            null = true_risk(np.zeros(4000), y.mean(), beta)
            ratios.append(stopped.best_score_ / truth)
            gains.append(truth / null)
        spread = np.mean(ratios), np.std(ratios, ddof=1), min(ratios), max(ratios)
        yield line(name, *(f"{value:.2f}" for value in (*spread, np.mean(gains))))
