"""The displays draw what the estimator recorded."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    CoefficientIntervalDisplay,
    CoefficientPathDisplay,
    IterativeRidge,
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    RiskPathDisplay,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
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
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0), criterion="risk")
    model.fit(X[:50], y[:50])
    display = RiskPathDisplay.from_estimator(model, X[50:], y[50:])
    assert list(display.lines_) == ["risk"]
    np.testing.assert_array_equal(display.lines_["risk"].get_ydata(), model.path_)
    test_path = [np.mean((y[50:] - z) ** 2) for z in model.staged_predict(X[50:])]
    np.testing.assert_allclose(display.test_line_.get_ydata(), test_path)
    train_path = model.estimator_.train_path_
    np.testing.assert_array_equal(display.train_line_.get_ydata(), train_path)
    assert display.ax_.get_xlabel() == "iteration"
    assert display.ax_.get_ylabel() == "mean squared error"
    assert named(display) == [
        "memory matrix ± s.e.",
        "test error",
        "train error",
        f"iteration in use ({model.best_iter_})",
    ]
    assert display.figure_ is display.ax_.figure


@pytest.mark.parametrize(
    "display_class",
    [RiskPathDisplay, CoefficientPathDisplay, CoefficientIntervalDisplay],
)
def test_name_and_keywords_of_lines(display_class, data):
    model = TrajectoryLasso(0.1, keep_data=True, max_iter=8).fit(*data)
    display = display_class.from_estimator(model, name="mine", linewidth=7)
    lines = getattr(display.lines_, "values", lambda: display.lines_)()
    assert {line.get_linewidth() for line in lines} == {7}
    assert display.ax_.get_title(loc="left").startswith("mine: ")
    assert display.ax_.get_xlabel() == "iteration"
    again = display.plot(color="black")
    lines = getattr(again.lines_, "values", lambda: again.lines_)()
    assert {line.get_color() for line in lines} == {"black"}
    assert again.ax_.get_title(loc="left").startswith("TrajectoryLasso: ")


def test_scales_of_iterations_are_marked(data):
    model = IterativeRidge(0.0, max_iter=200, tol=0).fit(*data)
    display = RiskPathDisplay.from_estimator(model)
    assert display.ax_.get_xscale() == "symlog"
    assert display.ax_.get_xlabel() == "iteration (log scale from 10 on)"


def test_risk_path_of_a_classifier(data):
    X, y = data
    label = np.where(y > 1, "high", "low")
    model = make_pipeline(
        StandardScaler(),
        TrajectoryEarlyStoppingCV(TrajectoryLogisticRegression(max_iter=30)),
    ).fit(X[:50], label[:50])
    display = RiskPathDisplay.from_estimator(model, X[50:], label[50:])
    assert display.ax_.get_ylabel() == "mean log loss"
    scaled = model[0].transform(X[50:])
    chances = list(model[-1].estimator_.staged_predict_proba(scaled))
    test_path = [log_loss(label[50:], chance) for chance in chances]
    np.testing.assert_allclose(display.test_line_.get_ydata(), test_path)


def named(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.mark.filterwarnings("error")
def test_a_strength_may_be_infinite(data):
    X, y = data
    model = TrajectoryLogisticRegression(np.inf, max_iter=5, cv=3).fit(X, y > 0)
    assert RiskPathDisplay.from_estimator(model).ax_.get_xscale() == "linear"


def test_every_estimate_is_drawn(data):
    X, y = data
    model = IterativeRidge(risk=True, loo=True, cv=5).fit(X, y)
    display = RiskPathDisplay.from_estimator(model)
    assert list(display.lines_) == ["risk", "loo", "cv"]
    for name, line in display.lines_.items():
        np.testing.assert_array_equal(line.get_ydata(), getattr(model, f"{name}_path_"))
    bands = [band.get_paths()[0].get_extents() for band in display.ax_.collections]
    assert len(bands) == 3
    for band, name in zip(bands, display.lines_):
        path, se_path = display.estimates[name]
        assert band.ymax == pytest.approx((path + se_path).max())
        assert band.ymin == pytest.approx((path - se_path).min())


@pytest.mark.parametrize("criterion", ["risk", "loo", "cv", "r2"])
def test_the_mark_is_on_the_path_of_the_criterion(criterion, data):
    X, y = data
    ridge = IterativeRidge(0.0, risk=True, loo=True, cv=5)
    model = TrajectoryEarlyStoppingCV(ridge, criterion=criterion).fit(X, y)
    display = RiskPathDisplay.from_estimator(make_pipeline(model))
    (mark,) = [line for line in display.ax_.lines if line.get_marker() == "o"]
    drawn = "risk" if criterion == "r2" else criterion
    path, _ = display.estimates[drawn]
    x, y = mark.get_data()
    assert list(x) == [model.best_iter_]
    assert list(y) == [path[model.best_iter_]]
    assert mark.get_color() == display.lines_[drawn].get_color()


def test_all_members_are_drawn(data):
    X, y = data
    members = [
        ("lasso", TrajectoryLasso("path", max_iter=10)),
        ("ridge", IterativeRidge(0.0, max_iter=30)),
        ("slow", IterativeRidge(0.0, max_iter=5, solver="gd")),
    ]
    model = TrajectoryEarlyStoppingCV(members).fit(X, y)
    display = RiskPathDisplay.from_estimator(make_pipeline(model))
    others = [name for name, _ in members if name != model.best_member_]
    assert list(display.other_lines_) == others
    for name, line in display.other_lines_.items():
        np.testing.assert_array_equal(line.get_ydata(), model.member_paths_[name])
    np.testing.assert_array_equal(display.lines_["cv"].get_ydata(), model.path_)
    (mark,) = [line for line in display.ax_.lines if line.get_marker() == "o"]
    assert list(mark.get_xdata()) == [model.best_iter_]
    assert list(mark.get_ydata()) == [model.best_score_]
    assert set(others) < set(named(display))
    title = f"{model.best_member_}: risk of every iterate"
    assert display.ax_.get_title(loc="left") == title
    longest = max(map(len, model.member_paths_.values())) - 1
    assert display.ax_.get_xlim() == (0, longest)
    colors = [line.get_color() for line in display.other_lines_.values()]
    assert len({*colors, display.lines_["cv"].get_color()}) == 3


def test_a_blend_has_bars_of_weights_beside_the_paths(rng):
    X = rng.standard_normal((80, 4))
    y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.standard_normal(80)
    members = [
        ("ridge", IterativeRidge(0.0, max_iter=30)),
        ("kernel", KernelEigenProRegressor(gamma=0.3, random_state=0)),
    ]
    model = TrajectoryEarlyStoppingCV(members, rule="blend").fit(X[:60], y[:60])
    assert min(model.weights_.values()) > 0.05
    display = RiskPathDisplay.from_estimator(make_pipeline(model), X[60:], y[60:])
    widths = {name: bar.get_width() for name, bar in display.weight_bars_.items()}
    assert widths == model.weights_
    title = "blend: risk of every iterate of its members"
    assert display.ax_.get_title(loc="left") == title
    best = model.best_member_
    (other,) = set(model.weights_) - {best}
    assert list(display.other_lines_) == [other]
    np.testing.assert_array_equal(display.lines_["cv"].get_ydata(), model.path_)
    colors = {
        name: matplotlib.colors.to_hex(bar.get_facecolor()).upper()
        for name, bar in display.weight_bars_.items()
    }
    assert colors[best] == display.lines_["cv"].get_color()
    assert colors[other] == display.other_lines_[other].get_color()
    # The test error is that of the run that is drawn.
    staged = model.members_[best].staged_predict(X[60:])
    path = [np.mean((y[60:] - z) ** 2) for z in staged]
    np.testing.assert_allclose(display.test_line_.get_ydata(), path)
    texts = [text.get_text() for text in display.ax_.child_axes[0].texts]
    assert texts == [f" {name} {weight:.2f}" for name, weight in model.weights_.items()]


def test_members_of_another_loss_have_bars_too(rng):
    X = rng.standard_normal((100, 4))
    y = X[:, 0] + 1.5 * np.sin(2 * X[:, 1]) + 0.5 * rng.standard_normal(100) > 0
    members = [
        ("logistic", TrajectoryLogisticRegression(max_iter=30)),
        ("kernel", KernelEigenProClassifier(gamma=1.0, random_state=0)),
    ]
    model = TrajectoryEarlyStoppingCV(members, rule="blend").fit(X, y)
    assert min(model.weights_.values()) > 0.05
    display = RiskPathDisplay.from_estimator(model)
    (other,) = set(model.weights_) - {model.best_member_}
    line = display.other_lines_[other].get_ydata()
    np.testing.assert_array_equal(line, model.member_paths_[other])
    assert list(display.weight_bars_) == ["logistic", "kernel"]


def test_a_kernel_in_a_blend_is_drawn_in_the_log_loss(rng):
    """It stops by the squared error, which the others do not have."""
    X = rng.standard_normal((150, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(150) > 0, "b", "a")
    members = [
        ("logistic", TrajectoryLogisticRegression(max_iter=5)),
        ("kernel", KernelEigenProClassifier(gamma=1.0, random_state=0)),
    ]
    model = TrajectoryEarlyStoppingCV(members, rule="blend").fit(X[:100], y[:100])
    assert model.best_member_ == "kernel"
    display = RiskPathDisplay.from_estimator(model, X[100:], y[100:])
    assert display.ax_.get_ylabel() == "mean log loss"
    assert list(display.lines_) == ["cv"]
    np.testing.assert_array_equal(display.lines_["cv"].get_ydata(), model.path_)
    assert display.train_line_ is None
    kernel, tested = model.members_["kernel"], display.test_line_.get_ydata()
    for t in (0, model.best_iter_, len(tested) - 1):
        found = kernel.at_iteration(t).predict_proba(X[100:])
        assert tested[t] == pytest.approx(log_loss(y[100:], found))


@pytest.mark.parametrize("rule", ["min", "blend"])
def test_one_model_has_no_bars(rule, data):
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0), rule=rule).fit(*data)
    display = RiskPathDisplay.from_estimator(model)
    assert display.weights is None
    assert display.weight_bars_ == {}
    assert not display.ax_.child_axes


def test_members_that_were_scored_are_not_drawn_as_costs(data):
    X, y = data
    members = [("a", IterativeRidge(0.0)), ("b", IterativeRidge(1.0))]
    model = TrajectoryEarlyStoppingCV(members, criterion="r2").fit(X, y)
    assert RiskPathDisplay.from_estimator(model).other_lines_ == {}


def test_late_divergence_leaves_the_figure():
    estimate = np.concatenate([np.linspace(3, 2, 10), np.geomspace(2, 1000, 10)])
    display = RiskPathDisplay(
        estimates={"loo": (estimate, 0.1 * estimate)},
        train_path=np.geomspace(3, 1e-9, 20),
        iteration=9,
    ).plot()
    low, high = display.ax_.get_ylim()
    assert 1 < low < 2
    assert 4 < high < 4.5


@pytest.mark.parametrize("test_path", [None, np.linspace(3, 2, 20)])
def test_errors_alone_are_drawn_without_a_mark(test_path):
    train_path = np.geomspace(3, 1, 20)
    display = RiskPathDisplay(
        estimates={}, train_path=train_path, iteration=9, test_path=test_path
    ).plot()
    assert display.lines_ == {}
    assert "o" not in [line.get_marker() for line in display.ax_.lines]
    low, high = display.ax_.get_ylim()
    shown = train_path if test_path is None else test_path
    assert low <= shown.min() < shown.max() <= high


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
    nested = make_pipeline(pipeline[0], make_pipeline(pipeline[1]))
    inner = RiskPathDisplay.from_estimator(nested, X[50:], y[50:])
    np.testing.assert_array_equal(inner.test_path, whole.test_path)
    assert inner.criterion == whole.criterion == pipeline[-1].criterion_


@pytest.mark.parametrize("n_targets", [1, 2])
def test_coefficient_path(n_targets, data, rng):
    X, y = data
    Y = y if n_targets == 1 else np.column_stack([rng.standard_normal(80), y])
    model = IterativeRidge().fit(X, Y)
    with pytest.raises(ValueError, match=f"below {n_targets}"):
        CoefficientPathDisplay.from_estimator(model, target=n_targets)
    display = CoefficientPathDisplay.from_estimator(model, target=n_targets - 1)
    path = model.coef_path_ if n_targets == 1 else model.coef_path_[:, 1]
    largest = np.abs(path[-1]).argmax()
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), path[:, largest])
    assert display.ax_.get_legend().get_texts()[0].get_text() == f"feature {largest}"


@pytest.mark.parametrize("n_targets", [1, 2])
def test_intervals_along_the_run(n_targets, data, rng):
    X, y = data
    X = X[:, :4]
    if n_targets > 1:
        y = np.stack([rng.standard_normal(80), y], axis=1)
    model = IterativeRidge(0.5, max_iter=8, tol=0, keep_data=True).fit(X, y)
    with pytest.raises(ValueError, match=f"below {n_targets}"):
        CoefficientIntervalDisplay.from_estimator(model, target=n_targets)
    display = CoefficientIntervalDisplay.from_estimator(
        model, [2, 0], coverage=0.8, iterations=[1, 4, 8], target=n_targets - 1
    )
    assert len(display.lines_) == len(display.coef_lines_) == 2
    expected = [model.coef_interval([2, 0], 0.8, iteration=t) for t in (1, 4, 8)]
    expected = np.reshape(expected, (3, 2, n_targets, 2))[:, :, -1]
    path = model.coef_path_.reshape(9, n_targets, 4)[:, -1, [2, 0]]
    for k in range(2):
        x, middle = display.lines_[k].get_data()
        np.testing.assert_array_equal(x, [1, 4, 8])
        np.testing.assert_allclose(middle, expected[:, k].mean(axis=1))
        np.testing.assert_array_equal(display.coef_lines_[k].get_ydata(), path[:, k])
        band = display.ax_.collections[k].get_paths()[0].get_extents()
        assert band.ymin == pytest.approx(expected[:, k, 0].min())
        assert band.ymax == pytest.approx(expected[:, k, 1].max())
    assert named(display)[0] == "2, debiased"
    assert display.ax_.get_ylabel() == "coefficient, 80% interval"
    display = CoefficientIntervalDisplay.from_estimator(
        model, ["intercept"], target=n_targets - 1
    )
    path = model.intercept_path_.reshape(9, n_targets)[:, -1]
    np.testing.assert_array_equal(display.coef_lines_[0].get_ydata(), path)


def test_intervals_of_what_is_largest_and_of_a_pipeline(data):
    X, y = data
    logistic = TrajectoryLogisticRegression(
        max_iter=15, risk=True, keep_data=True, random_state=0
    )
    stopped = TrajectoryEarlyStoppingCV(logistic)
    model = make_pipeline(StandardScaler(), stopped).fit(X[:, :5], y > 1)
    _, ax = plt.subplots()
    display = CoefficientIntervalDisplay.from_estimator(model, ax=ax)
    assert display.ax_ is ax
    assert len(display.lines_) == 3
    inner = model[-1].estimator_
    assert display.feature_names[0] == str(np.abs(inner.coef_[0]).argmax())
    assert inner.iteration_ in display.iterations
    assert display.iterations[-1] == inner.n_iter_
    at = list(display.iterations).index(inner.iteration_)
    expected = inner.coef_interval([int(display.feature_names[0])])
    found = [display.lower[at, 0], display.upper[at, 0]]
    np.testing.assert_allclose(found, expected[0], rtol=1e-6)


def test_intervals_without_ends_are_left_out():
    display = CoefficientIntervalDisplay(
        iterations=np.array([0, 2]),
        estimate=np.ones((2, 1)),
        lower=np.array([[-np.inf], [0.0]]),
        upper=np.array([[np.inf], [2.0]]),
        coef_path=np.zeros((3, 1)),
        feature_names=["a"],
        iteration=2,
    ).plot()
    assert np.isfinite(display.ax_.get_ylim()).all()


def test_no_intervals_to_draw(data):
    X, y = data
    model = TrajectoryLinearSVC(risk=True, keep_data=True, max_iter=5).fit(X, y > 1)
    with pytest.raises(TypeError, match="no coef_interval"):
        CoefficientIntervalDisplay.from_estimator(model)


@pytest.mark.parametrize(
    "display",
    [RiskPathDisplay, CoefficientPathDisplay, CoefficientIntervalDisplay],
)
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


def test_without_any_estimate(data):
    X, y = data
    model = IterativeRidge(risk=False, loo=False).fit(X, y)
    with pytest.raises(ValueError, match="risk, loo, cv"):
        RiskPathDisplay.from_estimator(model)


def test_only_estimates_that_the_class_has_are_named(data):
    X, y = data
    model = TrajectoryLogisticRegression(risk=False, loo=False)
    model.fit(X, y > np.median(y))
    with pytest.raises(ValueError, match="Switch one on: risk, loo, cv"):
        RiskPathDisplay.from_estimator(model)


def test_matplotlib_is_imported_lazily():
    code = "import sys, skacv; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("store_every", [1, 7])
def test_risk_path_of_a_kernel_machine(store_every, data):
    X, y = data
    label = np.where(y > 1, "high", "low")
    machine = KernelEigenProClassifier(store_every=store_every, random_state=0)
    model = TrajectoryEarlyStoppingCV(machine).fit(X[:50], label[:50])
    display = RiskPathDisplay.from_estimator(model, X[50:], label[50:])
    assert list(display.lines_) == ["loo"]
    inner, code = model.estimator_, np.where(label == "low", 1, -1)[50:]
    tested, drawn = display.test_line_.get_data()
    np.testing.assert_array_equal(tested, inner.stored_iterations_)
    decisions = inner.staged_decision_function(X[50:])
    expected = [np.mean((code - z) ** 2) for z in decisions]
    np.testing.assert_allclose(drawn, expected)
    with pytest.raises(TypeError, match="no coefficients of features"):
        CoefficientPathDisplay.from_estimator(model)
