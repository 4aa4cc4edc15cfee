"""Ours beside each opponent, in one process, as ratios: ``make bench``.

Every row alternates the two sides and takes the median of their times, BLAS
threads as found. A ratio is opponent over ours where we should be faster, and
ours over the reference where a cost is bounded.
"""

import argparse
import sys
import tracemalloc
from collections import defaultdict
from functools import partial

import numpy as np
import sklearn
from sklearn.linear_model import LassoCV

from skacv import TrajectoryEarlyStoppingCV, TrajectoryLasso
from skacv.optim.design import Design
from skacv.optim.penalties import L1
from skacv.optim.problem import Problem
from skacv.optim.schedules import GradientDescent
from skacv.optim.trajectory import Phase, run
from skacv.risk.memory_matrix import estimate_risk
from tests.oracles import probed_memory_matrix, risk_gram

from . import kernels
from .data import sparse_regression, true_risk
from .held_out import folds, leave_one_out, logistic, ridge
from .report import Row, report
from .timing import medians, seconds

ALPHA = 0.01
# Of the alpha paths.
N_SEEDS = 10
HELD_OUT = {"loo": ">= 1", "cv": ">= 1"}


def bare_ista(X, y, step_size, n_updates):
    """The loop that anyone writes: two products an update, nothing kept."""
    b = np.zeros(X.shape[1])
    for _ in range(n_updates):
        u = b + step_size / len(y) * (X.T @ (y - X @ b))
        b = np.sign(u) * np.maximum(np.abs(u) - step_size * ALPHA, 0)
    return b


class FixedSigns:
    """Draws the given probes."""

    def __init__(self, signs):
        self.signs = signs

    def choice(self, values, size):
        return self.signs


def textbook_memory_matrix():
    """risk_path_ of ISTA, the same ten probes: T^2 m / 2 columns against T k m."""
    X, y, _ = sparse_regression(2000, 3000, 200, 0)
    problem = Problem(Design(X), y[:, None], np.full((2000, 1), 1 / 2000))
    step_size = 1 / problem.smoothness
    plan = [Phase(L1(ALPHA), GradientDescent(step_size), 100)]
    trajectory = run(problem, plan, np.zeros((1, 3000, 1)))
    signs = np.random.default_rng(1).choice([-1.0, 1.0], size=(2000, 10))
    coef = trajectory.coef[:, :, 0]

    def textbook():
        A = probed_memory_matrix(X, coef, step_size, signs)
        return np.diag(risk_gram(A, y - coef @ X.T))

    def ours():
        return estimate_risk(problem, trajectory, method=10, rng=FixedSigns(signs)).path

    theirs_time, expected = seconds(textbook)
    ((ours_time, path),) = medians(ours, repeats=3)
    error = np.abs(path / expected - 1).max()
    yield (
        "risk_path_, ISTA 2000 x 3000, T=100, 10 probes",
        "textbook memory matrix",
        ours_time,
        theirs_time,
        theirs_time / ours_time,
        ">= 12",
        f"path differs by {error:.0e} (<= 1e-3)",
    )


def bare_loop():
    """The whole fit with risk="auto" against the loop alone, and in T."""
    X, y, _ = sparse_regression(2000, 3000, 200, 0)

    def model(n_updates):
        return TrajectoryLasso(
            ALPHA,
            solver="ista",
            max_iter=n_updates,
            tol=0,
            fit_intercept=False,
            loo=False,
        )

    step_size = model(1).fit(X, y).step_size_
    (fit_time, fitted), (bare_time, _), (long_time, _) = medians(
        lambda: model(100).fit(X, y),
        lambda: bare_ista(X, y, step_size, 100),
        lambda: model(400).fit(X, y),
        repeats=5,
    )
    yield (
        'fit with risk="auto", the same',
        "bare NumPy ISTA loop (cost)",
        fit_time,
        bare_time,
        fit_time / bare_time,
        "<= 4",
        f"{fitted.n_probes_} probes",
    )
    yield (
        "the same, T=400",
        "T=100 (cost)",
        long_time,
        fit_time,
        long_time / fit_time,
        "<= 5",
        "",
    )


