"""Kernel machines that stop themselves against those of scikit-learn."""

import tracemalloc

import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, train_test_split

from skacv import (
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    TrajectoryEarlyStoppingCV,
)

from .timing import medians, seconds

N_SPLITS = 5
LABEL_NOISE = 0.2


def drawn(n_rows, d=50, seed=0):
    """A smooth function of three directions of Gaussian rows, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, d))
    Z = X @ rng.standard_normal((d, 3)) / np.sqrt(d)
    y = np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2] + Z[:, 0]
    return X, y + 0.3 * rng.standard_normal(n_rows)


def kernel_ridge():
    """A fit that stops itself by leave-one-out against one KernelRidge fit."""
    n, d, n_test = 10_000, 50, 4000
    X, y = drawn(n + n_test, d)
    X, y, X_test, y_test = X[:n], y[:n], X[n:], y[n:]
    ours = KernelEigenProRegressor(gamma="scale", random_state=0)
    stopping = TrajectoryEarlyStoppingCV(ours)
    ridge = KernelRidge(alpha=1, kernel="rbf", gamma=1 / d)
    ((ours, model),) = medians(lambda: stopping.fit(X, y), repeats=3)
    theirs, ridge = min((seconds(lambda: ridge.fit(X, y)) for _ in range(3)), key=first)
    errors = [np.mean((m.predict(X_test) - y_test) ** 2) for m in (model, ridge)]
    yield (
        f"KernelEigenProRegressor with loo_path_ and stop, {n} x {d}",
        "KernelRidge(alpha=1), the fastest of 3 fits",
        ours,
        theirs,
        theirs / ours,
        ">= 2",
        f"test error {errors[0]:.4f}, {errors[0] / errors[1]:.3f} of its (<= 1.05); "
        f"estimated {model.best_score_:.4f}; stopped at epoch {model.best_iter_}",
    )


def first(pair):
    return pair[0]


def noisy_digits(seed):
    """Digits, a fifth of the training labels drawn anew.

    Returns
    -------
    X, labels, X_test, labels_test
    """
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(
        X / 16, y, test_size=500, random_state=seed, stratify=y
    )
    rng = np.random.default_rng(seed)
    noisy = np.where(rng.random(len(y)) < LABEL_NOISE, rng.integers(10, size=len(y)), y)
    return X, noisy, X_test, y_test


def digits():
    """Noisy labels: one run against KernelRidge, ten alphas in five folds."""
    ours, theirs, our_errors, their_errors = [], [], [], []
    for seed in range(N_SPLITS):
        X, y, X_test, y_test = noisy_digits(seed)
        gamma = 1 / (X.shape[1] * X.var())
        grid = GridSearchCV(
            KernelRidge(kernel="rbf", gamma=gamma),
            {"alpha": np.geomspace(1e-3, 1e2, 10)},
            cv=5,
        )
        elapsed, model = seconds(
            lambda X=X, y=y, seed=seed: TrajectoryEarlyStoppingCV(
                KernelEigenProClassifier(gamma="scale", random_state=seed)
            ).fit(X, y)
        )
        ours.append(elapsed)
        our_errors.append(np.mean(model.predict(X_test) != y_test))
        elapsed, _ = seconds(lambda X=X, y=y, grid=grid: grid.fit(X, np.eye(10)[y]))
        theirs.append(elapsed)
        their_errors.append(np.mean(grid.predict(X_test).argmax(axis=1) != y_test))
    yield (
        f"KernelEigenProClassifier with stop, digits with 20% label noise, "
        f"{N_SPLITS} splits",
        "KernelRidge, 10 alphas x 5 folds",
        np.median(ours),
        np.median(theirs),
        float(np.median(np.divide(theirs, ours))),
        ">= 1",
        f"test error {100 * np.mean(our_errors):.2f}% (theirs "
        f"{100 * np.mean(their_errors):.2f}%)",
    )


def memory():
    """Peak of a fit whose kernel matrix is not kept, X and the paths included."""
    n = 40_000
    X, y = drawn(n)
    tracemalloc.start()
    KernelEigenProRegressor(max_iter=3, random_state=0).fit(X, y)
    peak = (tracemalloc.get_traced_memory()[1] + X.nbytes) / 1e9
    tracemalloc.stop()
    asked = 2.0
    yield (
        f"peak memory of a kernel fit with loo_path_, {n} x 50 (GB)",
        "2 GB; the kernel matrix takes 6.4",
        peak,
        asked,
        peak / asked,
        "<= 1",
        "",
    )
