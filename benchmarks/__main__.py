"""Ours beside each opponent, in one process, as ratios: ``make bench``.

Every row alternates the two sides and takes the median of their times, BLAS
threads as found. A ratio is opponent over ours where we should be faster, and
ours over the reference where a cost is bounded.
"""

import argparse
import sys
import tracemalloc
from functools import partial

import numpy as np
from sklearn.base import clone

from skacv import TrajectoryLasso, TrajectoryLogisticRegression
from skacv.optim.arrays import design_of
from skacv.optim.penalties import L1
from skacv.optim.phases import Phase
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import GradientDescent
from skacv.risk.memory.memory_matrix import estimate_risk
from tests.oracles import probed_memory_matrix, risk_gram

from . import defaults, kernels, staged
from .alpha_paths import large, small
from .data import FixedSigns, sparse_regression
from .held_out import folds, leave_one_out, logistic, ridge
from .report import Row, report
from .timing import medians, seconds

ALPHA = 0.01


def bare_ista(X, y, step_size, n_updates):
    """The loop that anyone writes: two products an update, nothing kept."""
    b = np.zeros(X.shape[1])
    for _ in range(n_updates):
        u = b + step_size / len(y) * (X.T @ (y - X @ b))
        b = np.sign(u) * np.maximum(np.abs(u) - step_size * ALPHA, 0)
    return b


def textbook_memory_matrix():
    """risk_path_ of ISTA, the same ten probes: T^2 m / 2 columns against T k m."""
    X, y, _ = sparse_regression(2000, 3000, 200, 0)
    problem = Problem(design_of(X), y[:, None], np.full((2000, 1), 1 / 2000))
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
        "<= 3",
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


def curved_memory():
    """A logistic run with risk="auto" against the run alone: ridge, and sparse."""
    X, signal, _ = sparse_regression(2000, 3000, 200, 0)
    y = (signal > 0).astype(int)
    for name, settings in (
        ("ridge", {"C": 0.01}),
        ("l1", {"C": 0.02, "l1_ratio": 1.0}),
    ):
        shared = {"max_iter": 100, "tol": 0, "loo": False, "random_state": 0}
        model = TrajectoryLogisticRegression(**settings, **shared)
        (fit_time, fitted), (run_time, _) = medians(
            partial(model.fit, X, y),
            partial(clone(model).set_params(risk=False).fit, X, y),
            repeats=5,
        )
        yield (
            f'TrajectoryLogisticRegression, {name}, risk="auto", 2000 x 3000, T=100',
            "the same, risk=False (cost)",
            fit_time,
            run_time,
            fit_time / run_time,
            "<= 4",
            f"{fitted.n_probes_} probes",
        )


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
    "curved": curved_memory,
    "path": lambda: large(n_seeds=3),
    "path-small": lambda: small(n_seeds=5),
    "loo": leave_one_out,
    "folds": folds,
    "ridge": lambda: ridge(2000, 200, 1000),
    "ridge-large": lambda: ridge(10_000, 500, 500),
    "logistic": logistic,
    "kernel": kernels.kernel_ridge,
    "digits": kernels.digits,
    "tall": defaults.tall,
    "small": defaults.small,
    "tall-classes": defaults.tall_classes,
    "logistic-default": defaults.logistic,
    "svc-default": defaults.linear_svc,
    "kernel-default": defaults.kernel,
    "memory": memory,
    "kernel-memory": kernels.memory,
    "staged": staged.staged,
}


def rows(names):
    for name in names:
        for row in BENCHMARKS[name]():
            yield name, Row(*row)


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
