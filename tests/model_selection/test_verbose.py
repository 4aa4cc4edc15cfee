"""``verbose``: the lines agree with ``results_``, and stand below one another."""

import re

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from skacv import (
    IterativeRidge,
    KernelEigenProClassifier,
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
)
from tests.callbacks import needs_callbacks

OF_RUN = re.compile(
    r"\[(\w+)\] (.+?) +best +(\d+) of +(\d+) iterations +([\d.]+) s +(\S+) (.+)"
)


def printed(model, X, y, capsys):
    """The lines that a fit prints."""
    model.fit(X, y)
    return capsys.readouterr().out.splitlines()


def members():
    return [
        ("lasso", TrajectoryLasso("path", max_iter=5)),
        ("a longer name", IterativeRidge(1.0, max_iter=30)),
        ("forest", RandomForestRegressor(n_estimators=3, random_state=0)),
    ]


@pytest.mark.parametrize(
    ("criterion", "rule", "n_jobs"),
    [("auto", "min", None), ("auto", "blend", 2), ("r2", "one_se", None)],
)
def test_a_line_for_every_member(criterion, rule, n_jobs, data, capsys):
    model = TrajectoryEarlyStoppingCV(members(), criterion=criterion, n_jobs=n_jobs)
    model.set_params(rule=rule, verbose=1, random_state=0)
    X, y = data
    if rule == "blend":  # what neither lines nor trees have alone
        y = y + 3 * np.abs(X[:, 4])
    *lines, last = printed(model, X, y, capsys)
    found = [OF_RUN.fullmatch(each).groups() for each in lines]
    assert [each[1] for each in found] == [name for name, _ in members()]
    assert {each[0] for each in found} == {"TrajectoryEarlyStoppingCV"}
    for (_, name, best, n_iter, seconds, score, loss), row in zip(
        found, rows_of(model, "cv" if criterion == "auto" else "r2")
    ):
        path = model.member_paths_[name]
        expected = path.argmin() if criterion == "auto" else path.argmax()
        assert (int(best), int(n_iter)) == (expected, row["n_iter"])
        assert float(score) == pytest.approx(path[expected], rel=1e-5)
        assert float(seconds) == pytest.approx(row["fit_time"], abs=0.006)
        assert loss == row["loss"] == ("squared error" if criterion == "auto" else "r2")
    for word in (" of ", " s ", "iterations"):
        assert len({each.index(word, 50) for each in lines}) == 1
    kept = (
        r"\[TrajectoryEarlyStoppingCV\] kept          (.+): (.+) (\S+), [\d.]+ s in all"
    )
    said, loss, score = re.fullmatch(kept, last).groups()
    assert float(score) == pytest.approx(model.best_score_, rel=1e-5)
    if rule == "blend":
        assert 0.1 < model.weights_["forest"] < 0.9
        weights = [name for name, weight in model.weights_.items() if weight > 0]
        assert [part.split(" ", 1)[1] for part in said.split(" + ")] == weights
    else:
        assert said == f"{model.best_member_} at iteration {model.best_iter_}"


def rows_of(model, criterion):
    """The rows of ``results_`` of one criterion, as dicts."""
    results = model.results_
    rows = [dict(zip(results, values)) for values in zip(*results.values())]
    return [row for row in rows if row["criterion"] == criterion]


def test_combinations_have_lines_of_their_own(data, capsys):
    grid = {"lasso__max_iter": [2, 5], "a longer name__alpha": [1.0, 10.0, 100.0]}
    model = TrajectoryEarlyStoppingCV(members(), param_grid=grid, random_state=0)
    *lines, _ = printed(model.set_params(verbose=1), *data, capsys)
    assert [OF_RUN.fullmatch(each)[2] for each in lines] == [n for n, _ in members()]
    *lines, _ = printed(model.set_params(verbose=2), *data, capsys)
    found = [OF_RUN.fullmatch(each).groups() for each in lines]
    names = [each[1] for each in found]
    assert [names.count(name) for name, _ in members()] == [2 + 1, 3 + 1, 1]
    scores = [float(each[5]) for each in found if each[1] == "a longer name"]
    assert scores[-1] == min(scores[:-1])
    assert "with {'alpha': 10.0}" in lines[names.index("a longer name") + 1]


