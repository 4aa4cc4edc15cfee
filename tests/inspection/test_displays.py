"""The displays draw what the estimator recorded."""

import pickle
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
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
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
)
from skacv.inspection._figure import PALETTE
from skacv.inspection.risk_path import MEMBER_COLORS
from tests.cases import covering
from tests.internals import TASKS, default_members

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.text import Text  # noqa: E402

DISPLAYS = [RiskPathDisplay, CoefficientPathDisplay, CoefficientIntervalDisplay]


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
    assert display.ax_.get_xlabel() == f"iteration ({model.best_iter_} in use)"
    assert display.ax_.get_ylabel() == "mean squared error"
    names = ["memory matrix ± s.e.", "test error", "training error"]
    assert sorted(named(display)) == names
    assert display.figure_ is display.ax_.figure


@pytest.mark.parametrize(
    "display_class",
    DISPLAYS,
)
def test_name_and_keywords_of_lines(display_class, data):
    model = TrajectoryLasso(0.1, keep_data=True, max_iter=8).fit(*data)
    display = display_class.from_estimator(model, name="mine", linewidth=7)
    lines = getattr(display.lines_, "values", lambda: display.lines_)()
    assert {line.get_linewidth() for line in lines} == {7}
    assert display.ax_.get_title(loc="left").startswith("mine: ")
    assert display.ax_.get_xlabel() == f"iteration ({model.iteration_} in use)"
    again = display.plot(color="black")
    lines = getattr(again.lines_, "values", lambda: again.lines_)()
    assert {line.get_color() for line in lines} == {"black"}
    assert again.ax_.get_title(loc="left").startswith("TrajectoryLasso: ")


@pytest.mark.parametrize("display_class", DISPLAYS)
def test_the_axis_is_linear_unless_asked(display_class, data):
    model = IterativeRidge(0.0, max_iter=200, tol=0, keep_data=True).fit(*data)
    display = display_class.from_estimator(model)
    assert display.ax_.get_xscale() == "linear"
    assert display.ax_.get_xlabel() == f"iteration ({model.iteration_} in use)"
    display = display_class.from_estimator(model, xscale="symlog")
    assert display.ax_.get_xscale() == "symlog"
    label = f"iteration (log scale from 10 on; {model.iteration_} in use)"
    assert display.ax_.get_xlabel() == label


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
    """The names at the ends of the lines, from the top."""
    display.figure_.draw_without_rendering()
    texts = sorted(display.ax_.texts, key=lambda text: -text.get_window_extent().y0)
    return [text.get_text() for text in texts]


def assert_names_are_legible(display):
    """Beside the frame, in the figure, and none over another."""
    display.figure_.draw_without_rendering()
    frame, whole = display.ax_.bbox, display.figure_.bbox
    boxes = [Text.get_window_extent(text) for text in display.ax_.texts]
    assert all(box.x0 > frame.x1 and box.x1 <= whole.x1 for box in boxes)
    boxes.sort(key=lambda box: box.y0)
    for below, above in pairwise(boxes):
        assert below.y1 <= above.y0 + 1  # the space below letters without descenders


@covering(n_members=[7, 25, 2], end=["equal", "distinct", "above the frame"])
def test_names_at_the_ends_of_lines(n_members, end):
    """At the heights of the ends if these are distinct, and in their order."""
    numbers = np.arange(n_members)
    last = {
        "equal": np.full(n_members, 2.0),
        "distinct": 2.1 + numbers / n_members,
        "above the frame": 2 + 1000.0 * numbers,
    }[end]
    paths = {
        f"member {k}": np.array([10.0, 2 + k / n_members, last[k]]) for k in numbers
    }
    chosen = paths.pop("member 0")
    display = RiskPathDisplay(
        estimates={"cv": (chosen, 0.01 * chosen)},
        train_path=None,
        iteration=1,
        criterion="cv",
        estimator_name="member 0",
        member_paths=paths,
        member_iterations=dict.fromkeys(paths, 1),
    ).plot()
    assert_names_are_legible(display)
    assert len(named(display)) == n_members
    if end != "distinct":
        return
    assert named(display) == [f"member {k} (1 of 2)" for k in numbers[::-1]]
    if n_members > 2:
        return
    texts = {text.get_text(): text for text in display.ax_.texts}
    for limits in (display.ax_.get_ylim(), (0, 4)):  # also after a change of the frame
        low, high = display.ax_.set_ylim(limits)
        for name, path in [("member 0", chosen), *paths.items()]:
            _, height = texts[f"{name} (1 of 2)"].get_position()
            assert height == pytest.approx((path[-1] - low) / (high - low))


