"""Every example runs, at a tiny size."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from skacv import IterativeRidge

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

EXAMPLES = Path(__file__).parents[1] / "examples"
TINY = {
    "plot_early_stopping": {"n_rows": 60},
    "plot_elliptical_rows": {"n": 30, "p": 45, "n_repeats": 2},
    "plot_gcv_fails": {"n": 40, "p": 60, "n_repeats": 2},
    "plot_intervals": {"n_rows": 30, "n_splits": 2, "max_iter": 8},
    "plot_memory_matrix": {"n": 50, "p": 75, "n_nonzero": 5},
}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def names_of(example):
    return runpy.run_path(str(EXAMPLES / f"{example}.py"))


def test_none_is_forgotten():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(TINY)


@pytest.mark.parametrize("example", TINY)
def test_example_prints_and_draws(example, tmp_path, capsys):
    names_of(example)["main"](**TINY[example], output=tmp_path / "figures")
    (figure,) = (tmp_path / "figures").glob("*.png")
    assert figure.name == f"{example.removeprefix('plot_')}.png"
    assert str(figure) in capsys.readouterr().out


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
