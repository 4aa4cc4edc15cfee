"""
A nonconvex penalty by local quadratic approximation: the risk of every iterate
===============================================================================

Fan & Li replace a penalty that has no second derivatives by a quadratic function around
the last iterate, with the same slope: local quadratic approximation (LQA). An update is
then a gradient step, divided by ``1 + step * p'(|b|) / |b|`` for every coefficient b.
It is one of the algorithms of Bellec & Tan. Here it is written as a ``UserUpdate``, of
which folds, leave-one-out and the memory matrix need to know nothing else: derivatives
of the function are differences.

The penalty is MCP, the data are Gaussian, 300 rows and 450 columns of which 15 matter.
The left panel is LQA, the right one proximal gradient descent for the same objective,
both as means over ten draws. Memory matrix and leave-one-out agree with each other, and
with the truth to a few percent, at every iterate of either run.

The two runs end with the same error, which they reach by different ways. The prox sets
coefficients to zero. Under LQA they only shrink towards it, and those near zero stay
there, so it begins with one step without the penalty, and is the slower one. Along such
a run LQA is what is estimated, not an approximation. In the Newton step of a converged
model it is one, and a bad one (``plot_approximate_loo.py``).

Run ``python examples/plot_lqa.py --output DIR`` to write the figure.

References: Fan and Li (2001), "Variable selection via nonconcave penalized likelihood
and its oracle properties", JASA 96; Bellec and Tan (2024), "Uncertainty quantification
for iterative algorithms in linear models with application to early stopping",
arXiv:2404.17856.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skacv import TrajectoryRegressor
from skacv.optim.penalties import MCP
from skacv.optim.user import UserUpdate

STRENGTH, GAMMA = 0.15, 3.0
N_NONZERO, SIGMA = 15, 1.0
LEAST = 1e-4  # for coefficients nearer to zero the fraction is that of this one
SHOWN = 1, 5, 20, 60


def lqa(step_size):
    """The schedule of LQA for MCP, with a step."""

    def update(t, coef, earlier, gradient, earlier_gradient):
        point = coef - step_size * gradient
        if t == 0:  # at zero the fraction is not defined
            return point
        size = np.abs(coef)
        slope = np.maximum(STRENGTH - size / GAMMA, 0)
        return point / (1 + step_size * slope / np.maximum(size, LEAST))

    return UserUpdate(update)


def drawn(n, p, rng):
    X, beta = rng.standard_normal((n, p)), np.zeros(p)
    beta[:N_NONZERO] = 0.6
    return X, X @ beta + SIGMA * rng.standard_normal(n), beta


def fitted(n, p, max_iter, seed):
    """Name and paths of either run, by what they are, (n_iterates,) each."""
    X, y, beta = drawn(n, p, np.random.default_rng(seed))
    step = 1 / np.linalg.eigvalsh(X @ X.T / n).max()
    runs = {
        "LQA": {"penalty": None, "schedule": lqa(step)},
        "prox": {
            "penalty": MCP(1.0, GAMMA),
            "alpha": STRENGTH,
            "schedule": "gd",
            "step_size": step,
        },
    }
    for name, settings in runs.items():
        model = TrajectoryRegressor(
            **settings,
            max_iter=max_iter,
            tol=0,
            fit_intercept=False,
            risk=20,
            loo=True,
            random_state=seed,
        ).fit(X, y)
        coef = np.asarray(model.coef_path_).reshape(-1, p)
        yield (
            name,
            {
                "truth": ((coef - beta) ** 2).sum(axis=1) + SIGMA**2,
                "memory matrix": model.risk_path_,
                "leave-one-out": model.loo_path_,
                "training": model.train_path_,
                "nonzero, or nearly": (np.abs(coef) > 0.01).sum(axis=1),
            },
        )


def draw(ax, name, means):
    ax.plot(means["memory matrix"], color="#0072B2", linewidth=3, label="memory matrix")
    ax.plot(
        means["leave-one-out"], color="#D55E00", dashes=(5, 2), label="leave-one-out"
    )
    ax.plot(means["truth"], color="black", linewidth=1, label="truth")
    ax.plot(means["training"], color="#009E73", linestyle=":", label="training rows")
    ax.set_title(name, loc="left", fontsize="medium")
    ax.set_xlabel("iteration")
    ax.spines[["top", "right"]].set_visible(False)


def main(n=300, p=450, max_iter=60, n_repeats=10, output=None):
    """Print means over repeats, and draw them."""
    draws = [dict(fitted(n, p, max_iter, seed)) for seed in range(n_repeats)]
    figure, axes = plt.subplots(
        1, 2, figsize=(7, 4), sharey=True, constrained_layout=True
    )
    shown = [t for t in SHOWN if t <= max_iter]
    print(f"Squared errors, and coefficients above 0.01, means over {n_repeats} draws:")
    print(f"{'':8}{'iterate':18}" + "".join(f"{t:>8}" for t in shown))
    for ax, name in zip(axes, draws[0]):
        means = {
            row: np.mean([paths[name][row] for paths in draws], axis=0)
            for row in draws[0][name]
        }
        for row, path in means.items():
            print(f"{name:8}{row:18}" + "".join(f"{path[t]:8.3g}" for t in shown))
        draw(ax, name, means)
    axes[0].set(ylabel="squared error", ylim=(0, None))
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=4,
        frameon=False,
    )
    if output is not None:
        path = Path(output) / "lqa.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
