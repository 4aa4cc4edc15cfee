"""
Rows of uneven norm: the published memory matrix, and row scales
================================================================

The memory matrix of Bellec and Tan assumes that all rows have the average leverage.
Here rows follow a multivariate t distribution with five degrees of freedom, x = g /
sqrt(chi2_5 / 3) with g Gaussian, so a few rows are much longer than the others. The
published estimate (``risk_row_scales=False``) is then about a fifth too low. Row
scales, the default, give every row a leverage of its own: with them the estimate agrees
with leave-one-out (``loo=True``), which needs no such assumption, and both are right to
a few percent. The truth is known here.

skacv warns if the published estimate is requested on such rows. This script requests it
on purpose and silences that ``UserWarning``.

Run ``python examples/plot_elliptical_rows.py --output DIR`` to write the figure.
"""

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skacv import IterativeRidge, TrajectoryLasso

SHOWN = [10, 30]
N_UPDATES = 40
STYLES = {
    "memory matrix, published": {"color": "#CC79A7", "linewidth": 2},
    "memory matrix, row scales": {"color": "#0072B2", "linewidth": 2.2},
    "leave-one-out": {"color": "#D55E00", "dashes": (5, 2)},
    "truth": {"color": "black"},
}
ESTIMATES = list(STYLES)[:-1]


def gradient_descent(**settings):
    return IterativeRidge(alpha=0.0, **settings)


def ista(**settings):
    return TrajectoryLasso(alpha=0.05, solver="ista", **settings)


# The algorithm, and the share of the features that carry the signal.
ALGORITHMS = {"gradient descent": (gradient_descent, 1), "ISTA": (ista, 1 / 15)}


def t5_rows(n, p, share, rng):
    """Rows of covariance I, targets with noise of variance one, coefficients."""
    X = rng.standard_normal((n, p)) / np.sqrt(rng.chisquare(5, (n, 1)) / 3)
    beta = np.zeros(p)
    n_nonzero = int(share * p)
    beta[:n_nonzero] = 2 / np.sqrt(n_nonzero)
    return X, X @ beta + rng.standard_normal(n), beta


def paths(algorithm, X, y, beta):
    """Estimates and truth of every iterate of one run."""
    settings = {"fit_intercept": False, "max_iter": N_UPDATES, "tol": 0}
    settings["risk"] = "exact"
    model = algorithm(loo=True, **settings).fit(X, y)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The rows of X have very uneven norms")
        published = algorithm(loo=False, risk_row_scales=False, **settings).fit(X, y)
    return {
        "memory matrix, published": published.risk_path_,
        "memory matrix, row scales": model.risk_path_,
        "leave-one-out": model.loo_path_,
        "truth": ((model.coef_path_ - beta) ** 2).sum(axis=1) + 1,
    }


def print_rows(label, repeats):
    """Rows of the table: estimate / truth, mean and standard error."""
    for name in ESTIMATES:
        ratios = np.array([r[name] / r["truth"] for r in repeats])
        error = ratios.std(axis=0, ddof=1) / np.sqrt(len(ratios))
        shown = "".join(
            f"{f'{ratios[:, t].mean():.3f} ± {error[t]:.3f}':>17}" for t in SHOWN
        )
        print(f"{label:18}{name:27}{shown}")


def draw(ax, repeats, title):
    """Means over the repeats."""
    for name, style in STYLES.items():
        ax.plot(np.mean([r[name] for r in repeats], axis=0), label=name, **style)
    ax.set_xlim(0, N_UPDATES)
    ax.set(xlabel="iteration", ylabel="mean squared error")
    ax.set_title(title, loc="left", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)


def main(n=300, p=450, n_repeats=15, output=None):
    """Print the table and draw the figure."""
    rng = np.random.default_rng(0)
    print(f"t5 rows, n={n}, p={p}. Estimate / truth, mean of {n_repeats} repeats.\n")
    print(f"{'':45}" + "".join(f"{f't={t}':>17}" for t in SHOWN))
    figure, axes = plt.subplots(1, 2, figsize=(7, 3.8), constrained_layout=True)
    for (title, (algorithm, share)), ax in zip(ALGORITHMS.items(), axes):
        repeats = [
            paths(algorithm, *t5_rows(n, p, share, rng)) for _ in range(n_repeats)
        ]
        print_rows(title, repeats)
        draw(ax, repeats, f"{title}, t5 rows")
    axes[0].legend(frameon=False, fontsize="small")
    if output is not None:
        path = Path(output) / "elliptical_rows.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
