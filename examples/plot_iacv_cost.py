"""
When does iterative approximate cross-validation save time?
===========================================================

Leave-one-out of every iterate of a logistic regression, all rows left out, as rows
grow: 20 or 200 Gaussian columns, 200 updates of gradient descent with a ridge penalty.
The exact answer, a run without each row, is computed in two ways: by n fits in turn,
and by runs side by side, which share every pass over X (``cv=LeaveOneOut()``). It is
compared with the linearised runs of Luo, Ren & Barber, as published, and with
``loo_path_``, where they are corrected.

An update of all exact runs takes two products of n rows with p columns for every row,
2 n^2 p in all, and n^2 derivatives; one of the linearised runs takes the Hessian and a
product with it for every row, 2 n p^2. So the ratio of their seconds is to fall like
p/n. The upper panels show it, with five folds for comparison.

* Fits in turn take longest by far. Most of that is not won by approximation: runs side
  by side are exact, and skip what every fit repeats.
* Linearising as published is no cheaper than exact runs side by side while rows are
  few. Beyond some rows for every column it saves more and more, along the dashed line.
* The correction evaluates the derivatives of all runs at a fifth of the updates, which
  again takes time of the order of n^2, so ``loo_path_`` levels off. Where linearising
  would save too little it runs exactly: there its line is near one, and its error is
  rounding.
* Five folds cost little beside all of these, but their copies have fewer rows.

The lower panels show the largest relative error over the path; errors below 1e-10 are
not drawn. It falls once there are more than twice as many rows as columns, and is
smaller by orders of magnitude if corrected. With 200 columns the published estimate is
at its worst, off by a percent, about where it begins to save time.

The seconds of all ways are measured in turn in one process, on one thread; those of
fits in turn on a few rows, and multiplied. Run ``python examples/plot_iacv_cost.py
--output DIR`` to write the figure. It takes about a minute.

Reference: Luo, Ren and Barber (2023), "Iterative approximate cross-validation",
ICML, arXiv:2303.02732.
"""

from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.model_selection import LeaveOneOut
from threadpoolctl import threadpool_limits

from skacv import TrajectoryLogisticRegression
from skacv.optim.arrays import design_of
from skacv.optim.losses import Logistic
from skacv.optim.penalties import SquaredL2
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import GradientDescent
from skacv.optim.trajectory import Phase
from skacv.risk.held_out_rows import LeaveOutRule, LeftOutRows
from skacv.risk.left_out.linearised import linearised_predictors

SIZES = {20: (50, 100, 200, 400, 800, 1600), 200: (50, 100, 200, 400, 800)}
N_NONZERO = 5
SMALLEST_SHOWN = 1e-10
STYLES = {
    "published": {"color": "#0072B2", "marker": "o"},
    "loo_path_": {"color": "#009E73", "marker": "o"},
    "fits in turn": {"color": "#D55E00", "marker": "s"},
    "five folds": {"color": "#808080", "marker": "."},
}


def drawn(n, p, rng):
    """Labels drawn by a logistic model of Gaussian rows."""
    X, coef = rng.standard_normal((n, p)), np.zeros(p)
    coef[:N_NONZERO] = rng.standard_normal(N_NONZERO)
    return X, (rng.random(n) < expit(X @ coef)).astype(int)


def published(X, y, step_size, max_iter):
    """Leave-one-out of all iterates by linearised runs, however many columns.

    ``loo_path_`` with ``loo_correction=False`` is the same with more rows than columns,
    and exact with fewer.
    """
    (n, p), target = X.shape, y[:, None].astype(float)
    problem = Problem(design_of(X), target, np.full((n, 1), 1 / n), Logistic())
    plan = [Phase(SquaredL2(1 / n), GradientDescent(step_size), max_iter)]
    trajectory = run(problem, plan, np.zeros((1, p, 1)), tol=-1)
    left_out = LeftOutRows.of(problem, np.arange(n), LeaveOutRule(is_sum=True))
    predictors, _, _ = linearised_predictors(
        problem, trajectory, left_out, n, map, correction=False
    )
    return Logistic().value(target, predictors).mean(axis=(1, 2))


