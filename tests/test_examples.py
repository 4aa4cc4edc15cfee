"""Every example runs, at a tiny size."""

import re
import runpy
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from benchmarks.examples import missing_extras
from skacv import IterativeRidge
from skacv.optim.arrays import design_of
from skacv.optim.losses import SquaredError
from skacv.optim.penalties import SquaredL2
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import GradientDescent
from skacv.optim.trajectory import Phase
from skacv.risk.held_out_rows import LeaveOutRule, LeftOutRows

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

EXAMPLES = Path(__file__).parents[1] / "examples"
TINY = {
    "plot_boosting": {"n_rows": 80, "n_splits": 1},
    "plot_l1_support": {"n": 30, "p": 40, "values": (0.1, 0.5), "max_iter": 100},
    "plot_loo_bound": {"sizes": (60, 120)},
    "plot_batch_size": {"n": 60, "sizes": (4, 60), "max_iter": 5},
    "plot_coefficient_intervals": {"n_rows": 200, "max_iter": 5},
    "plot_computational_reach": {"n": 60, "n_epochs": 20},
    "plot_double_descent": {
        "n": 30,
        "counts": (5, 40),
        "max_iter": 10,
        "n_repeats": 1,
    },
    "plot_early_stopping": {"n_rows": 60},
    "plot_elliptical_rows": {"n": 30, "p": 45, "n_repeats": 2},
    "plot_frozen_features": {"n_drawings": 30, "width": 20, "max_iter": 3},
    "plot_gcv_fails": {"n": 40, "p": 60, "n_repeats": 2},
    "plot_iacv": {
        "n_small": 30,
        "n_large": 40,
        "n_updates": 12,
        "n_batches": 30,
        "n_left_out": 5,
        "n_repeats": 2,
    },
    "plot_intervals": {"n_rows": 30, "n_splits": 2, "max_iter": 8},
    "plot_kernel_spectra": {"n_rows": 60, "n_directions": 5, "n_epochs": 20},
    "plot_kernel_probabilities": {
        "n_rows": 300,
        "max_iter": 5,
        "n_values": 2,
        "n_splits": 1,
    },
    "plot_logistic": {"n_rows": 200, "n_splits": 1, "patience": 5, "n_values": 3},
    "plot_logistic_risk": {"share": 0.1, "n_splits": 1},
    "plot_memory_matrix": {"n": 50, "p": 75, "n_nonzero": 5},
    "plot_one_pass": {"n_rows": 3000},
    "plot_noisy_digits": {
        "n_rows": 300,
        "max_iter": 5,
        "n_values": 2,
        "n_splits": 1,
    },
    "plot_robust_sgd": {"share": 0.02},
    "plot_which_estimate": {"n_sizes": 4},
    "plot_rkhs_norm": {"sizes": (30, 60), "n_repeats": 1, "max_iter": 10},
    "plot_stopping_matters": {"n_rows": 200, "max_iter": 10, "n_splits": 1},
    "plot_svm": {
        "n": 30,
        "p": 5,
        "n_updates": 12,
        "n_rows": 60,
        "n_values": 2,
        "n_splits": 2,
    },
}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def names_of(example):
    return runpy.run_path(str(EXAMPLES / f"{example}.py"))


def test_none_is_forgotten():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(TINY)


def test_gallery_shows_every_example_once():
    page = (EXAMPLES / "index.rst").read_text()
    cards = re.findall(r"^   \.\./examples/(\w+)\.py$", page, re.MULTILINE)
    pages = re.findall(r"^   (plot_\w+)$", page, re.MULTILINE)
    assert cards == pages
    assert sorted(cards) == sorted(TINY)


# Peers of few rows may not converge, or have classes of fewer rows than folds.
@pytest.mark.filterwarnings("ignore:The least populated class in y has only")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.usefixtures("few_trees")
@pytest.mark.parametrize("example", TINY)
def test_example_prints_and_draws(example, tmp_path, capsys):
    if missing := missing_extras(EXAMPLES / f"{example}.py"):
        pytest.skip(f"needs skacv[{','.join(missing)}]")
    names_of(example)["main"](**TINY[example], output=tmp_path / "figures")
    (figure,) = (tmp_path / "figures").glob("*.png")
    assert figure.name == f"{example.removeprefix('plot_')}.png"
    assert str(figure) in capsys.readouterr().out


def test_extras_of_an_example_are_known(tmp_path):
    example = tmp_path / "plot.py"
    example.write_text("import numpy\nfrom skacv.jax import OptaxRegressor\n")
    assert missing_extras(example) == ([] if find_spec("jax") else ["jax"])
    example.write_text("import numpy\nfrom skacv import IterativeRidge\n")
    assert missing_extras(example) == []


@pytest.mark.parametrize("solver", ["gradient descent", "Nesterov"])
def test_degrees_of_freedom_are_the_trace_of_the_fit(solver, rng):
    names = names_of("plot_gcv_fails")
    X = rng.standard_normal((12, 20))
    name, schedule = names["SOLVERS"][solver]
    # The fits of the unit vectors are the columns of the map y -> X b_t.
    model = IterativeRidge(
        0.0, solver=name, fit_intercept=False, max_iter=15, tol=0, risk=False, loo=False
    ).fit(X, np.eye(12))
    traces = [np.trace(X @ coef.T) for coef in model.coef_path_]
    eigenvalues = np.linalg.eigvalsh(X @ X.T / 12)
    df = names["degrees_of_freedom"](eigenvalues, schedule(model.step_size_), 15)
    np.testing.assert_allclose(df, traces, rtol=1e-10, atol=1e-12)


def test_newton_step_is_exact_at_a_converged_ridge(rng):
    names = names_of("plot_iacv")
    X, y = rng.standard_normal((15, 4)), rng.standard_normal((15, 1))
    problem = Problem(design_of(X), y, np.full((15, 1), 1 / 15), SquaredError())
    plan = [Phase(SquaredL2(0.1), GradientDescent(1 / problem.smoothness), 2000)]
    trajectory = run(problem, plan, np.zeros((1, 4, 1)))
    rows = np.array([0, 7, 14])
    left_out = LeftOutRows.of(problem, rows, LeaveOutRule())
    *_, found = names["newton_steps"](problem, trajectory, left_out, own_hessian=True)
    for row, coef in zip(rows, found):
        others = np.delete(X, row, axis=0)
        hessian = others.T @ others + 15 * 0.1 * np.eye(4)
        expected = np.linalg.solve(hessian, others.T @ np.delete(y, row))
        np.testing.assert_allclose(coef, expected, rtol=1e-10)


def test_steps_of_batches_are_halved_as_published():
    schedule = names_of("plot_iacv")["HalvedBatches"](0.5, 30, 10)
    steps = [step.step_size for step, _ in zip(schedule.updates(), range(1600))]
    halved = np.flatnonzero(np.diff(steps)) + 1  # in units of ten batches
    assert halved.tolist() == [100, 300, 700, 1500]
    assert steps[0] == 0.5
    assert steps[-1] == 0.5 / 16
