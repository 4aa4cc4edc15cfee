"""
Tan & Bellec's experiments: the risk of robust regression by SGD
================================================================

Linear models whose noise has infinite variance (Student's t with two degrees of
freedom) are fitted by gradient descent or its proximal version with the Huber or the
pseudo-Huber loss, on all rows or on a new random batch for every update. The memory
matrix of these losses estimates the squared error of every iterate on unseen rows from
the one run. The noise in this error is that of the training rows, whose mean square is
finite. Rows are Gaussian and the coefficients are known, so the truth can be drawn with
the estimate.

The table shows the estimate divided by the truth: at the iterate with the smallest true
error, at the last one, and where the two differ most. They differ by a tenth at most.

By default every size is a tenth of the published one. ``--full`` runs the published
sizes (10,000 rows and up to 12,000 features), once instead of 100 times, and takes some
minutes.

Reference: Tan and Bellec (2024), "Estimating generalization performance along the
trajectory of proximal SGD in robust regression", arXiv:2410.02629.
"""

from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

from skacv import TrajectoryRegressor
from skacv.optim.losses import Huber, PseudoHuber
from skacv.optim.schedules import GradientDescent, RandomBatches
from skacv.optim.updates import ProximalGradient

COLORS = {"Huber": "#0072B2", "pseudo-Huber": "#D55E00"}
LOSSES = {"Huber": Huber(1.0), "pseudo-Huber": PseudoHuber(1.0)}


class Setting(NamedTuple):
    """One of the four experiments."""

    title: str
    n: int
    p: int
    n_updates: int
    penalty: float = 0.0
    batches: tuple = (1, 5)  # a batch is one row in so many
    step_size: float | None = None  # None: the published rule, by p / n
    second_step: float | None = None  # every other step is that share of the first


SETTINGS = (
    Setting("no penalty", 10_000, 5000, 100),
    Setting("lasso penalty, p > n", 10_000, 12_000, 100, penalty=0.002),
    Setting("every other step is half", 3000, 1000, 20, 0.0, (1,), 1.0, 0.5),
    Setting("batches of a tenth", 4000, 1000, 20, 0.0, (10,), 0.2),
)


@dataclass(frozen=True)
class Alternating:
    """Gradient descent whose every other step is a share of the first."""

    step_size: float
    share: float

    def updates(self):
        steps = self.step_size, self.share * self.step_size
        return cycle([ProximalGradient(step) for step in steps])

    @staticmethod
    def largest_stable_step(smoothness):
        return 2 / smoothness


def schedule_of(setting, n, n_batches, step_size):
    """All rows, alternating steps on them, or a random batch for every update."""
    if setting.second_step is not None:
        return Alternating(step_size, setting.second_step)
    if n_batches == 1:
        return GradientDescent(step_size)
    return RandomBatches(step_size, n, n // n_batches, seed=0)


def drawn(n, p, rng):
    """Gaussian rows, a twentieth of the coefficients equal, noise of Student's t_2."""
    beta = np.zeros(p)
    beta[: p // 20] = np.sqrt(10 / (p // 20))
    X, noise = rng.standard_normal((n, p)), rng.standard_t(2, n)
    return X, X @ beta + noise, beta, noise


def experiment(setting, loss, n_batches, share):
    """Estimate and truth of the squared error of every iterate."""
    n, p = int(share * setting.n), int(share * setting.p)
    rng = np.random.default_rng(0)  # the same rows and noise for all runs
    step = setting.step_size or (1 + np.sqrt(p * n_batches / n)) ** -2
    X, y, beta, noise = drawn(n, p, rng)
    model = TrajectoryRegressor(
        alpha=setting.penalty or 1.0,
        penalty="l1" if setting.penalty else None,
        loss=loss,
        schedule=schedule_of(setting, n, n_batches, step),
        step_size=step,
        max_iter=setting.n_updates,
        tol=0,
        fit_intercept=False,
        risk=round(1 + 1 / share),
        risk_row_scales=False,
        loo=False,
        random_state=0,
    ).fit(X, y)
    held_out = np.array([np.mean((y - u) ** 2) for u in model.risk_prediction_path_])
    truth = ((model.coef_path_ - beta) ** 2).sum(axis=1) + np.mean(noise**2)
    return held_out, truth


def draw(results):
    figure, axes = plt.subplots(2, 2, figsize=(7, 6.2), constrained_layout=True)
    for ax, setting in zip(axes.flat, SETTINGS):
        for (title, name, n_batches), (estimate, truth) in results.items():
            if title == setting.title:
                line = "-" if n_batches == 1 else ":"
                label = f"{name}, {'all rows' if n_batches == 1 else 'batches'}"
                ax.plot(estimate, line, color=COLORS[name], linewidth=2, label=label)
                ax.plot(truth, color="black", linewidth=0.8, linestyle="--")
        ax.set_title(setting.title, loc="left", fontsize="medium")
        ax.set(xlabel="iteration", ylabel="error on unseen rows")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize="small")
    title = "Squared errors: estimates (coloured) and truth (dashed)"
    figure.suptitle(title, fontsize=10)
    return figure


def main(share=0.1, output=None):
    """Print the estimates over the truth, and draw both."""
    results = {}
    print(f"{'':26}{'loss':14}{'batch':8}{'estimate / truth at':>20}")
    print(f"{'':48}{'least':>8}{'last':>6}{'worst':>7}")
    for setting in SETTINGS:
        for n_batches in setting.batches:
            for name, loss in LOSSES.items():
                paths = experiment(setting, loss, n_batches, share)
                results[setting.title, name, n_batches] = paths
                ratio, least = paths[0] / paths[1], paths[1].argmin()
                worst = ratio[np.abs(ratio - 1).argmax()]
                size = "all" if n_batches == 1 else f"n / {n_batches}"
                cells = f"{ratio[least]:8.2f}{ratio[-1]:6.2f}{worst:7.2f}"
                print(f"{setting.title:26}{name:14}{size:8}{cells}")
    figure = draw(results)
    if output is not None:
        path = Path(output) / "robust_sgd.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"Figure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--full", action="store_true", help="the published sizes")
    parser.add_argument("--output", help="directory for the figure")
    arguments = parser.parse_args()
    main(share=1.0 if arguments.full else 0.1, output=arguments.output)
