"""
How fast does the risk estimate approach the truth?
===================================================

Bellec & Tan prove that the memory matrix is off by the order of the root of 1/n, at any
iterate, if rows and columns grow together. Here rows double from 100 to 1600 with p/n
fixed: the lasso by ISTA (squared error, p = 1.5 n), gradient descent with Huber's loss
and noise of Student's t with three degrees of freedom (p = n / 2), and logistic
regression without a penalty (p = n / 4). For the last two losses the estimate is that
of Tan & Bellec's second paper, whose proof is of robust regression; logistic regression
is beyond it. Rows are Gaussian and the coefficients are known, so the risk of an
iterate, its mean loss on unseen rows, is an integral of one or two dimensions.

The figure shows the root mean square over repeats of estimate / truth - 1, at an early
and at a late iterate, with one standard error. The table has the slopes of these lines
on log scales. They are close to -1/2 for all losses and both iterates: when rows are
sixteen times as many, the error is about a quarter. The lasso's error falls somewhat
faster, from a large one with 100 rows, and that of the late logistic iterate somewhat
slower.

Five folds (grey) fall more slowly, or level off: with p/n fixed their copies always
have four fifths of the rows, so there is a bias that does not depend on n. It is
largest for late iterates. With 100 rows it does not matter yet: there five folds are
about as good.

Run ``python examples/plot_risk_rate.py --output DIR`` to write the figure. It takes
a minute and a half.

References: Bellec and Tan (2024), "Uncertainty quantification for iterative algorithms
in linear models with application to early stopping", arXiv:2404.17856; Tan and Bellec
(2024), "Estimating generalization performance along the trajectory of proximal SGD in
robust regression", arXiv:2410.02629.
"""

from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from scipy.stats import t as student

from skacv import TrajectoryLasso, TrajectoryLogisticRegression, TrajectoryRegressor
from skacv.optim.losses import Huber, Logistic

# Rows, and repeats: more where they take less.
SIZES = {100: 100, 200: 100, 400: 100, 800: 60, 1600: 40}
SHARE_WITH_FOLDS = 1 / 3
ITERATES = 5, 30
SIGNAL = 4.0  # the variance of the linear predictor
N_PROBES = 20
COMMON = {
    "max_iter": max(ITERATES),
    "tol": 0,
    "fit_intercept": False,
    "risk": N_PROBES,
    "loo": False,
}
COLORS = "#56B4E9", "#0072B2"


class Setting(NamedTuple):
    """A model, its noise, and columns per row."""

    model: Any
    noise: str
    ratio: float


SETTINGS = {
    "squared error": Setting(
        TrajectoryLasso(0.1, solver="ista", **COMMON), "normal", 1.5
    ),
    "Huber": Setting(
        TrajectoryRegressor(penalty=None, loss=Huber(1.0), schedule="gd", **COMMON),
        "student",
        0.5,
    ),
    "logistic": Setting(
        TrajectoryLogisticRegression(np.inf, solver="gd", **COMMON), "labels", 0.25
    ),
}


