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
faster. The middle panel shows training errors along runs of
``KernelEigenProRegressor``, and lines for gradient descent as predicted by the
eigenvalues: the runs are on the lines.

The Gaussian kernel is ahead at first. It fits what the first hundred directions hold
and then slows down, which is its regularisation. The Laplace kernel fits the rest in
fewer epochs (Belkin, Ma and Mandal 2018; Ma and Belkin 2017). EigenPro uses 100
directions, estimated from a subsample of the rows. If gradient descent needs a hundred
epochs or more for an error, EigenPro needs less than a tenth as many.

Ma and Belkin (2017, theorem 1) prove that the eigenvalues of an infinitely
differentiable radial kernel in p columns are below C' exp(-C k^(1/p)) from some k on,
with constants C and C'. The last table fits this form, and a power of k, to the
logarithms of the eigenvalues 10 to 300 that are above rounding errors, on leading
principal components of the digits and on all 64 columns. Those of the Gaussian kernel
follow the theorem's form more closely than a power for every p; those of the Laplace
kernel, which is not differentiable, are closer to a power. With two components (lower
panel, fits dashed) the two kinds of decay are far apart. With all columns they are not:
the first 300 eigenvalues of the Gaussian kernel fall like k^-1.45 with a share of
0.9992 explained, and those of the Laplace kernel like k^-0.87.

Run ``python examples/plot_kernel_spectra.py --output DIR`` to write the figure.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import eigh
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from skacv import KernelEigenProRegressor

KERNELS = {
    "Gaussian": {"kernel": "rbf", "gamma": "scale"},
    "Laplace": {"kernel": "laplacian", "gamma": "scale"},
}
COLOURS = {"Gaussian": "#0072B2", "Laplace": "#D55E00"}
SHOWN = (0, 1, 10, 100, 1000)
DIMENSIONS = (2, 4, 8, 16, 64)
# Eigenvalues whose decay is fitted; smaller ones than the last are rounding errors.
FITTED, ROUNDING = (10, 300), 1e-12


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


def spectrum(X, kernel, gamma):
    """Eigenvalues and vectors of K / n, the largest first."""
    # The Gaussian kernel is of squared distances, the Laplace kernel of distances.
    power = 2 if kernel == "rbf" else 1
    K = np.exp(-gamma * cdist(X, X) ** power)
    values, vectors = eigh(K / len(X))
    return values[::-1], vectors[:, ::-1]


def decay(values, power):
    """Least squares of log eigenvalues on k^power, or on log k if it is zero.

    Returns the slope, the share of variance explained, and the k's and values fitted.
    """
    k = np.arange(1, len(values) + 1)
    first, last = FITTED
    k = k[(k >= first) & (k <= last) & (values > ROUNDING * values[0])]
    x, y = (k**power if power else np.log(k)), np.log(values[k - 1])
    slope, intercept = np.polyfit(x, y, 1)
    left = y - slope * x - intercept
    return slope, 1 - left.var() / y.var(), k, np.exp(slope * x + intercept)


def draw_decay(X, ax):
    """Print the decay by the number of columns; draw it for the smallest number."""
    print("\nDecay of eigenvalues {} to {} in p columns".format(*FITTED))
    print("and the share of the variance of their logarithms that it explains\n")
    print(f"{'':16}{'p':>4}{'C of exp(-C k^(1/p))':>24}{'':8}{'power of k':>16}{'':8}")
    for name, kernel in KERNELS.items():
        for p in DIMENSIONS:
            Z = X if p == X.shape[1] else PCA(p, random_state=0).fit_transform(X)
            # As gamma="scale" has it: per squared distance, or per distance.
            gamma = (p * Z.var()) ** (-1 if name == "Gaussian" else -0.5)
            values, _ = spectrum(Z, kernel["kernel"], gamma)
            by_theorem, by_power = decay(values, 1 / p), decay(values, 0)
            rate, explained, _, curve = by_theorem
            power, by_this, k, line = by_power
            print(
                f"{name:16}{p:4}{-rate:24.2f}{explained:8.4f}{power:16.2f}{by_this:8.4f}"
            )
            if p == DIMENSIONS[0]:
                shown = values[values > ROUNDING * values[0]]
                style = {"color": COLOURS[name], "linewidth": 2, "label": name}
                ax.loglog(np.arange(1, len(shown) + 1), shown / values[0], **style)
                fitted = curve if explained > by_this else line
                style = {"color": "black", "linestyle": "--", "linewidth": 1}
                ax.loglog(k, fitted / values[0], **style)


def main(n_rows=1000, n_directions=100, n_epochs=1000, output=None):
    """Print eigenvalues and training errors, and draw them."""
    X, digits = load_digits(return_X_y=True)
    X, y = X[:n_rows], np.where(digits[:n_rows] % 2, -1.0, 1.0)
    figure, axes = plt.subplots(3, 1, figsize=(7, 10.6), constrained_layout=True)
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
        values, vectors = spectrum(X, model.kernel, model.gamma_)
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
    draw_decay(X, axes[2])
    axes[2].set(xlabel="direction k", ylabel="eigenvalue over the largest")
    axes[2].set_title("Eigenvalues on two principal components", loc="left")
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
