"""
A support vector machine that stops itself, and why its hinge is rounded
========================================================================

``loo_path_`` approximates the run without each row by linearising its gradient around
the recorded run. That needs the curvature of the loss, and a hinge has none: its
derivative jumps at a kink and is constant elsewhere. The first table and the upper
panel show how large the error of the coefficients without a row is on Gaussian rows
with noisy labels, as a share of the change that leaving the row out makes. At one, the
estimate is no better than the iterate itself. The number after an arrow is the error
after a correction: what linearising neglects is evaluated at some iterations and added.

After the correction, the squared hinge and the one smoothed over 0.5 are off by two
hundredths at most; the hinge smoothed over 0.1 is worse, and the raw hinge is of no use
at the end of the run. The shorter the smoothing, the larger the error. That is why
``TrajectoryLinearSVC`` does not offer the raw hinge.

The second table and the lower panel show a choice by accuracy: are the digits that ship
with scikit-learn odd or even? One run of ``TrajectoryLinearSVC`` goes through twenty
values of C. The held-out decisions of leave-one-out, or of five folds, choose C and the
iterate. ``GridSearchCV`` refits ``LinearSVC`` at the same values on five folds. On the
other 1197 rows all four are right equally often, to half a percent, and they take about
the same time. Numbers are means over three splits (geometric means for C), "±" is the
standard error over the splits, and all run on one thread.

Run ``python examples/plot_svm.py --output DIR`` to write the figure.
"""

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from skacv import TrajectoryEarlyStoppingCV, TrajectoryLinearSVC
from skacv.optim.arrays import design_of
from skacv.optim.losses import Loss, SmoothedHinge, SquaredHinge
from skacv.optim.penalties import SquaredL2
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import GradientDescent
from skacv.optim.trajectory import Phase
from skacv.risk.held_out_rows import LeaveOutRule, LeftOutRows
from skacv.risk.left_out import linearised as iacv
from skacv.risk.left_out.replicas import replayed

STRENGTH, STEP_SIZE = 0.01, 0.05
LEAST_C, LARGEST_C = 1e-4, 10
SMALLEST_SHOWN = 1e-5


@dataclass(frozen=True)
class Hinge(Loss):
    """The raw hinge of a label -1 or 1, l(y, z) = max(0, 1 - y z)."""

    def value(self, target, predictor):
        return np.maximum(0, 1 - target * predictor)

    def derivative(self, target, predictor):
        return -target * (target * predictor < 1)

    def curvature(self, target, predictor):
        return np.zeros_like(predictor)


LOSSES = {
    "squared hinge": (SquaredHinge(), "#0072B2"),
    "hinge smoothed over 0.5": (SmoothedHinge(0.5), "#009E73"),
    "hinge smoothed over 0.1": (SmoothedHinge(0.1), "#E69F00"),
    "raw hinge": (Hinge(), "#D55E00"),
}


def models_with(values):
    """Estimators that walk these values of C in one trajectory, by name."""
    shared = {"C": values, "max_iter": 20}
    return {
        "squared hinge": TrajectoryLinearSVC(**shared),
        "smoothed hinge": TrajectoryLinearSVC(**shared, loss="smoothed_hinge"),
        "squared, 5 folds": TrajectoryLinearSVC(**shared, cv=5),
    }


def noisy_labels(n, p, rng):
    """Gaussian rows, and labels -1 and 1 by five of their columns and noise."""
    X = rng.standard_normal((n, p))
    signal = X[:, :5] @ rng.standard_normal((5, 1))
    return X, np.where(signal + rng.standard_normal((n, 1)) > 0, 1.0, -1.0)


# Without a row, the penalty of a sum weighs more: the others have a smaller sum.
REFIT = LeaveOutRule(is_sum=True)


def without_rows(problem, n_updates, rows):
    """What leaving each row out adds to the last iterate, (n_left_out, n_features).

    Exactly, linearised and corrected.
    """
    plan = [Phase(SquaredL2(STRENGTH), GradientDescent(STEP_SIZE), n_updates)]
    start = np.zeros((1, problem.design.shape[1], 1))
    trajectory = run(problem, plan, start)
    stays = np.ones((len(problem.target), len(rows)), dtype=bool)
    stays[rows, np.arange(len(rows))] = False
    *_, (exact, _) = replayed(problem, trajectory, REFIT.without(problem, stays))
    left_out = LeftOutRows.of(problem, rows, REFIT)
    linearised, corrected = (
        iacv.linearised_predictors(
            problem, trajectory, left_out, len(rows), map, correction
        )[1]
        for correction in (False, True)
    )
    added = exact[:, 0] - trajectory.coef[-1]
    return added.T, linearised[:, :, 0], corrected[:, :, 0]


def shares_missed(problem, iterates, rows):
    """Mean distance from the exact effect of leaving a row out, over its mean size.

    Linearised and corrected, (2, n_iterates).
    """
    shares = []
    for n_updates in iterates:
        exact, *results = without_rows(problem, n_updates, rows)
        size = np.linalg.norm(exact, axis=1).mean()
        shares.append(
            [np.linalg.norm(d - exact, axis=1).mean() / size for d in results]
        )
    return np.array(shares).T


def print_misses(shares, iterates):
    """What each loss is missed by, linearised and corrected."""
    print(f"{'share of what leaving a row out does':40}", end="")
    print("".join(f"{f't={t}':>18}" for t in iterates))
    for name, pairs in shares.items():
        cells = [f"{a:.2g} -> {b:.2g}" for a, b in pairs.T]
        print(f"  {name:38}" + "".join(f"{cell:>18}" for cell in cells))