def alpha_path(n, p, n_nonzero, asked, max_iter):
    """All alphas in one trajectory, stopped by every criterion, against LassoCV.

    ``max_iter`` and twice that for patience are those of the held-out criteria.
    """
    patience = 2 * max_iter

    def stopping(criterion, max_iter, patience=None, **held_out):
        inner = TrajectoryLasso("path", max_iter=max_iter, **held_out)
        return TrajectoryEarlyStoppingCV(inner, criterion=criterion, patience=patience)

    criteria = {
        "risk": stopping("risk", 20),
        "loo": stopping("loo", max_iter, patience, loo=True),
        "cv": stopping("cv", max_iter, patience, cv=10),
    }
    settings = f"max_iter={max_iter}, patience={patience},"
    works = {
        "risk": "risk_path_, max_iter=20,",
        "loo": f"exact loo_path_ of all rows, {settings}",
        "cv": f"cv_path_ of 10 folds, {settings}",
    }
    times, risks = defaultdict(list), defaultdict(list)
    for seed in range(N_SEEDS):
        X, y, beta = sparse_regression(n, p, n_nonzero, seed)
        for name, model in {"LassoCV": lasso_cv(), **criteria}.items():
            elapsed, _ = seconds(partial(model.fit, X, y))
            times[name].append(elapsed)
            risks[name].append(true_risk(model.coef_, model.intercept_, beta))
    theirs = np.array(times["LassoCV"])
    for name, work in works.items():
        worse = np.divide(risks[name], risks["LassoCV"])
        yield (
            f'alpha="path" with {work} and stop, {n} x {p}, median of {N_SEEDS} seeds',
            "LassoCV(cv=5, 30 alphas)",
            np.median(times[name]),
            np.median(theirs),
            float(np.median(theirs / times[name])),
            asked[name],
            f"true risk {np.median(worse):.3f} of its (<= 1.02), at most "
            f"{worse.max():.3f}",
        )


def lasso_cv():
    """LassoCV with 30 alphas; the parameter's name changed in 1.7."""
    name = "alphas" if sklearn.__version__ >= "1.7" else "n_alphas"
    return LassoCV(cv=5, **{name: 30})


def memory():
    """Peak of a fit, X included, over X; the recorded path not counted."""
    for dtype in (np.float64, np.float32):
        X, y, _ = sparse_regression(2000, 3000, 200, 0)
        X, y = X.astype(dtype), y.astype(dtype)
        path = 101 * sum(X.shape) * X.itemsize
        model = TrajectoryLasso(ALPHA, solver="ista", max_iter=100, loo=False)
        tracemalloc.start()
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1] - path
        tracemalloc.stop()
        megabytes = 1e-6 * X.nbytes
        yield (
            f"peak memory of the fit, 2000 x 3000, {np.dtype(dtype).name}",
            "X itself (MB)",
            1e-6 * peak + megabytes,
            megabytes,
            1 + peak / X.nbytes,
            "<= 2",
            "path not counted",
        )


BENCHMARKS = {
    "textbook": textbook_memory_matrix,
    "bare": bare_loop,
    "path": lambda: alpha_path(2000, 3000, 200, {"risk": ">= 5", **HELD_OUT}, 10),
    "path-small": lambda: alpha_path(500, 2000, 50, {"risk": ">= 1", **HELD_OUT}, 20),
    "loo": leave_one_out,
    "folds": folds,
    "ridge": lambda: ridge(2000, 200, 1000),
    "ridge-large": lambda: ridge(10_000, 500, 500),
    "logistic": logistic,
    "kernel": kernels.kernel_ridge,
    "digits": kernels.digits,
    "memory": memory,
    "kernel-memory": kernels.memory,
}


def rows(names):
    for name in names:
        for row in BENCHMARKS[name]():
            yield Row(*row)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(BENCHMARKS))
    parser.add_argument("--output", help="Markdown file for the table, JSON beside it")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"unknown: {', '.join(sorted(unknown))}")
    names = arguments.names or list(BENCHMARKS)
    report("Speed and memory", rows(names), arguments.output)