@pytest.mark.usefixtures("few_trees")
def test_members_that_cannot_be_fitted_are_named(data, capsys):
    X, y = data
    model = SelfStoppingRegressor(verbose=1, random_state=0)
    lines = printed(model, X, np.column_stack([y, -y]), capsys)
    assert lines[0] == (
        "[SelfStoppingRegressor] lasso           left out: y has several targets"
    )
    assert sum("left out" in each for each in lines) == 1


@pytest.mark.usefixtures("few_trees")
def test_nothing_is_printed_unasked(data, capsys):
    X, y = data
    model = SelfStoppingClassifier(random_state=0)
    assert printed(model, X, y > 0, capsys) == []
    assert printed(TrajectoryEarlyStoppingCV(members()), X, y, capsys) == []


def test_lines_of_a_member_are_its_own_matter(data, capsys):
    ridge = IterativeRidge(1.0, max_iter=30, tol=0)
    lines = printed(TrajectoryEarlyStoppingCV(ridge, verbose=1), *data, capsys)
    assert len(lines) == 2
    ridge.set_params(verbose=1)
    lines = printed(TrajectoryEarlyStoppingCV(ridge), *data, capsys)
    assert lines
    assert all(each.startswith("[IterativeRidge]") for each in lines)


@needs_callbacks
@pytest.mark.parametrize("kind", [SelfStoppingRegressor, SelfStoppingClassifier])
@pytest.mark.usefixtures("few_trees")
def test_a_progress_bar_of_the_front_door(kind, data, capsys, monkeypatch):
    """It counts members, and updates of those that record callbacks themselves."""
    pytest.importorskip("rich", reason="scikit-learn's ProgressBar is drawn by rich")
    from sklearn.callback import ProgressBar

    # A narrow terminal has no place for "100%", and an earlier test may have had one.
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("rich._console", None)
    X, y = data
    y = y > 0 if kind is SelfStoppingClassifier else y
    expected = kind(random_state=0).fit(X, y)
    model = kind(random_state=0, time_limit=1e6).set_callbacks(ProgressBar())
    lines = printed(model, X, y, capsys)
    bar = next(each for each in lines if kind.__name__ in each)
    assert "100%" in bar
    assert model.best_score_ == pytest.approx(expected.best_score_, rel=1e-6)


OF_CLASSES = [
    ("logistic", TrajectoryLogisticRegression("path", max_iter=5)),
    ("kernel", KernelEigenProClassifier(gamma=0.1, max_iter=15, random_state=0)),
    ("svc", TrajectoryLinearSVC(max_iter=15)),
]


@pytest.mark.parametrize(
    ("members", "rule", "metric"),
    [
        (OF_CLASSES[:2], "blend", "log loss"),
        (OF_CLASSES, "min", "accuracy"),
        (OF_CLASSES[:1], "min", "log loss"),
    ],
)
def test_all_lines_have_the_score_of_the_leaderboard(members, rule, metric, capsys):
    """Members stop by losses of their own, which say nothing beside each other."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 3))
    y = (X[:, 0] + np.abs(X[:, 1]) + 0.5 * rng.standard_normal(90) > 0.8).astype(int)
    model = TrajectoryEarlyStoppingCV(members, rule=rule, verbose=1, random_state=0)
    *lines, last = printed(model, X, y, capsys)
    expected = {row["member"]: row for row in rows_of(model, "cv")}
    assert len(lines) == len(members)
    for line in lines:
        _, name, t, _, _, score, said = OF_RUN.fullmatch(line).groups()
        row = expected[name]
        assert said == row["metric"] == metric
        assert int(t) == row["best_iter"]
        assert float(score) == pytest.approx(row["score"], rel=1e-5)
    assert f": {metric} " in last
    score = float(last.split(f": {metric} ")[1].split(",")[0])
    table = model.leaderboard()
    assert score == pytest.approx(np.asarray(table["score"])[0], rel=1e-5)