def draw_misses(ax, shares, iterates):
    """Linearised (dashed) and corrected, loss by loss."""
    ax.axhline(1, color="0.6", linewidth=1)
    ax.annotate(
        "no better than the iterate itself",
        (iterates[0], 1),
        (4, 4),
        textcoords="offset points",
        color="0.4",
    )
    for name, (linearised, corrected) in shares.items():
        color = LOSSES[name][1]
        styles = {"dashes": (4, 2), "linewidth": 1.8}, {"linewidth": 2.2, "label": name}
        for misses, style in zip((linearised, corrected), styles):
            # The first iterates are exact: zero is not on a log scale.
            is_shown = np.array(misses) >= SMALLEST_SHOWN
            ax.plot(iterates[is_shown], misses[is_shown], color=color, **style)
    ax.plot([], [], color="0.4", dashes=(4, 2), label="without correction")
    ax.set(xscale="log", yscale="log", xlim=(iterates[0], iterates[-1]))
    ax.set_ylim(bottom=SMALLEST_SHOWN)
    ax.set_ylabel("error over the effect of the row")
    ax.set_title("Coefficients without a row", loc="left")


def parity_of_digits(n_rows, seed):
    """Rows to fit on and rows to judge by, standardised by the former."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(
        X, y % 2, train_size=n_rows, random_state=seed
    )
    scale = StandardScaler().fit(X)
    return scale.transform(X), y, scale.transform(X_test), y_test


def fitted(model, X, y):
    begun = perf_counter()
    return model.fit(X, y), perf_counter() - begun


def choices(n_rows, values, seed):
    """Models that have chosen by accuracy, and what the table says of them.

    Iterate (NaN where there is none), C, estimated and true accuracy, seconds.
    """
    X, y, X_test, y_test = parity_of_digits(n_rows, seed)
    rows, models = {}, {}
    for name, model in models_with(values).items():
        stopping = TrajectoryEarlyStoppingCV(model, criterion="accuracy")
        models[name], seconds = fitted(stopping, X, y)
        results = stopping.best_iter_, stopping.best_params_["C"], stopping.best_score_
        rows[name] = [*results, stopping.score(X_test, y_test), seconds]
    search = GridSearchCV(LinearSVC(), {"C": values}, cv=5)
    _, seconds = fitted(search, X, y)
    results = np.nan, search.best_params_["C"], search.best_score_
    rows["GridSearchCV"] = [*results, search.score(X_test, y_test), seconds]
    return rows, models, X_test, y_test


def print_choices(repeats):
    """Means over the splits; of C the geometric mean."""
    print(f"\n{'odd or even':18}{'iterate':>9}{'C':>9}{'estimated':>11}", end="")
    print(f"{'test':>16}{'seconds':>9}")
    for name in repeats[0]:
        numbers = np.array([rows[name] for rows in repeats])
        iterate, _, estimated, test, seconds = numbers.mean(axis=0)
        C = np.exp(np.log(numbers[:, 1]).mean())
        error = numbers[:, 3].std(ddof=1) / np.sqrt(len(numbers))
        chosen = "" if np.isnan(iterate) else f"{iterate:.0f}"
        print(
            f"{name:18}{chosen:>9}{C:9.2g}{estimated:11.4f}"
            f"{f'{test:.4f} ± {error:.4f}':>16}{seconds:9.2f}"
        )


def draw_choice(ax, rows, models, X_test, y_test):
    """Accuracy along the run with the squared hinge: estimated and true."""
    model = models["squared hinge"]
    truth = [np.mean(p == y_test) for p in model.staged_predict(X_test)]
    ax.plot(model.path_, color="#D55E00", label="rows left out")
    ax.plot(truth, color="black", label="test rows")
    ax.axhline(
        rows["GridSearchCV"][3],
        color="#0072B2",
        dashes=(1, 1),
        linewidth=2,
        label="GridSearchCV, test rows",
    )
    ax.axvline(model.best_iter_, color="0.6", linewidth=1, label="iterate in use")
    ax.set_xlim(1, len(truth) - 1)
    ax.set_ylim(min(truth[1], model.path_[1]) - 0.01, None)
    ax.set_ylabel("accuracy")
    ax.set_title("Squared hinge, along the values of C", loc="left")


@threadpool_limits.wrap(limits=1)
def main(n=300, p=20, n_updates=1000, n_rows=600, n_values=20, n_splits=3, output=None):
    """Print the tables and draw the figure."""
    print(f"{n} Gaussian rows, {p} features, noisy labels, {n_updates} updates.\n")
    X, y = noisy_labels(n, p, np.random.default_rng(0))
    iterates = np.unique(np.geomspace(3, n_updates, 12).round().astype(int))
    shares = {}
    for name, (loss, _) in LOSSES.items():
        problem = Problem(design_of(X), y, np.full((n, 1), 1 / n), loss)
        shares[name] = shares_missed(problem, iterates, np.arange(min(n, 100)))
    shown = [len(iterates) // 2, -1]
    print_misses({name: s[:, shown] for name, s in shares.items()}, iterates[shown])
    values = np.geomspace(LEAST_C, LARGEST_C, n_values)
    chosen = [choices(n_rows, values, seed) for seed in range(n_splits)]
    print_choices([rows for rows, *_ in chosen])
    figure, axes = plt.subplots(2, 1, figsize=(7, 7.6), constrained_layout=True)
    draw_misses(axes[0], shares, iterates)
    draw_choice(axes[1], *chosen[0])
    for ax in axes:
        ax.set_xlabel("iteration")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
    if output is not None:
        path = Path(output) / "svm.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
