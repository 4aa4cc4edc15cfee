"""The displays draw what the estimator recorded."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    CoefficientPathDisplay,
    IterativeRidge,
    RiskPathDisplay,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture
def data(rng):
    X = 3 * rng.standard_normal((80, 10)) + 1
    return X, X[:, 0] + rng.standard_normal(80)


def test_risk_path(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0)).fit(X[:50], y[:50])
    display = RiskPathDisplay.from_estimator(model, X[50:], y[50:])
    np.testing.assert_array_equal(display.risk_line_.get_ydata(), model.path_)
    test_path = [np.mean((y[50:] - z) ** 2) for z in model.staged_predict(X[50:])]
    np.testing.assert_allclose(display.test_line_.get_ydata(), test_path)
    assert display.ax_.get_xlabel() == "iteration"
    assert display.ax_.get_ylabel() == "mean squared error"
    named = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert f"iteration in use ({model.best_iter_})" in named
    assert "test error" in named
    assert display.figure_ is display.ax_.figure


def test_without_test_rows_and_on_given_axes(data):
    X, y = data
    _, ax = plt.subplots()
    display = RiskPathDisplay.from_estimator(IterativeRidge().fit(X, y), ax=ax)
    assert display.ax_ is ax
    assert display.test_line_ is None


def test_pipelines_transform_the_test_rows(data):
    X, y = data
    pipeline = make_pipeline(
        StandardScaler(), TrajectoryEarlyStoppingCV(TrajectoryLasso(0.1))
    ).fit(X[:50], y[:50])
    whole = RiskPathDisplay.from_estimator(pipeline, X[50:], y[50:])
    scaled = pipeline[0].transform(X[50:])
    last = RiskPathDisplay.from_estimator(pipeline[-1], scaled, y[50:])
    np.testing.assert_allclose(whole.test_path, last.test_path)


@pytest.mark.parametrize("n_targets", [1, 2])
def test_coefficient_path(n_targets, data, rng):
    X, y = data
    Y = y if n_targets == 1 else np.column_stack([rng.standard_normal(80), y])
    model = IterativeRidge().fit(X, Y)
    display = CoefficientPathDisplay.from_estimator(model, target=n_targets - 1)
    path = model.coef_path_ if n_targets == 1 else model.coef_path_[:, 1]
    largest = np.abs(path[-1]).argmax()
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), path[:, largest])
    assert display.ax_.get_legend().get_texts()[0].get_text() == f"feature {largest}"


@pytest.mark.parametrize("display", [RiskPathDisplay, CoefficientPathDisplay])
def test_bad_input(display, data):
    X, y = data
    with pytest.raises(NotFittedError):
        display.from_estimator(IterativeRidge())
    with pytest.raises(TypeError, match="no trajectory"):
        display.from_estimator(Ridge().fit(X, y))


def test_test_rows_go_with_their_targets(data):
    X, y = data
    with pytest.raises(ValueError, match="go together"):
        RiskPathDisplay.from_estimator(IterativeRidge().fit(X, y), X_test=X)
    with pytest.raises(ValueError, match="risk_path_"):
        RiskPathDisplay.from_estimator(IterativeRidge(risk=False).fit(X, y))


def test_matplotlib_is_imported_lazily():
    code = "import sys, skacv; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
