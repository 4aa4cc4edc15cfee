"""
How large a batch pays off
==========================

Kernel stochastic gradient descent fits data without noise. How many rows does it go
through until the training error is 5e-3? Up to the critical batch size m* = beta /
lambda_1 + 1, a batch of m rows is worth about m batches of one row. Beyond it, larger
batches waste rows (Ma, Bassily and Belkin 2018, "The power of interpolation"). m* is
small if one eigenvalue of the kernel is much larger than the others: here it is five
rows. EigenPro lowers the largest eigenvalues, and m* becomes several hundred rows.

Run ``python examples/plot_batch_size.py --output DIR`` to write the figure.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skacv import KernelEigenProRegressor

ENOUGH = 5e-3
FEWEST_EPOCHS = 10
SIZES = (1, 2, 4, 8, 16, 32, 64, 125, 250, 500, 1000)
STYLES = {
    "SGD": {"n_components": 0, "color": "#0072B2"},
    "EigenPro": {"n_components": 100, "color": "#D55E00"},
}


def drawn(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 8))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.5 * X[:, 3]


def samples_needed(X, y, batch_size, n_components, max_iter):
    """Rows gone through until the training error is low, and m*."""
    n_epochs = min(FEWEST_EPOCHS, max_iter)
    while True:
        model = KernelEigenProRegressor(
            kernel="laplacian",
            gamma="scale",
            n_components=min(n_components, len(X) // 4),
            batch_size=batch_size,
            max_iter=n_epochs,
            patience=None,
            loo=False,
            fit_intercept=False,
            store_every=n_epochs,
            random_state=0,
        ).fit(X, y)
        path = model.train_path_
        if path.min() <= ENOUGH or n_epochs == max_iter:
            break
        n_epochs = min(2 * n_epochs, max_iter)
    if path.min() > ENOUGH:
        return np.nan, model.critical_batch_size_
    epoch = np.argmax(path <= ENOUGH)
    # Within an epoch the error falls about geometrically.
    share = np.log(path[epoch - 1] / ENOUGH) / np.log(path[epoch - 1] / path[epoch])
    return (epoch - 1 + share) * len(X), model.critical_batch_size_


def table(n, sizes, max_iter):
    """For both methods: m*, and the samples that every batch size needs."""
    X, y = drawn(n)
    for name, style in STYLES.items():
        results = [
            samples_needed(X, y, m, style["n_components"], max_iter) for m in sizes
        ]
        yield name, results[0][1], [samples for samples, _ in results]


def main(n=1000, sizes=SIZES, max_iter=600, output=None):
    """Print the table and draw the figure."""
    print(f"Rows gone through until the mean squared error is {ENOUGH}:\n")
    print(f"{'batch size':12}{'m*':>8}" + "".join(f"{m:>9}" for m in sizes))
    figure, ax = plt.subplots(figsize=(7, 4.4), constrained_layout=True)
    for name, critical, samples in table(n, sizes, max_iter):
        print(f"{name:12}{critical:8.0f}" + "".join(f"{s:9.0f}" for s in samples))
        colour = STYLES[name]["color"]
        label = f"{name}, m* = {critical:.0f}"
        ax.loglog(sizes, samples, "o-", color=colour, label=label)
        ax.axvline(critical, color=colour, linestyle=":", linewidth=1)
    ax.set_xlabel("rows of a batch")
    ax.set_ylabel(f"rows until the error is {ENOUGH}")
    ax.set_title("Beyond m*, larger batches waste rows", loc="left")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    if output is not None:
        path = Path(output) / "batch_size.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
