"""
The norm of functions that fit noisy labels
===========================================

Bounds on the error of kernel machines grow with the norm of the function in the
kernel's space. The figure shows this norm for three functions of a run, on more and
more rows of one data set: the first that is right about the sign of every training
label ("overfitted"), the one at the end of the run ("interpolated"), and the one that
leave-one-out chooses. The labels are clean, or a tenth of them are drawn at random.

With noisy labels, the norms of the first two grow like the root of the number of rows:
fourfold from 100 to 1600 rows. At 1600 rows they are more than twice as large as with
clean labels. Yet the test error grows by less than a percentage point, so such bounds
do not explain why these functions predict well (Belkin, Ma and Mandal 2018, "To
understand deep learning we need to understand kernel learning").

On clean labels, leave-one-out chooses the end of the run. On noisy labels it stops
before, at a norm that is smaller than that of the function that interpolates the clean
labels.

The norms of all iterates are ``rkhs_norm_path_``, sqrt(alpha' K alpha), which cost
nothing extra: K alpha are the predictions that the run computes anyway.

Run ``python examples/plot_rkhs_norm.py --output DIR`` to write the figure.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skacv import KernelEigenProRegressor

SIZES = (100, 200, 400, 800, 1600)
NOISE = (0.0, 0.1)
N_TEST = 2000
KINDS = {
    "interpolated": {"linestyle": "-", "marker": "o"},
    "overfitted": {"linestyle": "--", "marker": "s"},
    # Hollow: without noise it lies on the interpolated ones.
    "stopped by leave-one-out": {
        "linestyle": ":",
        "marker": "^",
        "markersize": 10,
        "markerfacecolor": "none",
    },
}
COLOURS = {0.0: "#009E73", 0.1: "#D55E00"}


def drawn(n, seed):
    """Two clouds of points far apart, labels -1 and 1."""
    rng = np.random.default_rng(seed)
    label = rng.choice([-1.0, 1.0], n)
    X = rng.standard_normal((n, 10))
    X[:, 0] += 2.5 * label
    return X, label, rng.random(n), rng.choice([-1.0, 1.0], n)


def norms(X, label, X_test, truth, max_iter):
    """Norm and test error of the three functions, from one run."""
    model = KernelEigenProRegressor(
        kernel="laplacian",
        gamma="scale",
        solver="eigenpro",
        fit_intercept=False,
        max_iter=max_iter,
        patience=None,
        random_state=0,
    ).fit(X, label)
    wrong = np.array([np.any(z * label <= 0) for z in model.staged_predict(X)])
    iterates = {
        "interpolated": model.n_iter_,
        "overfitted": int(np.argmin(wrong)) if not wrong.all() else model.n_iter_,
        "stopped by leave-one-out": int(model.loo_path_.argmin()),
    }
    return {
        kind: (
            model.rkhs_norm_path_[t],
            np.mean(model.at_iteration(t).predict(X_test) * truth <= 0),
        )
        for kind, t in iterates.items()
    }


def table(sizes, n_repeats, max_iter):
    """For every noise and size: mean norm and test error of every kind."""
    for noise in NOISE:
        for n in sizes:
            results = []
            for seed in range(n_repeats):
                X, truth, uniform, random = drawn(max(sizes) + N_TEST, seed)
                label = np.where(uniform < noise, random, truth)
                # The rows of the smaller sets are among those of the larger ones.
                train, test = slice(n), slice(max(sizes), None)
                data = X[train], label[train], X[test], truth[test]
                results.append(list(norms(*data, max_iter).values()))
            yield noise, n, dict(zip(KINDS, np.mean(results, axis=0)))


def main(sizes=SIZES, n_repeats=3, max_iter=300, output=None):
    """Print the table and draw the figure."""
    print("Norm, and test error in percent in brackets:\n")
    print(f"{'noise':6}{'rows':>6}" + "".join(f"{kind:>26}" for kind in KINDS))
    figure, ax = plt.subplots(figsize=(7, 4.6), constrained_layout=True)
    results = {}
    for noise, n, kinds in table(sizes, n_repeats, max_iter):
        cells = [f"{norm:.1f} ({100 * error:.1f})" for norm, error in kinds.values()]
        print(f"{noise:<6}{n:6}" + "".join(f"{cell:>26}" for cell in cells))
        for kind, (norm, _) in kinds.items():
            results.setdefault((noise, kind), []).append(norm)
    for (noise, kind), path in results.items():
        label = f"{kind}, {100 * noise:.0f}% noise"
        ax.loglog(sizes, path, color=COLOURS[noise], label=label, **KINDS[kind])
    ax.set_xlabel("training rows, of one data set")
    ax.set_ylabel("norm of the function")
    ax.set_xticks(sizes, sizes)
    ax.set_yticks([1, 2, 5, 10, 20, 50], [1, 2, 5, 10, 20, 50])
    ax.minorticks_off()
    ax.set_title("Label noise makes the norm of what fits it grow", loc="left")
    ax.legend(frameon=False, fontsize="small")
    ax.spines[["top", "right"]].set_visible(False)
    if output is not None:
        path = Path(output) / "rkhs_norm.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
