"""
Leave-one-out along a run of logistic regression, approximated five ways
========================================================================

The experiment of Luo, Ren & Barber: logistic regression on 20 Gaussian features, five
of which matter, by gradient descent, proximal gradient descent (l1) and stochastic
gradient descent. What would iterate t be without row i? The exact answer, a run without
each row, is compared with five approximations:

* "IACV": each such run is linearised around the recorded one, as published;
* "IACV, corrected": what linearising neglects is evaluated at some iterations and
  added, as in ``loo_path_``;
* "NS": one Newton step from the current iterate, without the row;
* "IJ": the same with the Hessian of all rows, the infinitesimal jackknife;
* "baseline": the iterate itself.

Err_Approx is the mean distance of the coefficients without a row from the exact ones
(first row of the figure), and Err_CV the relative error of the leave-one-out log loss
(second row). Seconds are those of all iterates up to t.

NS and IJ are made for a model that has converged. IACV is good from the first iterate
on: at the early iterate of the table its coefficients are several times as close to the
exact ones as those of NS and IJ. Once gradient descent has converged, NS is as good as
IACV and IJ is worse. SGD does not converge, and there IACV stays the best of the three.
The correction lowers the error of IACV by orders of magnitude in gradient descent, and
in SGD by less. With so few rows left out, the exact runs take about as long as IACV.

By default runs are shorter than the published ones (1000 updates instead of 7000, 3000
of SGD instead of 100,000), only 50 rows are left out, and there are three repeats:
that takes about half a minute. ``--full`` is the published size, once, and takes a
quarter of an hour. One iterate of SGD is ten batches. All run on one thread.

Run ``python examples/plot_iacv.py --output DIR`` to write the figure.

Reference: Luo, Ren and Barber (2023), "Iterative approximate cross-validation",
ICML, arXiv:2303.02732.
"""

from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from skacv.optim.arrays import design_of
from skacv.optim.losses import Logistic
from skacv.optim.penalties import L1, SquaredL2
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import GradientDescent
from skacv.optim.trajectory import Phase, iterate
from skacv.optim.updates import Pass, ProximalGradient
from skacv.risk.held_out_rows import LeaveOutRule, LeftOutRows
from skacv.risk.left_out import linearised as iacv
from skacv.risk.left_out.linearised import replayed_steps
from skacv.risk.left_out.replicas import replayed
from skacv.risk.left_out.row_replicas import RowReplicas

N_FEATURES, N_NONZERO = 20, 5
STRENGTH, STEP_SIZE = 1e-6, 0.5
BATCHES_AN_ITERATE, FIRST_HALVING = 10, 1000
EARLY = 50
SMALLEST_SHOWN = 1e-8
FULL = {"n_updates": 7000, "n_batches": 100_000, "n_left_out": None, "n_repeats": 1}
STYLES = {
    "exact": {"color": "black", "linewidth": 1.4},
    "IACV": {"color": "#0072B2", "linewidth": 2.2},
    "IACV, corrected": {"color": "#009E73", "linewidth": 2.2},
    "NS": {"color": "#D55E00", "dashes": (5, 2), "linewidth": 1.8},
    "IJ": {"color": "#E69F00", "dashes": (1, 1), "linewidth": 2},
    "baseline": {"color": "#CC79A7", "linewidth": 1.8},
}
METHODS = list(STYLES)[1:]
MEASURES = ["Err_Approx", "Err_CV", "seconds"]
LABELS = {
    "Err_Approx": "distance of coefficients",
    "Err_CV": "relative error of the loss",
    "seconds": "seconds",
}


@dataclass(frozen=True)
class HalvedBatches:
    """Random batches; the step is halved after 1000, 3000, 7000, ... of them.

    Every row is in a batch by the toss of a coin, ``mean_size`` rows on average.
    """

    step_size: float
    n_rows: int
    mean_size: int

    def updates(self):
        rng = np.random.default_rng(0)
        share = self.mean_size / self.n_rows
        for number in count():
            draws = rng.random((BATCHES_AN_ITERATE, self.n_rows)) < share
            n_halved = int(np.log2(BATCHES_AN_ITERATE * number / FIRST_HALVING + 1))
            batches = tuple(map(np.flatnonzero, draws))
            yield Pass(ProximalGradient(self.step_size / 2**n_halved), batches)

    @staticmethod
    def largest_stable_step(smoothness):
        return 2 / smoothness


@dataclass(frozen=True)
class Setting:
    """Data and algorithm; ``n_an_iterate`` updates lead to the next iterate."""

    n_rows: int
    penalty: object
    schedule: object
    n_iterates: int
    n_an_iterate: int = 1


