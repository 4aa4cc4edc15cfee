"""Is risk_path_ the true risk of every iterate? Beside published figures, and truth."""

import numpy as np

from skacv import IterativeRidge, TrajectoryEarlyStoppingCV, TrajectoryLasso

from ..data import mean_cell, rows_of, sparse_regression, true_risk
from ..framework import header, line
from ..speed.memory_matrix import probed_risk


def published_page(n=10_000, p=15_000):
    """Bellec & Tan's page at full size, with its own ten probes.

    n=10000, p=15000, 1000 nonzero coefficients, ISTA with alpha=.01: the
    published estimate and truth beside ours.
    """
    published = {
        **{0: (25.18, 24.75), 1: (18.60, 18.08), 2: (16.06, 15.48)},
        **{95: (3.94, 3.83), 99: (3.91, 3.82)},
    }
    rng = np.random.default_rng(2025)
    X = rng.standard_normal((n, p))
    beta = np.zeros(p)
    beta[:1000] = 15 / np.sqrt(n)
    y = X @ beta + 1.5 * rng.standard_normal(n)
    signs = rng.choice([-1.0, 1.0], size=(n, 10))
    coef, risk = probed_risk(X, y, (1 + np.sqrt(p / n)) ** -2, 99, signs)
    results, truth = risk(), true_risk(coef, 0.0, beta)
    yield from header(
        "iterate", "published estimate", "ours", "published truth", "ours"
    )
    for t, (estimate, true) in published.items():
        yield line(t, estimate, f"{results[t]:.2f}", true, f"{truth[t]:.2f}")


def published_means(n_repeats=100):
    """Means of truth and estimate, ISTA and FISTA.

    n=200, p=400, ten equal coefficients of squared norm 25, noise level .5,
    alpha=.1, step n / ||X||^2; mean over 100 repeats, standard error of the
    ratio estimate / truth in brackets.
    """
    start = {0: (25.25, 25.43)}
    published = {
        "ista": {**start, 5: (11.67, 11.50), 10: (7.83, 7.71), 29: (1.75, 1.72)},
        "fista": {**start, 5: (10.04, 9.92), 10: (3.51, 3.44), 19: (0.30, 0.31)},
    }
    settings = {"max_iter": 29, "tol": 0, "fit_intercept": False, "loo": False}
    results = {solver: [] for solver in published}
    for seed in range(n_repeats):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((200, 400))
        beta = np.zeros(400)
        beta[:10] = np.sqrt(2.5)
        y = X @ beta + 0.5 * rng.standard_normal(200)
        step_size = 200 / np.linalg.norm(X, 2) ** 2
        for solver in published:
            model = TrajectoryLasso(0.1, solver=solver, risk="exact", **settings)
            model.set_params(step_size=step_size).fit(X, y)
            truth = true_risk(model.coef_path_, 0.0, beta, 0.25)
            results[solver].append((truth, model.risk_path_))
    yield from header(
        "solver",
        "iterate",
        *("published truth", "ours", "published estimate", "ours"),
        "estimate / truth",
    )
    for solver, rows in published.items():
        truth, estimate = np.array(results[solver]).transpose(1, 0, 2)
        for t, (their_truth, their_estimate) in rows.items():
            means = (f"{path[:, t].mean():.2f}" for path in (truth, estimate))
            pairs = zip((their_truth, their_estimate), means)
            ratio = mean_cell(estimate[:, t] / truth[:, t])
            yield line(solver, t, *(cell for pair in pairs for cell in pair), ratio)


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
    for number, kind in enumerate(kinds):
        for p in (150, 450):
            results = {solver: [] for solver in models}
            for seed in range(n_repeats):
                rng = np.random.default_rng([seed, number, p])
                X, root = rows_of(kind, 300, p, rng)
                for solver, row in ratios_on(X, root, rng, models).items():
                    results[solver].append(row)
            for solver, rows in results.items():
                *ratios, share = np.transpose(rows)
                cells = map(mean_cell, ratios)
                yield line(kind, p, solver, *cells, f"{share.mean():.2f}")


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


def few_rows(n_repeats=50):
    """Few rows, many features: the chosen iterate's estimate over its true risk.

    n=35, p=4000, five coefficients, Gaussian rows, 50 repeats. Traces are
    exact, no probes. The least of a noisy path is optimistic.
    """
    lasso_path = TrajectoryLasso("path", max_iter=20)
    models = {
        'TrajectoryLasso(alpha="path", max_iter=20)': lasso_path,
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
            assert stopped.estimator_.n_probes_ == 0
            assert np.isfinite(stopped.path_).all()
            truth = true_risk(stopped.coef_, stopped.intercept_, beta)
            null = true_risk(np.zeros(4000), y.mean(), beta)
            ratios.append(stopped.best_score_ / truth)
            gains.append(truth / null)
        spread = np.mean(ratios), np.std(ratios, ddof=1), min(ratios), max(ratios)
        yield line(name, *(f"{value:.2f}" for value in (*spread, np.mean(gains))))


def probes(n_repeats=60):
    """Error of the probes, compared with the error of the estimate itself.

    Exact traces and the probes of risk="auto" (at least ten, more where their
    standard error asks for it), ISTA with alpha=.01 sqrt(2000 / n) and the
    signal of Bellec & Tan's page; relative standard deviations.
    """
    yield from header(
        *("n", "p", "iterate", "sqrt(2/n)"),
        *("exact estimate / truth, s.d.", "probes / exact, s.d.", "claimed"),
    )
    for n, p in ((200, 300), (400, 600)):
        rows = [5, 20, 50, 100]
        intrinsic, extra, claimed = [], [], []
        for seed in range(n_repeats):
            X, y, beta = sparse_regression(n, p, n // 10, seed)
            model = TrajectoryLasso(
                0.01 * np.sqrt(2000 / n), solver="ista", max_iter=100, tol=0, loo=False
            )
            exact = model.set_params(risk="exact").fit(X, y).risk_path_[rows]
            model.set_params(risk="auto", random_state=seed).fit(X, y)
            probed = model.risk_path_[rows]
            coef, intercept = model.coef_path_[rows], model.intercept_path_[rows]
            intrinsic.append(exact / true_risk(coef, intercept, beta))
            extra.append(probed / exact - 1)
            claimed.append(model.risk_mc_se_path_[rows] / probed)
        spread = np.std(intrinsic, axis=0, ddof=1)
        extra = np.sqrt(np.mean(np.square(extra), axis=0))
        claimed = np.sqrt(np.mean(np.square(claimed), axis=0))
        for t, *values in zip(rows, spread, extra, claimed):
            yield line(n, p, t, *(f"{v:.3f}" for v in (np.sqrt(2 / n), *values)))
