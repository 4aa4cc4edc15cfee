"""What does risk_path_ take: a twelfth of the textbook's time, three times the run's?

The opponents are the published memory matrix, the loop that anyone writes, and the fit
without ``risk_path_``; its memory is bounded by that of X.
"""

from functools import partial
from types import SimpleNamespace

import numpy as np
from sklearn.base import clone

from skacv import TrajectoryLasso, TrajectoryLogisticRegression
from skacv.optim.arrays import design_of
from skacv.optim.penalties import L1
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import GradientDescent
from skacv.optim.trajectory import Phase
from skacv.risk.memory.memory_matrix import estimate_risk
from tests.oracles import probed_memory_matrix, risk_gram

from ..data import sparse_regression
from ..framework import Row, medians, peak_bytes, seconds

ALPHA = 0.01


def probed_risk(X, y, step_size, n_updates, signs):
    """Coefficients of ISTA, and a function that estimates its risk by given probes."""
    n, p = X.shape
    problem = Problem(design_of(X), y[:, None], np.full((n, 1), 1 / n))
    # A number of NumPy would have tangents in double precision.
    plan = [Phase(L1(ALPHA), GradientDescent(float(step_size)), n_updates)]
    trajectory = run(problem, plan, np.zeros((1, p, 1)))

    def risk():
        rng = SimpleNamespace(choice=lambda values, size: signs)
        n_probes = signs.shape[1]
        return estimate_risk(problem, trajectory, method=n_probes, rng=rng).path

    return trajectory.coef[:, :, 0], risk


def ista(X, y, step_size, n_updates):
    """The loop that anyone writes: two products an update, nothing kept."""
    b = np.zeros(X.shape[1])
    for _ in range(n_updates):
        u = b + step_size / len(y) * (X.T @ (y - X @ b))
        b = np.sign(u) * np.maximum(np.abs(u) - step_size * ALPHA, 0)
    return b


def textbook(n=2000, p=3000, n_updates=100):
    """risk_path_ of ISTA, the same ten probes: T^2 m / 2 columns against T k m."""
    X, y, _ = sparse_regression(n, p, n // 10, 0)
    step_size = n / np.linalg.norm(X, 2) ** 2
    signs = np.random.default_rng(1).choice([-1.0, 1.0], size=(n, 10))
    coef, ours = probed_risk(X, y, step_size, n_updates, signs)

    def by_the_book():
        A = probed_memory_matrix(X, coef, step_size, signs)
        return np.diag(risk_gram(A, y - coef @ X.T))

    theirs, expected = seconds(by_the_book)
    ((own, path),) = medians(ours, repeats=3)
    error = np.abs(path / expected - 1).max()
    work = f"risk_path_, ISTA {n} x {p}, T={n_updates}, 10 probes"
    said = f"path differs by {error:.0e} (<= 1e-3)"
    yield Row.speed(work, "textbook memory matrix", own, theirs, ">= 12", said)


def bare_loop(n=2000, p=3000):
    """The whole fit with risk="auto" against the loop alone, and in T."""
    X, y, _ = sparse_regression(n, p, n // 10, 0)
    settings = {"solver": "ista", "tol": 0, "fit_intercept": False, "loo": False}

    def fit(n_updates):
        return TrajectoryLasso(ALPHA, max_iter=n_updates, **settings).fit(X, y)

    step_size = fit(1).step_size_
    (own, fitted), (bare, _), (long, _) = medians(
        partial(fit, 100),
        partial(ista, X, y, step_size, 100),
        partial(fit, 400),
        repeats=5,
    )
    work, against = 'fit with risk="auto", the same', "bare NumPy ISTA loop (cost)"
    yield Row.cost(work, against, own, bare, "<= 3", f"{fitted.n_probes_} probes")
    yield Row.cost("the same, T=400", "T=100 (cost)", long, own, "<= 5")


def curved(n=2000, p=3000):
    """A logistic run with risk="auto" against the run alone: ridge, and sparse."""
    X, signal, _ = sparse_regression(n, p, n // 10, 0)
    y = (signal > 0).astype(int)
    shared = {"max_iter": 100, "tol": 0, "loo": False, "random_state": 0}
    for name, settings in {
        "ridge": {"C": 0.01},
        "l1": {"C": 0.02, "l1_ratio": 1.0},
    }.items():
        model = TrajectoryLogisticRegression(**settings, **shared)
        (own, fitted), (alone, _) = medians(
            partial(model.fit, X, y),
            partial(clone(model).set_params(risk=False).fit, X, y),
            repeats=5,
        )
        work = f'TrajectoryLogisticRegression, {name}, risk="auto", {n} x {p}, T=100'
        said = f"{fitted.n_probes_} probes"
        yield Row.cost(work, "the same, risk=False (cost)", own, alone, "<= 3", said)


def memory(n=2000, p=3000):
    """Peak of a fit, X included, over X; the recorded path not counted."""
    for dtype in (np.float64, np.float32):
        X, y, _ = sparse_regression(n, p, n // 10, 0)
        X, y = X.astype(dtype), y.astype(dtype)
        path = 101 * sum(X.shape) * 8  # iterates are in double precision
        model = TrajectoryLasso(ALPHA, solver="ista", max_iter=100, loo=False)
        peak = X.nbytes + peak_bytes(model.fit, X, y) - path
        work = f"peak memory of the fit, {n} x {p}, {np.dtype(dtype).name}"
        sizes = 1e-6 * peak, 1e-6 * X.nbytes
        yield Row.cost(work, "X itself (MB)", *sizes, "<= 2", "path not counted")
