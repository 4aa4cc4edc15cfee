"""Runs of ``Staged`` that go on, are read on the way, or stop."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import get_scorer

from skacv import Staged
from tests.callbacks import StopAtFive, needs_callbacks
from tests.runs import InParts

from .cases import assert_same_fits, boosted


def test_a_longer_run_leaves_paths_read_before_unchanged(data):
    X, y = data
    model = Staged(boosted(), cv=3)
    parts = InParts(model, X, y)
    assert not parts.go_on(2)
    path, stopped = model.cv_prediction_path_, model.at_iteration(2)
    expected = np.asarray(path), stopped.predict(X)
    assert parts.go_on(5)
    assert path.shape == (3, 60)
    np.testing.assert_array_equal(path, expected[0])
    np.testing.assert_array_equal(stopped.cv_prediction_path_, expected[0])
    np.testing.assert_array_equal(stopped.predict(X), expected[1])
    assert len(model.cv_prediction_path_) == 6


def test_a_run_is_never_shortened(data):
    X, y = data
    model = Staged(boosted(), cv=3)
    parts = InParts(model, X, y)
    for n_stages in (3, 3, 2):
        assert not parts.go_on(n_stages)
        assert model.n_iter_ == model.iteration_ == 3
    assert parts.go_on(100)
    assert model.n_iter_ == 5


def test_a_model_that_follows_its_folds_grows_no_further_than_asked(data):
    X, y = data
    whole = Staged(boosted(max_iter=20), cv=3).fit(X, y)
    for growth in ("first", "best"):
        model = Staged(boosted(max_iter=20), cv=3)
        parts = InParts(model, X, y, growth=growth)
        parts.go_on(10)
        assert model.iteration_ == 1
        parts.go_on(20)
        best = 1 + int(whole.cv_path_[1:11].argmin())
        assert model.iteration_ == (1 if growth == "first" else best)
        np.testing.assert_array_equal(model.cv_path_, whole.cv_path_)
        predictions = whole.at_iteration(model.iteration_).predict(X)
        np.testing.assert_array_equal(model.predict(X), predictions)


def test_runs_of_one_estimator_are_their_own(data):
    X, y = data
    model, weights = Staged(boosted(), cv=3), np.arange(60.0)
    one, other = model.begin(X, y), model.begin(X, -y, sample_weight=weights)
    for n_stages in (2, 4, 5):
        one.go_on(n_stages)
        other.go_on(n_stages)
    expected = Staged(boosted(), cv=3).fit(X, y)
    assert_same_fits(model.take(one.end()), expected, X)
    expected.fit(X, -y, sample_weight=weights)
    assert_same_fits(model.take(other.end()), expected, X)


def test_a_run_has_the_parameters_that_it_began_with(data):
    X, y = data
    model = Staged(boosted(), cv=3)
    run = model.begin(X, y)
    run.go_on(2)
    model.set_params(estimator__learning_rate=0.5, estimator__max_iter=3, cv=2)
    assert run.go_on()
    model.take(run.end())
    assert_same_fits(model, Staged(boosted(), cv=3).fit(X, y), X)


def test_a_fit_forgets_the_one_before(data):
    X, y = data
    model = Staged(boosted(), cv=3).fit(X, y)
    model.set_params(cv=None).fit(X, y)
    assert not [name for name in vars(model) if name.startswith("cv_")]


def test_an_error_leaves_the_fit_unchanged(data, monkeypatch):
    X, y = data
    model = Staged(boosted(), cv=3)
    with pytest.raises(ValueError, match="Found input variables"):
        model.fit(X, y[:-1])
    assert not [name for name in vars(model) if name.endswith("_")]
    parts = InParts(model, X, y)
    parts.go_on(2)
    before = Staged(boosted(max_iter=2), cv=3).fit(X, y)
    fit, n_calls = HistGradientBoostingRegressor.fit, []

    def failing(self, *args, **params):
        n_calls.append(1)
        if len(n_calls) == 3:  # the model and a fold have grown
            raise MemoryError("no more")
        return fit(self, *args, **params)

    monkeypatch.setattr(HistGradientBoostingRegressor, "fit", failing)
    with pytest.raises(MemoryError, match="no more"):
        parts.go_on(4)
    monkeypatch.undo()
    assert_same_fits(model, before, X)
    assert len(list(model.staged_predict(X))) == 2
    assert model.recorded_iterations().tolist() == [1, 2]
    assert InParts(model, X, y).go_on(5)  # from the beginning
    assert_same_fits(model, Staged(boosted(), cv=3).fit(X, y), X)


def test_threads_change_nothing(data):
    X, y = data
    plain, threads = (Staged(boosted(), cv=3, n_jobs=n).fit(X, y) for n in (1, 2))
    assert_same_fits(threads, plain, X)


def test_lines_are_printed_for_blocks_of_stages(data, capsys):
    X, y = data
    watched = Staged(boosted(max_iter=40), cv=3, verbose=True).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert lines[0].startswith("[Staged] after 4 of 40, cross-validation ")
    assert lines[-1].startswith("[Staged] after 40 of 40, cross-validation ")
    assert_same_fits(watched, Staged(boosted(max_iter=40), cv=3).fit(X, y), X)


@needs_callbacks
def test_callbacks_see_every_stage(data, capsys):
    from sklearn.callback import ProgressBar, ScoringMonitor

    X, y = data
    monitor = ScoringMonitor(scoring="r2")
    model = Staged(boosted(max_iter=23)).set_callbacks(monitor, ProgressBar())
    model.fit(X, y)
    rows = [
        row["r2"] for row in monitor.get_logs().data if row["task_name"] == "update"
    ]
    expected = [
        get_scorer("r2")(model.at_iteration(t), X, y)
        for t in model.recorded_iterations()
    ]
    np.testing.assert_allclose(rows, expected)
    assert "Staged" in capsys.readouterr().out


@needs_callbacks
def test_a_callback_can_stop_the_run(data):
    X, y = data
    model = Staged(boosted(max_iter=90), cv=3).set_callbacks(StopAtFive()).fit(X, y)
    assert_same_fits(model, Staged(boosted(max_iter=5), cv=3).fit(X, y), X)
    assert len(list(model.staged_predict(X))) == 5
    assert model.recorded_iterations().tolist() == [1, 2, 3, 4, 5]
