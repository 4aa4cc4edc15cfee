"""
Quantiles that stop themselves, each by its own loss
====================================================

The target of 1000 simulated rows has skew noise, whose size grows with the first of
four columns; the others do not matter. Boosted trees of the pinball loss are fitted for
the levels 0.05, 0.5 and 0.95, on all rows and on five folds of them, and every level is
stopped at the smallest pinball loss of the held-out rows.

On the left are the quantiles along the first column, the others at their middle: the
true ones (dashed) and those of the stopped trees. On the right is the held-out loss of
every level along its run, relative to its least: the upper level needs fewer trees than
the median and loses most where it goes on, the lower one needs more.

The table shows means over three simulations, on 5000 other rows each: the share of
targets at or below each level, the share of rows of which two levels cross, the mean
pinball loss of all levels, and the mean distance from the true quantiles. Stopped each
by its own loss, the levels do not cross and have the smallest loss. With the number of
trees that is best for the median they are further from the truth. After all 200 trees
they cover too few rows between them, and some cross. ``conformalize=True`` moves the
share of each level nearer to it. Quantiles of one model of the mean, from its held-out
residuals, are further from the truth: they know the size of the noise by the prediction
alone, which is low at both ends of the column.

Run ``python examples/plot_quantiles.py --output DIR`` to write the figure.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import gamma
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_pinball_loss

from skacv import SelfStoppingQuantileRegressor, TrajectoryEarlyStoppingCV

LEVELS = (0.05, 0.5, 0.95)
NOISE = gamma(2)
COLOURS = ["#0072B2", "#009E73", "#D55E00"]


def simulate(n, rng):
    """Rows, targets, and the true quantiles of these, (n, n_levels)."""
    X = rng.random((n, 4))
    return X, means_of(X) + sizes_of(X) * NOISE.rvs(n, random_state=rng), truth_at(X)


def means_of(X):
    """Where the noise begins."""
    return 2 * np.sin(2 * np.pi * X[:, 0])


def sizes_of(X):
    """The size of the noise of each row."""
    return 0.1 + 0.8 * X[:, 0]


def truth_at(X):
    """The true quantiles of rows, (n, n_levels)."""
    return means_of(X)[:, None] + sizes_of(X)[:, None] * NOISE.ppf(LEVELS)


def judged(quantiles, y, truth):
    """The numbers of a row of the table."""
    losses = [
        mean_pinball_loss(y, column, alpha=level)
        for level, column in zip(LEVELS, quantiles.T)
    ]
    crossing = (np.diff(quantiles, axis=1) < 0).any(axis=1).mean()
    shares = (y[:, None] <= quantiles).mean(axis=0)
    return [*shares, crossing, np.mean(losses), np.abs(quantiles - truth).mean()]


def simulate_and_fit(n_rows, n_new, max_iter, seed):
    """One simulation: the fitted model, and the numbers of the table."""
    rng = np.random.default_rng(seed)
    X, y, _ = simulate(n_rows, rng)
    X_new, y_new, truth = simulate(n_new, rng)
    trees = HistGradientBoostingRegressor(
        max_iter=max_iter, max_leaf_nodes=8, min_samples_leaf=50, random_state=0
    )
    # Patience would end the runs, which the figure shows to their ends.
    settings = {"levels": LEVELS, "patience": None, "random_state": 0}
    model = SelfStoppingQuantileRegressor(trees, **settings).fit(X, y)
    shifted = SelfStoppingQuantileRegressor(trees, conformalize=True, **settings)
    of_mean = TrajectoryEarlyStoppingCV(trees, random_state=0)
    _, median, _ = model.models_
    ways = {
        "stopped, each level by its loss": model.predict_quantiles(X_new),
        "the same, shifted": shifted.fit(X, y).predict_quantiles(X_new),
        "the median's number of trees": grown_to(median.best_iter_, trees, X, y, X_new),
        f"all {max_iter} trees": grown_to(max_iter, trees, X, y, X_new),
        "from a model of the mean": of_mean.fit(X, y).predict_quantiles(X_new, LEVELS),
    }
    return model, {name: judged(way, y_new, truth) for name, way in ways.items()}


def grown_to(n_trees, trees, X, y, X_new):
    """Quantiles by one number of trees for all levels, not sorted, (n, n_levels)."""
    quantiles = []
    for level in LEVELS:
        settings = {"loss": "quantile", "quantile": level, "max_iter": n_trees}
        grown = clone(trees).set_params(**settings).fit(X, y)
        quantiles.append(grown.predict(X_new))
    return np.stack(quantiles, axis=1)


def draw(axes, model):
    """Quantiles along the first column, and the losses along the runs."""
    left, right = axes
    X = np.full((400, 4), 0.5)
    X[:, 0] = np.linspace(0, 1, 400)
    truth, quantiles = truth_at(X), model.predict_quantiles(X)
    for k, (level, colour) in enumerate(zip(LEVELS, COLOURS)):
        left.plot(X[:, 0], truth[:, k], "--", color=colour, linewidth=1.2)
        left.plot(X[:, 0], quantiles[:, k], color=colour, label=f"level {level:g}")
        fitted = model.models_[k]
        relative, best = fitted.path_ / fitted.best_score_, fitted.best_iter_
        right.plot(relative, color=colour)
        right.plot(best, 1, "o", color=colour, label=f"{best} trees")
    left.plot([], [], "--", color="black", linewidth=1.2, label="true")
    left.set(xlabel="first column", ylabel="y", title="Quantiles")
    left.legend(frameon=False)
    right.set(xlabel="trees", ylabel="held-out pinball loss / its least")
    right.set(title="Runs of the three levels", ylim=(0.97, 1.6))
    right.legend(frameon=False)
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)


def main(n_rows=1000, n_new=5000, max_iter=200, n_repeats=3, output=None):
    """Print the table and draw the figure."""
    simulated = [
        simulate_and_fit(n_rows, n_new, max_iter, seed) for seed in range(n_repeats)
    ]
    columns = *LEVELS, "crossing", "loss", "distance"
    print(f"{'quantiles':33}" + "".join(f"{column:>10}" for column in columns))
    for name in simulated[0][1]:
        means = np.mean([numbers[name] for _, numbers in simulated], axis=0)
        print(f"{name:33}" + "".join(f"{value:10.3f}" for value in means))
    figure, axes = plt.subplots(1, 2, figsize=(8.2, 3.9), constrained_layout=True)
    draw(axes, simulated[0][0])
    if output is not None:
        path = Path(output) / "quantiles.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
