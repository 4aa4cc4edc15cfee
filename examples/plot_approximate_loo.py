"""
Leave-one-out of a sparse model, approximated six ways as columns grow
======================================================================

Logistic regression with an l1 penalty, 100 rows, 25 to 1600 Gaussian columns of which
ten matter. What would the model predict for row i, had it been fitted without it? The
answer, by refits, is compared with

* the Newton step on the support, that is, on the coefficients that are nonzero
  (``approximate_loo``; "sparse ACV" of Stephenson & Broderick);
* the infinitesimal jackknife on the support (``method="ij"``);
* iterative approximate cross-validation of Luo, Ren & Barber, at the last iterate of
  FISTA, as published (``loo_correction=False``) and corrected (``loo_path_``). Runs
  without a row have their own support;
* the Newton step on all columns, for a penalty that is smoothed to have second
  derivatives: the sum of the roots of b^2 + e^2. Without a support there is no other;
* the same with the local quadratic approximation (LQA) of Fan & Li, whose curvature is
  1 / root(b^2 + e^2): where b is not zero the curvature of the norm itself is zero.

The upper panel shows the mean error of the held-out linear predictor of a row, divided
by the mean change that leaving out the row makes: at one, an estimate is as good as the
fitted model itself. The lower panel shows seconds beside those of refits. Of iterative
approximate cross-validation they include the run, and of the last two the fit of the
smoothed model.

* The Newton step on the support, which ``approximate_loo`` makes, takes by far the
  least time. It is off by about a tenth of the change, since the support changes
  without some of the rows.
* The jackknife is as fast and about twice as far off.
* Iterative approximate cross-validation is off by less than a hundredth at every number
  of columns, since its runs have their own support, and corrected by next to nothing.
  It takes as long as these refits, or longer with many columns: it pays off where all
  iterates are wanted, or with more rows.
* Smoothing gives what the support gives, in more time.
* LQA is hardly better than no estimate: it sees a curvature of the penalty that is not
  there, so that rows seem to matter less than they do.

Run ``python examples/plot_approximate_loo.py --output DIR`` to write the figure. It
takes about a minute.

References: Stephenson and Broderick (2020), "Approximate cross-validation in high
dimensions with guarantees", AISTATS, arXiv:1905.13657; Luo, Ren and Barber (2023),
"Iterative approximate cross-validation", ICML, arXiv:2303.02732; Fan and Li (2001),
"Variable selection via nonconcave penalized likelihood and its oracle properties",
JASA 96.
"""

import warnings
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.fixes import parse_version
from threadpoolctl import threadpool_limits

from skacv import TrajectoryLogisticRegression, approximate_loo
from skacv.optim.arrays import design_of
from skacv.optim.losses import Logistic
from skacv.optim.penalties import L1
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import Nesterov
from skacv.optim.trajectory import Phase
from skacv.risk.held_out_rows import LeaveOutRule, LeftOutRows
from skacv.risk.left_out.linearised import linearised_predictors

# Versions of scikit-learn name the penalty in two ways.
IS_RECENT = parse_version(sklearn.__version__) >= parse_version("1.8")
LASSO = {"l1_ratio": 1} if IS_RECENT else {"penalty": "l1"}
COEF = np.repeat([2.0, 1.0], 5)
COLUMNS = 25, 50, 100, 200, 400, 800, 1600
SHARE = 0.3  # of the smallest strength at which all coefficients are zero
SMOOTHING = 1e-3
STYLES = {
    "Newton step, support": {"color": "#0072B2", "marker": "o"},
    "jackknife, support": {"color": "#E69F00", "marker": "o"},
    "IACV, published": {"color": "#D55E00", "marker": "s"},
    "loo_path_": {"color": "#009E73", "marker": "s"},
    "Newton step, smoothed": {"color": "#CC79A7", "marker": "^"},
    "LQA": {"color": "#808080", "marker": "^"},
    "refits": {"color": "black", "marker": "."},
}


def drawn(n, p, rng):
    X = rng.standard_normal((n, p))
    return X, (rng.random(n) < expit(X[:, : len(COEF)] @ COEF)).astype(int)


def smoothed_fit(X, y, strength, tol=1e-8, max_iter=2000):
    """Coefficients of the smoothed penalty, by local quadratic approximations.

    The penalty is replaced by a quadratic function with the same value and slope at the
    last coefficients, again and again, and the loss by that of a Newton step.
    """
    coef = X.T @ (y - 0.5) / len(y)
    for _ in range(max_iter):
        chance = expit(X @ coef)
        curvature = chance * (1 - chance)
        response = X @ coef + (y - chance) / curvature
        scale = np.sqrt(coef**2 + SMOOTHING**2) / strength
        # n equations in place of p, since there is a ridge for every column.
        covariance = (X * scale) @ X.T + np.diag(1 / curvature)
        former, coef = coef, scale * (X.T @ np.linalg.solve(covariance, response))
        if np.abs(coef - former).max() < tol * np.abs(coef).max():
            break
    return coef


def newton_step(X, y, coef, ridge):
    """Held-out linear predictors by one step, for a ridge with a strength by column."""
    predictor, chance = X @ coef, expit(X @ coef)
    curvature = chance * (1 - chance)
    prior = (X / ridge) @ X.T
    remaining = np.linalg.solve(prior + np.diag(1 / curvature), prior)
    leverage = np.diag(prior) - (prior * remaining.T).sum(axis=1)
    return predictor + (chance - y) * leverage / (1 - curvature * leverage)


