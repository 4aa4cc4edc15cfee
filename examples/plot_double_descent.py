"""
Double descent, removed by stopping
===================================

Least squares is fitted to N random features of 300 rows. As N approaches the number of
rows, the test error of the fit rises to thousands of times that of the noise; beyond,
it falls again. This is double descent. Only the last iterate shows the peak.
Accelerated gradient descent towards the same fit, stopped where the exact ``loo_path_``
of the run is smallest, shows none: its error is within a few percent of that of the
best iterate in hindsight.

Run ``python examples/plot_double_descent.py --output DIR`` to write the figure.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skacv import IterativeRidge, TrajectoryEarlyStoppingCV

COUNTS = (10, 30, 100, 200, 270, 300, 330, 400, 600, 1000, 3000)
NOISE_LEVEL = 0.8
N_TEST = 2000
KINDS = {
    "least squares, run to its end": {"color": "#D55E00", "marker": "s"},
    "stopped by leave-one-out": {"color": "#0072B2", "marker": "o"},
    "best iterate in hindsight": {"color": "#000000", "linestyle": ":"},
}


def drawn(n, rng):
    X = rng.standard_normal((n, 5))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] / 2 + X[:, 3]
    return X, y + NOISE_LEVEL * rng.standard_normal(n)


def errors(n, n_features, max_iter, seed):
    """Test errors of the three fits on so many random Fourier features."""
    rng = np.random.default_rng(seed)
    X, y = drawn(n + N_TEST, rng)
    frequencies = rng.standard_normal((5, n_features)) / 2
    Z = np.sqrt(2 / n_features) * np.cos(
        X @ frequencies + rng.uniform(0, 2 * np.pi, n_features)
    )
    train, test = slice(n), slice(n, None)
    center, offset = Z[train].mean(axis=0), y[train].mean()
    coef = np.linalg.lstsq(Z[train] - center, y[train] - offset, rcond=1e-12)[0]
    last = (Z[test] - center) @ coef + offset
    model = TrajectoryEarlyStoppingCV(
        IterativeRidge(0.0, solver="nesterov", max_iter=max_iter, risk=False),
        criterion="loo",
    ).fit(Z[train], y[train])
    path = [np.mean((z - y[test]) ** 2) for z in model.staged_predict(Z[test])]
    return np.mean((last - y[test]) ** 2), path[model.best_iter_], min(path)


def table(n, counts, max_iter, n_repeats):
    """For every number of features, the median test errors."""
    for n_features in counts:
        results = [errors(n, n_features, max_iter, seed) for seed in range(n_repeats)]
        yield n_features, np.median(results, axis=0)


def main(n=300, counts=COUNTS, max_iter=300, n_repeats=3, output=None):
    """Print the table and draw the figure."""
    print(f"Test mean squared error; the noise alone has {NOISE_LEVEL**2:.2f}:\n")
    print(f"{'features':10}" + "".join(f"{kind:>32}" for kind in KINDS))
    rows = list(table(n, counts, max_iter, n_repeats))
    for n_features, values in rows:
        print(f"{n_features:<10}" + "".join(f"{value:32.3g}" for value in values))
    figure, ax = plt.subplots(figsize=(7, 4.4), constrained_layout=True)
    for (kind, style), path in zip(KINDS.items(), np.transpose([v for _, v in rows])):
        ax.loglog(counts, path, label=kind, **style)
    ax.axvline(n, color="#666666", linestyle="--", linewidth=1)
    place = {"xycoords": ax.get_xaxis_transform(), "textcoords": "offset points"}
    ax.annotate(f"{n} features", (n, 0.8), (-4, 0), ha="right", **place)
    ax.set_xlabel(f"random features, for {n} rows")
    ax.set_ylabel("test mean squared error")
    ax.set_title("Only the last iterate shows the peak of double descent", loc="left")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    if output is not None:
        path = Path(output) / "double_descent.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