def drawn(n, p, noise, rng):
    """Gaussian rows, a twentieth of the coefficients equal, and targets."""
    beta = np.zeros(p)
    beta[: p // 20] = np.sqrt(SIGNAL / (p // 20))
    X = rng.standard_normal((n, p))
    if noise == "labels":
        return X, (rng.random(n) < expit(X @ beta)).astype(int), beta
    errors = rng.standard_normal(n) if noise == "normal" else rng.standard_t(3, n)
    return X, X @ beta + errors, beta


# Of the standard normal, and of Student's t with heavy tails: x = sinh(u).
NORMAL = np.linspace(-8, 8, 321)
NORMAL_WEIGHTS = np.exp(-(NORMAL**2) / 2)
NORMAL_WEIGHTS /= NORMAL_WEIGHTS.sum()
STUDENT = np.sinh(np.linspace(-12, 12, 1201))
STUDENT_WEIGHTS = student(3).pdf(STUDENT) * np.sqrt(1 + STUDENT**2)
STUDENT_WEIGHTS /= STUDENT_WEIGHTS.sum()


def risk(coef, beta, noise):
    """The mean loss on unseen rows, of the model that predicts by ``coef``."""
    error = np.linalg.norm(coef - beta)
    if noise == "normal":
        return error**2 + 1
    if noise == "student":
        residual = STUDENT[:, None] + error * NORMAL
        loss = Huber(1.0).value(np.zeros_like(residual), residual)
        return STUDENT_WEIGHTS @ loss @ NORMAL_WEIGHTS
    # The predictor z and what remains of the true one, which are independent.
    scale = np.linalg.norm(coef)
    slope = coef @ beta / scale if scale else 0.0
    rest = np.sqrt(beta @ beta - slope**2)
    chance = expit(slope * NORMAL[:, None] + rest * NORMAL)
    z = scale * NORMAL[:, None]
    loss = chance * Logistic().value(1.0, z) + (1 - chance) * Logistic().value(0.0, z)
    return NORMAL_WEIGHTS @ loss @ NORMAL_WEIGHTS


def relative_errors(setting, n, seed, cv):
    """Estimate / truth - 1 at the iterates, (n_estimates, n_iterates)."""
    model, noise, ratio = setting
    rng = np.random.default_rng([seed, n])
    X, y, beta = drawn(n, int(ratio * n), noise, rng)
    model.set_params(random_state=seed, cv=cv).fit(X, y)
    coef = model.coef_path_.reshape(-1, len(beta))
    truth = np.array([risk(coef[t], beta, noise) for t in ITERATES])
    paths = [model.risk_path_] if cv is None else [model.risk_path_, model.cv_path_]
    return np.array([path[list(ITERATES)] / truth - 1 for path in paths])


def root_mean_square(errors):
    """Of repeats along the first axis, with its relative standard error."""
    squares = errors**2
    mean = squares.mean(axis=0)
    error = squares.std(axis=0, ddof=1) / np.sqrt(len(squares)) / mean / 2
    return np.sqrt(mean), error


def fitted_slope(sizes, errors, relative):
    """Slope on both log scales by least squares, and its standard error."""
    x = np.log(sizes) - np.log(sizes).mean()
    return x @ np.log(errors) / (x @ x), np.linalg.norm(x * relative) / (x @ x)


def draw(ax, name, sizes, size, relative):
    """One loss: lines by iterate, the folds at the last, and the slope -1/2."""
    for k, (t, color) in enumerate(zip(ITERATES, COLORS)):
        bar = relative[:, 0, k] * size[:, 0, k]
        label = f"memory matrix, iterate {t}"
        ax.errorbar(
            sizes, size[:, 0, k], bar, color=color, linewidth=2, label=label, capsize=2
        )
    bar = relative[:, 1, -1] * size[:, 1, -1]
    label = f"five folds, iterate {ITERATES[-1]}"
    ax.errorbar(sizes, size[:, 1, -1], bar, color="#808080", label=label, capsize=2)
    guide = size[0, 0].max() * np.sqrt(sizes[0] / np.array(sizes))
    ax.plot(sizes, 1.3 * guide, "k--", linewidth=1, label="slope -1/2")
    ax.set(xscale="log", yscale="log", xlabel="rows")
    ax.set_xticks(sizes[::2], [f"{n}" for n in sizes[::2]])
    ax.minorticks_off()
    ax.set_title(name, loc="left", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)


def repeated(setting, n, n_repeats):
    """Root mean squares and relative standard errors, (n_estimates, n_iterates)."""
    n_with_folds = max(2, round(SHARE_WITH_FOLDS * n_repeats))
    both = [relative_errors(setting, n, k, 5) for k in range(n_with_folds)]
    more = [relative_errors(setting, n, k, None) for k in range(len(both), n_repeats)]
    matrix = [errors[0] for errors in both + more]
    folds = [errors[1] for errors in both]
    return zip(*(root_mean_square(np.array(errors)) for errors in (matrix, folds)))


def main(sizes=SIZES, output=None):
    """Print sizes of errors and their slopes, and draw them."""
    figure, axes = plt.subplots(
        1, 3, figsize=(7, 4), sharey=True, constrained_layout=True
    )
    numbers = list(sizes)
    print("Root mean square of estimate / truth - 1:\n")
    print(f"{'loss':15}{'estimate':15}{'iterate':>9}", end="")
    print("".join(f"{f'n={n}':>8}" for n in numbers) + f"{'slope':>8}{'s.e.':>7}")
    for ax, (name, setting) in zip(axes, SETTINGS.items()):
        by_size = [repeated(setting, n, n_repeats) for n, n_repeats in sizes.items()]
        size, relative = (np.array(part) for part in zip(*by_size))
        for j, estimate in enumerate(["memory matrix", "five folds"]):
            for k, t in enumerate(ITERATES):
                cells = "".join(f"{value:8.3f}" for value in size[:, j, k])
                slope, error = fitted_slope(numbers, size[:, j, k], relative[:, j, k])
                print(f"{name:15}{estimate:15}{t:9}{cells}{slope:8.2f}{error:7.2f}")
        draw(ax, name, numbers, size, relative)
    axes[0].set_ylabel("estimate / truth - 1, root mean square")
    axes[0].set_yticks([0.02, 0.05, 0.1, 0.2], ["0.02", "0.05", "0.1", "0.2"])
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=2,
        frameon=False,
    )
    if output is not None:
        path = Path(output) / "risk_rate.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
