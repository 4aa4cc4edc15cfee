"""
How far may approximate leave-one-out be from the exact one?
============================================================

Iterative approximate cross-validation follows a model without row i by linearising its
gradient around the recorded run. The resulting error is at most quadratic in the
distance between the two runs, so it can be bounded from the run alone (:doc:`theory
</theory>`, "Accuracy of linearised leave-one-out"). Each panel shows, for logistic
regression on 20 Gaussian columns, means over the rows left out:

* the change: the distance between the exact run without a row and the recorded one;
* the error of the approximation;
* the bound on the error.

The runs are gradient descent, its proximal version with an l1 penalty, and SGD, each
with a ridge penalty. Dotted lines are for n = 250, the others for n = 1000. In theory
the change falls like 1 / n and the error like 1 / n^2, and in the table they do so
roughly: four times as many rows give a change about a quarter as large and an error
about ten to forty times smaller. The error is a hundredth of the change or less for n =
1000.

SGD uses batches of a tenth of the rows, in which a row weighs ten times as much. With
250 rows its bound then grows without end and says nothing, though the error is small.

Run ``python examples/plot_loo_bound.py --output DIR`` to write the figure.

Reference: Luo, Ren and Barber (2023), "Iterative approximate cross-validation", ICML,
arXiv:2303.02732, which proves the rates.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

N_COLUMNS, N_NONZERO, RIDGE, LASSO = 20, 5, 0.05, 0.01
N_UPDATES, N_LEFT_OUT = 200, 50
# The largest third derivative of the logistic loss.
THIRD = 1 / (6 * np.sqrt(3))
STYLES = {
    "change": ("black", "change by leaving out a row"),
    "error": ("#0072B2", "error of the approximation"),
    "bound": ("#D55E00", "its bound"),
}


def labels(n, rng):
    """Gaussian rows, and labels drawn by a logistic model."""
    X = rng.standard_normal((n, N_COLUMNS))
    coef = np.zeros(N_COLUMNS)
    coef[:N_NONZERO] = rng.standard_normal(N_NONZERO)
    return X, (rng.random(n) < expit(X @ coef)).astype(float)


def batches_of(name, n, rng):
    """Rows of every update: all, or a tenth of them."""
    for _ in range(N_UPDATES):
        all_rows = np.arange(n)
        yield rng.choice(n, n // 10, replace=False) if name == "SGD" else all_rows


def compared(name, n, seed=0):
    """Change, error and bound at every update, means over rows, (n_updates, 3)."""
    rng = np.random.default_rng(seed)
    X, y = labels(n, rng)
    lasso = LASSO if name == "proximal gradient descent" else 0.0
    left_out = np.arange(N_LEFT_OUT)
    coef = np.zeros(N_COLUMNS)
    # Without each row: the exact run, the approximation, and the bound of its error.
    exact, linearised = np.zeros((2, N_LEFT_OUT, N_COLUMNS))
    bound = np.zeros(N_LEFT_OUT)
    rows_of_table = []
    for batch in batches_of(name, n, rng):
        Z, target = X[batch], y[batch]
        is_in = batch[:, None] != left_out  # rows of the batch that stay, (n_b, n_left)
        norm = np.linalg.norm(Z, 2)
        step = 1 / (0.25 * norm**2 / len(batch) + RIDGE)

        def prox(b, step=step):
            return np.sign(b) * np.maximum(np.abs(b) - step * lasso, 0)

        slope = expit(Z @ coef) - target
        share = expit(Z @ coef) * expit(-Z @ coef)
        moved = Z @ (linearised - coef).T  # by rows of the batch, (n_b, n_left)
        slopes = np.where(is_in, slope[:, None] + share[:, None] * moved, 0)
        curvatures = np.einsum("jk,ji,jl->ikl", Z * share[:, None], is_in, Z)
        spectra = np.linalg.eigvalsh(curvatures / len(batch)) + RIDGE
        contraction = np.abs(1 - step * spectra).max(axis=1)
        # The gradient is off by half the third derivative times the squared moves.
        fourth = np.sum(np.where(is_in, moved, 0) ** 4, axis=0) ** 0.25
        norm_of_fourth = np.sqrt(norm * np.linalg.norm(Z, axis=1).max())
        gain = THIRD / 2 * norm / len(batch)
        reach = fourth + norm_of_fourth * bound
        with np.errstate(over="ignore"):  # where errors feed on themselves
            bound = contraction * bound + step * gain * reach**2
        linearised = prox(
            linearised - step * (slopes.T @ Z / len(batch) + RIDGE * linearised)
        )
        of_exact = np.where(is_in, expit(Z @ exact.T) - target[:, None], 0)
        exact = prox(exact - step * (of_exact.T @ Z / len(batch) + RIDGE * exact))
        coef = prox(coef - step * (slope @ Z / len(batch) + RIDGE * coef))
        change = np.linalg.norm(exact - coef, axis=1)
        error = np.linalg.norm(linearised - exact, axis=1)
        assert np.all(error <= bound + 1e-12)
        rows_of_table.append([change.mean(), error.mean(), bound.mean()])
    return np.array(rows_of_table)


def main(sizes=(250, 1000), output=None):
    """Print change, error and bound after the last update, and draw them."""
    names = "gradient descent", "proximal gradient descent", "SGD"
    figure, axes = plt.subplots(
        1, 3, figsize=(7, 3.8), sharey=True, constrained_layout=True
    )
    print(f"{'':28}{'n':>6}{'change':>10}{'error':>10}{'bound':>10}")
    for ax, name in zip(axes, names):
        for n in sizes:
            curves = compared(name, n)
            cells = "".join(f"{value:10.1e}" for value in curves[-1])
            print(f"{name:28}{n:6}{cells}")
            for curve, (color, label) in zip(curves.T, STYLES.values()):
                is_large = n == sizes[-1]
                # The first update is exact: an error of zero is not on a log scale.
                ax.plot(
                    np.arange(1, N_UPDATES + 1),
                    np.where(curve > 0, curve, np.nan),
                    color=color,
                    linestyle="-" if is_large else ":",
                    label=label if is_large else None,
                    linewidth=2,
                )
        ax.set_title(name, fontsize="medium")
        ax.set(xlabel="updates", xscale="log", yscale="log")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("distance of coefficients")
    axes[0].set_ylim(1e-6, 1)
    handles, texts = axes[0].get_legend_handles_labels()
    for n, style in zip(sizes, (":", "-")):
        handles += plt.plot([], color="#808080", linestyle=style, linewidth=2)
        texts.append(f"{n} rows")
    figure.legend(handles, texts, loc="outside upper center", ncols=3, frameon=False)
    if output is not None:
        path = Path(output) / "loo_bound.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