@pytest.mark.filterwarnings("error")
def test_a_strength_may_be_infinite(data):
    X, y = data
    model = TrajectoryLogisticRegression(np.inf, max_iter=5, cv=3).fit(X, y > 0)
    assert RiskPathDisplay.from_estimator(model).ax_.get_xscale() == "linear"


# Colours as seen with each kind of colour blindness (Machado, Oliveira and Fernandes
# 2009, "A physiologically-based model for simulation of color vision deficiency").
SEEN = {
    "usual": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def linear_rgb(colors):
    rgb = np.array([matplotlib.colors.to_rgb(color) for color in colors])
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab_of(linear):
    to_xyz = [
        [0.4124, 0.3576, 0.1805],
        [0.2126, 0.7152, 0.0722],
        [0.0193, 0.1192, 0.9505],
    ]
    xyz = linear @ np.transpose(to_xyz) / [0.9505, 1, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)


@pytest.mark.parametrize("seen", SEEN)
def test_eight_colours_that_all_readers_distinguish(seen):
    """As far apart as the nearest two of Okabe and Ito's palette are, about 17."""
    colors = linear_rgb([*PALETTE, "black"])
    lab = lab_of(np.clip(colors @ np.transpose(SEEN[seen]), 0, 1))
    distances = np.linalg.norm(lab[:, None] - lab, axis=-1)
    assert len(PALETTE) == 8
    assert distances[~np.eye(9, dtype=bool)].min() > 14
    # Lines can be seen on white: a contrast of three (WCAG 2.1, 1.4.11).
    luminance = colors @ [0.2126, 0.7152, 0.0722]
    assert (1.05 / (luminance + 0.05)).min() > 3


def test_default_members_have_colours_of_their_own():
    used = set()
    for properties in ({}, {"n_columns": 10_000}):
        for task in TASKS:
            members = default_members(task, has_texts=True, **properties)
            colors = {MEMBER_COLORS[name] for name in members}
            assert len(colors) == len(members)
            used |= colors
    assert used == set(PALETTE)


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
    assert f"chosen of {len(members)} members" in display.ax_.get_title(loc="left")
    assert display.ax_.get_title(loc="left").startswith(f"{model.best_member_}: ")
    assert_names_are_legible(display)

    # Each keeps the iterate of its smallest loss, on which there is a dot.
    paths = model.member_paths_
    expected = {
        f"{name} ({path.argmin()} of {len(path) - 1})" for name, path in paths.items()
    }
    assert expected < set(named(display))
    assert f"training error of {model.best_member_}" in named(display)
    assert set(display.kept_points_) == set(paths)
    low, high = display.ax_.get_ylim()
    for name, point in display.kept_points_.items():
        (x,), (y,) = point.get_data()
        path = paths[name]
        assert x == pytest.approx(path.argmin() / (len(path) - 1))
        assert low < y == path.min() < high

    # Runs of other lengths are drawn over their shares of the axis, or as they are.
    assert display.ax_.get_xlim() == (0, 1)
    assert display.ax_.get_xlabel().startswith("share of each run")
    display = RiskPathDisplay.from_estimator(model, xscale="linear")
    assert display.ax_.get_xlim() == (0, max(map(len, paths.values())) - 1)
    for name, point in display.kept_points_.items():
        assert list(point.get_xdata()) == [paths[name].argmin()]


def test_colours_belong_to_members(data):
    """Whichever is chosen, left out, or first in the list."""
    X, y = data
    ridge, lasso = IterativeRidge(0.5, max_iter=4), TrajectoryLasso(0.1, max_iter=4)
    members = [("lasso", lasso), ("mine", ridge), ("ridge", ridge), ("yours", lasso)]
    found = []
    for order, target in [(1, y), (-1, y), (1, np.sin(40 * X[:, 0]))]:
        model = TrajectoryEarlyStoppingCV(members[::order]).fit(X, target)
        display = RiskPathDisplay.from_estimator(model)
        lines = {model.best_member_: display.lines_["cv"], **display.other_lines_}
        colors = {name: line.get_color() for name, line in lines.items()}
        assert len(set(colors.values())) == 4
        points = display.kept_points_.items()
        assert colors == {name: point.get_color() for name, point in points}
        found.append(colors)
    for name in ("lasso", "ridge"):
        assert {colors[name] for colors in found} == {MEMBER_COLORS[name]}
    assert found[0] == found[2]


def test_a_blend_has_weights_beside_the_names(rng):
    X = rng.standard_normal((80, 4))
    y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.standard_normal(80)
    members = [
        ("ridge", IterativeRidge(0.0, max_iter=30)),
        ("kernel", KernelEigenProRegressor(gamma=0.3, random_state=0)),
    ]
    model = TrajectoryEarlyStoppingCV(members, rule="blend").fit(X[:60], y[:60])
    assert min(model.weights_.values()) > 0.05
    display = RiskPathDisplay.from_estimator(make_pipeline(model), X[60:], y[60:])
    title = "blend: 2 members and their weights"
    assert display.ax_.get_title(loc="left") == title
    best = model.best_member_
    (other,) = set(model.weights_) - {best}
    assert list(display.other_lines_) == [other]
    np.testing.assert_array_equal(display.lines_["cv"].get_ydata(), model.path_)
    assert set(display.blend_line_.get_ydata()) == {model.best_score_}
    # The test error is that of the run that is drawn.
    staged = model.members_[best].staged_predict(X[60:])
    path = [np.mean((y[60:] - z) ** 2) for z in staged]
    np.testing.assert_allclose(display.test_line_.get_ydata(), path)
    paths = model.member_paths_
    expected = [
        f"{name} {weight:.2f} ({paths[name].argmin()} of {len(paths[name]) - 1})"
        for name, weight in model.weights_.items()
    ]
    expected += ["blend", f"test error of {best}", f"training error of {best}"]
    assert sorted(named(display)) == sorted(expected)
    assert_names_are_legible(display)


def test_members_of_another_loss_have_weights_too(rng):
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
    for name, weight in model.weights_.items():
        assert any(text.startswith(f"{name} {weight:.2f} (") for text in named(display))


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
    assert display.ax_.get_ylabel() == "mean log loss, cross-validation"
    assert list(display.lines_) == ["cv"]
    np.testing.assert_array_equal(display.lines_["cv"].get_ydata(), model.path_)
    assert display.train_line_ is None
    kernel, tested = model.members_["kernel"], display.test_line_.get_ydata()
    for t in (0, model.best_iter_, len(tested) - 1):
        found = kernel.at_iteration(t).predict_proba(X[100:])
        assert tested[t] == pytest.approx(log_loss(y[100:], found))


def test_the_test_error_of_stages_is_at_their_share_of_the_run(rng):
    """They have no iterate zero."""
    X = rng.standard_normal((120, 3))
    y = np.sin(2 * X[:, 0]) + rng.standard_normal(120)
    trees = HistGradientBoostingRegressor(max_iter=40, learning_rate=0.2)
    members = [("trees", Staged(trees)), ("constant", TrajectoryLasso(9.0, max_iter=3))]
    model = TrajectoryEarlyStoppingCV(members, patience=None, cv=3).fit(X, y)
    assert model.best_member_ == "trees"
    assert 2 < model.best_iter_ < 38
    display = RiskPathDisplay.from_estimator(model, X, y)
    places = display.test_line_.get_xdata()
    (dot,) = display.kept_points_["trees"].get_xdata()
    assert dot == model.best_iter_ / 40
    np.testing.assert_allclose(places, np.arange(1, len(places) + 1) / 40)
    assert np.isfinite(display.ax_.get_ylim()).all()


@pytest.mark.parametrize("rule", ["min", "blend"])
def test_one_model_has_no_bars(rule, data):
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0), rule=rule).fit(*data)
    display = RiskPathDisplay.from_estimator(model)
    assert display.weights is None
    assert display.blend_line_ is None


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
    assert 0 <= low < 1.8
    assert 3 < high < 4.5
    # The name is where the line leaves the frame.
    assert named(display) == ["leave-one-out ± s.e.", "training error"]
    assert_names_are_legible(display)


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
    (loaded,) = pickle.loads(pickle.dumps(display.figure_)).axes
    assert [text.get_text() for text in loaded.texts] == [
        text.get_text() for text in ax.texts
    ]


def test_negative_losses_are_in_the_frame():
    path = np.linspace(-1, -3, 20)
    display = RiskPathDisplay(
        estimates={"cv": (path, np.full(20, 0.1))}, train_path=None, iteration=19
    ).plot()
    low, high = display.ax_.get_ylim()
    assert low < -3.1 < -1 < high


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
    assert display.lines_[0].get_label() == f"feature {largest}"
    assert {f"feature {j}" for j in range(10)} > set(named(display))
    assert len(named(display)) == 8
    assert len({line.get_color() for line in display.lines_[:8]}) == 8
    assert_names_are_legible(display)


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
    assert sorted(named(display)) == ["0", "2"]
    assert display.lines_[0].get_label() == "2, debiased"
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
    DISPLAYS,
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
