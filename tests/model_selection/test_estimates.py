"""An estimate of one's own: one entry, from outside of the package."""

import numpy as np
import pytest

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    RiskPathDisplay,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
)
from skacv.model_selection import Estimate, register_estimate, unregister_estimate
from skacv.records import HeldOut
from tests.runs import reading


def read_half(run):
    """Twice the error on the first half of the rows; none of fewer than ten."""
    problem = run.data.problem
    half = slice(len(problem.target) // 2)
    residuals = (problem.target - run.trajectory.predictor)[:, half, 0]
    if residuals.shape[1] < 5:
        return None
    path = 2 * np.mean(residuals**2, axis=1)
    target = problem.target[half, 0]
    rows = np.arange(len(target))
    return HeldOut(path, path / 10, rows, target, target - residuals)


class HalfRidge(IterativeRidge):
    """An estimator with a parameter that switches the estimate on."""

    def __init__(self, half="auto", max_iter=20, risk=False, loo=False):
        super().__init__(0.0, max_iter=max_iter, risk=risk, loo=loo)
        self.half = half

    _parameter_constraints = {
        **IterativeRidge._parameter_constraints,
        "half": ["boolean", str],
    }


@pytest.fixture
def data(rng):
    X = rng.standard_normal((40, 5))
    return X, X[:, 0] + rng.standard_normal(40)


@pytest.fixture
def half(request):
    settings = getattr(request, "param", {})
    estimate = Estimate(
        "half",
        "first half",
        read_half,
        limits="It takes ten rows.",
        has_residuals=True,
        **settings,
    )
    register_estimate(estimate)
    yield estimate
    unregister_estimate("half")
    with pytest.raises(ValueError, match="no estimate 'half'"):
        unregister_estimate("half")


def expected_path(model, X, y):
    staged = list(model.estimator_.staged_predict(X[:20]))
    return [2 * np.mean((y[:20] - predicted) ** 2) for predicted in staged]


@pytest.mark.parametrize("patience", [None, 3])
def test_it_is_a_criterion_that_is_read_from_every_run(half, patience, data):
    X, y = data
    lasso = TrajectoryLasso([0.3, 0.1], max_iter=20, risk=False, loo=False)
    model = TrajectoryEarlyStoppingCV(lasso, criterion="half", patience=patience)
    model.fit(X, y)
    np.testing.assert_allclose(model.path_, expected_path(model, X, y))
    assert model.best_iter_ == np.argmin(model.path_)
    assert model.best_score_se_ == pytest.approx(model.best_score_ / 10)
    assert model.results_["criterion"] == ["half"]


def test_it_is_drawn_under_its_label_and_in_a_colour_of_its_own(half, data):
    pytest.importorskip("matplotlib").use("Agg")
    model = IterativeRidge(risk=True, loo=True, cv=3).fit(*data)
    display = RiskPathDisplay.from_estimator(model)
    assert list(display.lines_) == ["risk", "loo", "cv", "half"]
    assert display.lines_["half"].get_label() == "first half ± s.e."
    assert len({line.get_color() for line in display.lines_.values()}) == 4


def test_it_is_a_method_of_intervals(half, data):
    X, y = data
    model = IterativeRidge(risk=False, loo=False).fit(X, y)
    intervals = model.predict_interval(X, coverage=0.5, method="half")
    assert (intervals[:, 0] < intervals[:, 1]).all()


def test_what_it_cannot_do_is_said(half, data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(IterativeRidge(), criterion="half")
    message = "half_path_, which this fit of {} did not compute. It takes ten rows."
    with pytest.raises(ValueError, match=message.format("IterativeRidge")):
        model.fit(X[:8], y[:8])


def test_a_reader_that_returns_something_else_is_named(data):
    with reading(lambda run: np.zeros(len(run.trajectory.coef))):
        with pytest.raises(TypeError, match=r"'read' must be a HeldOut.*ndarray"):
            IterativeRidge(max_iter=3).fit(*data)


def test_kernel_machines_have_it_too(half, data):
    model = TrajectoryEarlyStoppingCV(KernelEigenProRegressor(), criterion="half")
    model.fit(*data)
    assert model.criterion_ == "half"
    assert model.best_iter_ == np.argmin(model.estimator_.record_["half"].path)


@pytest.mark.parametrize("half", [{"parameter": "half"}], indirect=True)
def test_a_parameter_switches_it(half, data):
    X, y = data
    assert "half" in HalfRidge(True).fit(X, y).record_.estimates
    assert "half" not in HalfRidge(False).fit(X, y).record_.estimates
    model = TrajectoryEarlyStoppingCV(HalfRidge(), criterion="half").fit(X, y)
    np.testing.assert_allclose(model.path_, expected_path(model, X, y))
    # Left at "auto" it is switched off while another criterion is asked for.
    other = TrajectoryEarlyStoppingCV(HalfRidge(loo=True), criterion="loo").fit(X, y)
    assert list(other.estimator_.record_.estimates) == ["loo"]
    for estimator, message in [
        (HalfRidge(False), "does not compute with half=False"),
        (IterativeRidge(), "IterativeRidge does not have. It takes ten rows."),
    ]:
        with pytest.raises(ValueError, match=message):
            TrajectoryEarlyStoppingCV(estimator, criterion="half").fit(X, y)


@pytest.mark.parametrize("name", ["auto", "risk", "r2"])
def test_names_of_criteria_are_taken(name):
    with pytest.raises(ValueError, match=f"'{name}' is already the name"):
        register_estimate(Estimate(name, "", read_half))


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="needs must be one of"):
        register_estimate(Estimate("half", "", read_half, needs="moment"))
    with pytest.raises(ValueError, match="no estimate 'half'"):
        unregister_estimate("half")
