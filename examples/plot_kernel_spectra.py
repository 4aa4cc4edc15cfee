"""
Eigenvalues of kernels on real data, and the epochs they need
=============================================================

Let lambda_k be the eigenvalues of K / n and u_k its eigenvectors. After t updates,
kernel gradient descent has left (1 - step_size * lambda_k)^t of the part of the targets
along u_k. The step size is one over lambda_1, so direction k takes about
lambda_1 / lambda_k epochs. EigenPro with q directions has lambda_{q+1} in place of
lambda_1, and learns the first q directions at once.

The data are images of digits, and the target is whether a digit is even. The upper
panel shows the eigenvalues of a Gaussian and of a Laplace kernel, both of
``gamma="scale"``. From about the hundredth on, those of the Gaussian kernel fall much
faster. The lower panel shows training errors along runs of ``KernelEigenProRegressor``,
and lines for gradient descent as predicted by the eigenvalues: the runs are on the
lines.

The Gaussian kernel is ahead at first. It fits what the first hundred directions hold
and then slows down, which is its regularisation. The Laplace kernel fits the rest in
fewer epochs (Belkin, Ma and Mandal 2018; Ma and Belkin 2017). EigenPro uses 100
directions, estimated from a subsample of the rows. If gradient descent needs a hundred
epochs or more for an error, EigenPro needs less than a tenth as many.

Run ``python examples/plot_kernel_spectra.py --output DIR`` to write the figure.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import eigh
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

from skacv import KernelEigenProRegressor

KERNELS = {
    "Gaussian": {"kernel": "rbf", "gamma": "scale"},
    "Laplace": {"kernel": "laplacian", "gamma": "scale"},
}
COLOURS = {"Gaussian": "#0072B2", "Laplace": "#D55E00"}
SHOWN = (0, 1, 10, 100, 1000)


def run(X, y, kernel, n_components, n_epochs):
    """Full-batch iterations, plain or preconditioned from a subsample."""
    return KernelEigenProRegressor(
        **kernel,
        solver="eigenpro" if n_components else "gd",
        n_components=n_components,
        batch_size=len(X),
        max_iter=n_epochs,
        patience=None,
        loo=False,
        fit_intercept=False,
        random_state=0,
    ).fit(X, y)


def spectrum(model, X):
    """Eigenvalues and vectors of K / n, the largest first."""
    # The Gaussian kernel is of squared distances, the Laplace kernel of distances.
    power = 2 if model.kernel == "rbf" else 1
    K = np.exp(-model.gamma_ * cdist(X, X) ** power)
    values, vectors = eigh(K / len(X))
    return values[::-1], vectors[:, ::-1]


def main(n_rows=1000, n_directions=100, n_epochs=1000, output=None):
    """Print eigenvalues and training errors, and draw them."""
    X, digits = load_digits(return_X_y=True)
    X, y = X[:n_rows], np.where(digits[:n_rows] % 2, -1.0, 1.0)
    figure, axes = plt.subplots(2, 1, figsize=(7, 7.4), constrained_layout=True)
    epochs = np.unique(np.geomspace(1, n_epochs, 13).astype(int))
    shown = [t for t in SHOWN if t <= n_epochs]
    print("Mean squared training error after so many epochs\n")
    header = "".join(f"{t:>9}" for t in shown)
    print(f"{'':32}{header}")
    for name, kernel in KERNELS.items():
        for q in (0, n_directions):
            model = run(X, y, kernel, q, n_epochs)
            label = f"{name}, {'EigenPro' if q else 'gradient descent'}"
            style = {"color": COLOURS[name], "marker": "s" if q else "o"}
            axes[1].plot(
                epochs, model.train_path_[epochs], linestyle="", label=label, **style
            )
            cells = "".join(f"{model.train_path_[t]:9.4f}" for t in shown)
            print(f"{label:32}{cells}")
        values, vectors = spectrum(model, X)
        parts = (vectors.T @ y) ** 2 / len(y)
        expected = [parts @ (1 - values / values[0]) ** (2 * t) for t in epochs]
        print(
            f"{'':3}predicted of gradient descent, at {epochs[-1]}: {expected[-1]:.4f}"
        )
        axes[1].loglog(epochs, expected, color=COLOURS[name], linewidth=2)
        axes[0].loglog(
            np.arange(1, n_rows + 1),
            values / values[0],
            color=COLOURS[name],
            label=name,
            linewidth=2,
        )
    axes[0].set(xlabel="direction k", ylabel="eigenvalue over the largest")
    axes[0].set_title(
        "Eigenvalues: the smaller, the more epochs a direction needs", loc="left"
    )
    axes[1].set(xlabel="epoch", ylabel="training error")
    axes[1].set_ylim(1e-3, 3)
    axes[1].set_title(
        "Training errors (points), as the eigenvalues predict (lines)", loc="left"
    )
    for ax in axes:
        ax.legend(frameon=False)
        ax.spines[["top", "right"]].set_visible(False)
    if output is not None:
        path = Path(output) / "kernel_spectra.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nFigure: {path}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", help="directory for the figure")
    main(output=parser.parse_args().output)