def published(X, y, C, step_size, max_iter):
    """Held-out predictors by linearised runs, at the last iterate of FISTA.

    ``loo_path_`` with ``loo_correction=False`` is the same with more rows than columns,
    and exact with fewer.
    """
    (n, p), target = X.shape, y[:, None].astype(float)
    problem = Problem(design_of(X), target, np.full((n, 1), 1 / n), Logistic())
    plan = [Phase(L1(1 / (C * n)), Nesterov(step_size), max_iter)]
    trajectory = run(problem, plan, np.zeros((1, p, 1)), tol=-1)
    left_out = LeftOutRows.of(problem, np.arange(n), LeaveOutRule(is_sum=True))
    predictors, _, _ = linearised_predictors(
        problem, trajectory, left_out, n, map, correction=False
    )
    return predictors[-1, :, 0]


def compared(n, p, max_iter, seed):
    """Held-out predictors of every way with their seconds, and those of the fit."""
    X, y = drawn(n, p, np.random.default_rng([seed, p]))
    C = 1 / (SHARE * np.abs(X.T @ (y - 0.5)).max())
    model = LogisticRegression(
        **LASSO,
        C=C,
        solver="liblinear",
        fit_intercept=False,
        tol=1e-8,
        max_iter=100_000,
        random_state=0,
    ).fit(X, y)
    fista = TrajectoryLogisticRegression(
        C,
        l1_ratio=1,
        solver="fista",
        fit_intercept=False,
        max_iter=max_iter,
        tol=0,
        risk=False,
        loo=True,
    )
    step_size = clone(fista).set_params(loo=False, max_iter=1).fit(X, y).step_size_

    def refits():
        stay = ~np.eye(n, dtype=bool)
        fits = [clone(model).fit(X[rows], y[rows]) for rows in stay]
        return np.array([fit.coef_[0] @ x for fit, x in zip(fits, X)])

    def smoothed(is_lqa):
        coef = smoothed_fit(X, y, 1 / C)
        power = -0.5 if is_lqa else -1.5
        ridge = (coef**2 + SMOOTHING**2) ** power / C
        return newton_step(X, y, coef, ridge if is_lqa else ridge * SMOOTHING**2)

    ways = {
        "Newton step, support": lambda: approximate_loo(model, X, y).predictions,
        "jackknife, support": lambda: (
            approximate_loo(model, X, y, method="ij").predictions
        ),
        "IACV, published": lambda: published(X, y, C, step_size, max_iter),
        "loo_path_": lambda: np.asarray(fista.fit(X, y).loo_prediction_path_[-1]),
        "Newton step, smoothed": lambda: smoothed(False),
        "LQA": lambda: smoothed(True),
        "refits": refits,
    }
    results = {}
    for name, way in ways.items():
        begun = perf_counter()
        predictor = way()
        results[name] = predictor, perf_counter() - begun
    truth = results["refits"][0]
    change = np.abs(truth - X @ model.coef_[0]).mean()
    errors = {k: np.abs(z - truth).mean() / change for k, (z, _) in results.items()}
    seconds = {k: took for k, (_, took) in results.items()}
    return errors, seconds, np.count_nonzero(model.coef_)


def draw(errors, seconds, columns):
    figure, axes = plt.subplots(
        2, 1, figsize=(7, 7.4), sharex=True, constrained_layout=True
    )
    for name, style in STYLES.items():
        if name != "refits":
            error = [e[name] for e in errors]
            axes[0].plot(columns, error, label=name, linewidth=2, **style)
        took = [s[name] for s in seconds]
        axes[1].plot(columns, took, label=name, linewidth=2, **style)
    axes[0].axhline(1, color="black", linewidth=1)
    axes[0].set_ylabel("error / change by leaving out")
    axes[1].set(ylabel="seconds", xlabel="columns")
    for ax in axes:
        ax.set(xscale="log", yscale="log")
        ax.set_xticks(columns, [f"{p}" for p in columns])
        ax.minorticks_off()
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(
        *axes[1].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=3,
        frameon=False,
    )
    return figure


@threadpool_limits.wrap(limits=1)
def main(n=100, columns=COLUMNS, max_iter=500, n_repeats=1, output=None):
    """Print errors and seconds, medians over repeats, and draw them."""
    errors, seconds, sizes = [], [], []
    for p in columns:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are what the figure is about
            results = [compared(n, p, max_iter, seed) for seed in range(n_repeats)]
        for table, k in ((errors, 0), (seconds, 1)):
            table.append(
                {name: np.median([r[k][name] for r in results]) for name in STYLES}
            )
        sizes.append(np.median([r[2] for r in results]))
    for title, table in (("Error / change", errors), ("Seconds", seconds)):
        print(f"{title}, {n} rows:")
        print(f"{'columns':26}" + "".join(f"{p:>9}" for p in columns))
        print(f"{'nonzero':26}" + "".join(f"{size:9.0f}" for size in sizes))
        for name in STYLES:
            if name != "refits" or table is seconds:
                cells = "".join(f"{row[name]:9.2g}" for row in table)
                print(f"{name:26}{cells}")
        print()
    figure = draw(errors, seconds, columns)
    if output is not None:
        path = Path(output) / "approximate_loo.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"Figure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