def settings(n_small, n_large, n_updates, n_batches):
    """All that is compared, by name."""
    ridge, lasso = SquaredL2(STRENGTH), L1(STRENGTH)
    descent = GradientDescent(STEP_SIZE)
    result = {}
    for n in (n_small, n_large):
        result[f"GD, n={n}"] = Setting(n, ridge, descent, n_updates)
        result[f"proximal GD, n={n}"] = Setting(n, lasso, descent, n_updates)
    for size in (n_large // 10, 2 * n_large // 5):
        result[f"SGD, n={n_large}, batches of {size}"] = Setting(
            n_large,
            ridge,
            HalvedBatches(STEP_SIZE, n_large, size),
            n_batches // BATCHES_AN_ITERATE,
            BATCHES_AN_ITERATE,
        )
    return result


def logistic_problem(n, rng):
    """Labels drawn by a logistic model of Gaussian rows."""
    X = rng.standard_normal((n, N_FEATURES))
    coef = np.zeros((N_FEATURES, 1))
    coef[:N_NONZERO, 0] = rng.standard_normal(N_NONZERO)
    target = (rng.random((n, 1)) < expit(X @ coef)).astype(float)
    return Problem(design_of(X), target, np.full((n, 1), 1 / n), Logistic())


def linearised(problem, trajectory, left_out, correction):
    """Coefficients without each row, (n_left_out, n_features), of every iterate."""
    sizes, start = iacv.column_sizes(problem), trajectory.coef[0]
    curvature_of = partial(iacv.LinearisedCurvature, problem, sizes)
    replicas = RowReplicas(problem.design, left_out, trajectory, curvature_of)
    yield start[:, 0] + replicas.deviations(start)[:, :, 0]
    for step in iterate(replayed_steps(problem, trajectory, correction), replicas):
        if step.ends is not None:
            coef = trajectory.coef[step.ends]
            yield coef[:, 0] + replicas.deviations(coef)[:, :, 0]


def exact(problem, trajectory, left_out):
    """The same, by a run without each row."""
    stays = np.ones((left_out.n_rows, len(left_out.rows)), dtype=bool)
    stays[left_out.rows, np.arange(len(left_out.rows))] = False
    weights = LeaveOutRule(renormalises=False).without(problem, stays)
    for coef, _ in replayed(problem, trajectory, weights):
        yield coef[:, 0].T


def newton_steps(problem, trajectory, left_out, own_hessian):
    """The same, by a step that takes the gradient of the row out.

    The gradient of the others is taken to be zero, as it is at convergence. NS inverts
    their Hessian, that of all rows less a matrix of rank one, IJ that of all rows;
    both on the features in use where the penalty is the l1.
    """
    penalty, rows = trajectory.phases[0].penalty, left_out.rows
    for coef, predictor in zip(trajectory.coef[:, :, 0], trajectory.predictor):
        used = np.flatnonzero(penalty.prox_derivative(coef, STEP_SIZE))
        X, weights = problem.design.X[:, used], problem.row_weights
        slope = weights * problem.loss.derivative(problem.target, predictor)
        curvature = weights * problem.loss.curvature(problem.target, predictor)
        hessian = X.T @ (curvature * X) + penalty.curvature * np.eye(len(used))
        steps = np.linalg.solve(hessian, X[rows].T).T
        if own_hessian:
            leverage = curvature[rows] * (steps * X[rows]).sum(axis=1, keepdims=True)
            steps = steps / (1 - leverage)
        result = np.repeat(coef[None], len(rows), axis=0)
        result[:, used] += slope[rows] * steps
        yield result


def baseline(problem, trajectory, left_out):
    """The iterates themselves."""
    for coef in trajectory.coef[:, :, 0]:
        yield np.repeat(coef[None], len(left_out.rows), axis=0)


ESTIMATES = {
    "exact": exact,
    "IACV": partial(linearised, correction=False),
    "IACV, corrected": partial(linearised, correction=True),
    "NS": partial(newton_steps, own_hessian=True),
    "IJ": partial(newton_steps, own_hessian=False),
    "baseline": baseline,
}


def timed(iterates, shown):
    """Those iterates that are shown, and the seconds it took to get there."""
    result, seconds, begun = [], [], perf_counter()
    for t, coef in enumerate(iterates):
        if t in shown:
            result.append(coef)
            seconds.append(perf_counter() - begun)
    return np.array(result), np.array(seconds)


def iterates_to_show(setting):
    return np.unique(np.geomspace(1, setting.n_iterates, 25).round().astype(int))


def without_each_row(setting, n_left_out, rng):
    """Coefficients by every method, with the seconds spent, and the rows left out."""
    n = setting.n_rows
    problem = logistic_problem(n, rng)
    plan = [Phase(setting.penalty, setting.schedule, setting.n_iterates)]
    # The run goes on where nothing moves any more: runs without a row may move.
    trajectory = run(problem, plan, np.zeros((1, N_FEATURES, 1)), tol=-1)
    rows = np.arange(n)[:n_left_out]
    # The published objective is a sum: without a row, the others count as before.
    left_out = LeftOutRows.of(problem, rows, LeaveOutRule(renormalises=False))
    shown = set(iterates_to_show(setting).tolist())
    result = {
        name: timed(estimate(problem, trajectory, left_out), shown)
        for name, estimate in ESTIMATES.items()
    }
    return result, problem.design.X[rows], problem.target[rows, 0]


def compared(setting, n_left_out, rng):
    """The measures of every method at the iterates shown, (n_measures, n_shown)."""
    result, X, target = without_each_row(setting, n_left_out, rng)

    def log_loss(coefs):
        return Logistic().value(target, (coefs * X).sum(axis=2)).mean(axis=1)

    truth, _ = result["exact"]
    return {
        name: np.array(
            [
                np.linalg.norm(coefs - truth, axis=2).mean(axis=1),
                np.abs(log_loss(coefs) / log_loss(truth) - 1),
                seconds,
            ]
        )
        for name, (coefs, seconds) in result.items()
    }


def gathered(repeats):
    """Repeats of every method side by side, (n_repeats, n_measures, n_shown)."""
    return {name: np.array([r[name] for r in repeats]) for name in STYLES}


def print_table(name, setting, results):
    """Medians over the repeats, at an early iterate and at the last."""
    iterates = iterates_to_show(setting)
    early = np.abs(iterates - EARLY).argmin()
    times = [f"t={iterates[k] * setting.n_an_iterate}" for k in (early, -1)]
    print(f"\n{name:32}" + "".join(f"{m:>20}" for m in MEASURES[:2]) + "   seconds")
    print(f"{'':32}" + "".join(f"{t:>10}" for t in 2 * times) + f"{times[1]:>10}")
    for method in STYLES:
        approx, cv, seconds = np.median(results[method], axis=0)
        cells = [approx[early], approx[-1], cv[early], cv[-1]]
        if method == "exact":
            print(f"  {method:30}" + 40 * " " + f"{seconds[-1]:10.2f}")
        else:
            shown = "".join(f"{cell:10.1e}" for cell in cells)
            print(f"  {method:30}{shown}{seconds[-1]:10.2f}")


def draw(axes, name, setting, results):
    """One column of the figure: medians and quartiles over the repeats."""
    updates = iterates_to_show(setting) * setting.n_an_iterate
    for method, style in STYLES.items():
        quartiles = np.quantile(results[method], [0.25, 0.5, 0.75], axis=0)
        for k, ax in enumerate(axes):
            if method == "exact" and MEASURES[k] != "seconds":
                continue
            # The first iterates are exact: zero is not on a log scale.
            is_shown = quartiles[1, k] >= SMALLEST_SHOWN
            low, middle, high = np.where(is_shown, quartiles[:, k], np.nan)
            ax.plot(updates, middle, label=method, **style)
            ax.fill_between(
                updates, low, high, color=style["color"], alpha=0.15, linewidth=0
            )
    for ax in axes:
        ax.set(xscale="log", yscale="log", xlim=(updates[0], updates[-1]))
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_title(name, loc="left", fontsize="medium")
    axes[-1].set_xlabel("updates")


def figure_of(chosen, results):
    """Settings from left to right, measures from top to bottom."""
    figure, axes = plt.subplots(
        len(MEASURES),
        len(chosen),
        figsize=(7, 8),
        sharex="col",
        sharey="row",
        constrained_layout=True,
    )
    for column, (name, setting) in zip(axes.T, chosen.items()):
        draw(column, name, setting, results[name])
    for ax, measure in zip(axes[:, 0], MEASURES):
        ax.set_ylabel(LABELS[measure])
    for ax in axes[:2, 0]:
        ax.set_ylim(bottom=SMALLEST_SHOWN)
    handles, labels = axes[-1, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    return figure


@threadpool_limits.wrap(limits=1)
def main(
    n_small=250,
    n_large=1000,
    n_updates=1000,
    n_batches=3000,
    n_left_out=50,
    n_repeats=3,
    output=None,
):
    """Print the tables and draw two of the settings."""
    rng = np.random.default_rng(0)
    compare = settings(n_small, n_large, n_updates, n_batches)
    results = {}
    for name, setting in compare.items():
        repeats = [compared(setting, n_left_out, rng) for _ in range(n_repeats)]
        results[name] = gathered(repeats)
        print_table(name, setting, results[name])
    names = list(compare)
    chosen = {names[k]: compare[names[k]] for k in (2, 4)}
    figure = figure_of(chosen, results)
    if output is not None:
        path = Path(output) / "iacv.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--full", action="store_true", help="the published size")
    parser.add_argument("--output", help="directory for the figure")
    arguments = parser.parse_args()
    main(**(FULL if arguments.full else {}), output=arguments.output)