def timed(call, n_repeats):
    """The fewest seconds of a few calls, and what the last returned."""
    seconds = []
    for _ in range(n_repeats):
        begun = perf_counter()
        result = call()
        seconds.append(perf_counter() - begun)
    return min(seconds), result


def compared(n, p, max_iter, n_refits):
    """Seconds of every way, and the largest relative errors of the paths."""
    X, y = drawn(n, p, np.random.default_rng([n, p]))
    base = TrajectoryLogisticRegression(
        C=1.0,
        solver="gd",
        fit_intercept=False,
        max_iter=max_iter,
        tol=0,
        risk=False,
        loo=False,
    )
    corrected = clone(base).set_params(loo=True)
    exact = clone(base).set_params(cv=LeaveOneOut())
    folds, refit = clone(base).set_params(cv=5), clone(base)
    step_size = base.fit(X, y).step_size_
    rows = np.arange(min(n, n_refits))

    def fits_in_turn():
        for row in rows:
            refit.fit(np.delete(X, row, axis=0), np.delete(y, row))

    ways = {
        "fits in turn": fits_in_turn,
        "side by side": lambda: exact.fit(X, y).cv_path_,
        "published": lambda: published(X, y, step_size, max_iter),
        "loo_path_": lambda: corrected.fit(X, y).loo_path_,
        "five folds": lambda: folds.fit(X, y).cv_path_,
    }
    timings = {name: timed(way, 2 if n < 400 else 1) for name, way in ways.items()}
    seconds = {name: took for name, (took, _) in timings.items()}
    seconds["fits in turn"] *= n / len(rows)
    _, truth = timings["side by side"]
    errors = {
        name: np.abs(timings[name][1] / truth - 1).max()
        for name in ("published", "loo_path_")
    }
    return seconds, errors


def draw(axes, p, sizes, seconds, errors):
    """One number of columns: seconds over those of exact runs, and errors."""
    exact = np.array([s["side by side"] for s in seconds])
    for name, style in STYLES.items():
        ratio = np.array([s[name] for s in seconds]) / exact
        axes[0].plot(sizes, ratio, label=name, linewidth=2, **style)
        if name in errors[0]:
            error = np.array([e[name] for e in errors])
            error[error < SMALLEST_SHOWN] = np.nan
            axes[1].plot(sizes, error, linewidth=2, **style)
    axes[0].axhline(1, color="black", linewidth=1)
    axes[0].plot(sizes, p / np.array(sizes), "k--", linewidth=1, label="columns / rows")
    axes[0].set_title(f"{p} columns", loc="left", fontsize="medium")
    for ax in axes:
        ax.set(xscale="log", yscale="log")
        ax.set_xticks(sizes, [f"{n}" for n in sizes])
        ax.minorticks_off()
        ax.spines[["top", "right"]].set_visible(False)
    axes[1].set_xlabel("rows")


@threadpool_limits.wrap(limits=1)
def main(sizes=SIZES, max_iter=200, n_refits=5, output=None):
    """Print seconds, ratios and errors, and draw the latter two."""
    figure, axes = plt.subplots(
        2,
        len(sizes),
        figsize=(7, 6),
        sharex="col",
        sharey="row",
        constrained_layout=True,
        squeeze=False,
    )
    names = "fits in turn", "side by side", "published", "loo_path_", "five folds"
    print("Seconds of leave-one-out of all iterates, and the largest relative error:\n")
    print(
        f"{'columns':>8}{'rows':>6}" + "".join(f"{name:>14}" for name in names), end=""
    )
    print(f"{'published':>12}{'loo_path_':>12}")
    for column, (p, numbers) in zip(axes.T, sizes.items()):
        results = [compared(n, p, max_iter, n_refits) for n in numbers]
        seconds, errors = zip(*results)
        for n, took, error in zip(numbers, seconds, errors):
            print(
                f"{p:8}{n:6}" + "".join(f"{took[name]:14.3f}" for name in names), end=""
            )
            print(f"{error['published']:12.1e}{error['loo_path_']:12.1e}")
        draw(column, p, numbers, seconds, errors)
    axes[0, 0].set_ylabel("seconds / exact, side by side")
    axes[1, 0].set_ylabel("largest relative error")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=3,
        frameon=False,
    )
    if output is not None:
        path = Path(output) / "iacv_cost.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
