"""A run that is held goes on where it was, whatever becomes of its estimator.

What the runs of all estimators have in common is in
``tests/testing/test_iterative_estimators.py``.
"""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor

from skacv.optim.run import LiveRun
from tests.test_fitted_state import drawn

# Runs of so many updates, whatever these gain.
SETTINGS = {
    "lasso": {"alpha": 0.1, "tol": 0},
    "logistic": {"C": 1.0, "tol": 0},
    "kernel": {"gamma": 0.3, "patience": None},
    "staged": {},
}
of_every_kind = pytest.mark.parametrize("name", SETTINGS)
ENDED = "The run has ended, or an error has left it half done: begin another one."


def with_data(name):
    """A model whose runs have five or six updates, and data."""
    model, X, y, weights = drawn(name)
    return model.set_params(**SETTINGS[name]), X, y, weights


def assert_same_run(record, expected):
    assert record.n_iter == expected.n_iter
    for found, own in (
        (record.train_path, expected.train_path),
        (record["cv"].path, expected["cv"].path),
    ):
        np.testing.assert_allclose(found, own, rtol=1e-10)


@of_every_kind
def test_what_comes_before_the_first_update(name):
    model, X, y, _ = with_data(name)
    run = model.begin(X, y)
    with pytest.raises(ValueError, match="has not begun: call go_on"):
        run.record()
    for n_updates in (0, -1):
        with pytest.raises(ValueError, match="n_updates must be at least 1, got"):
            run.go_on(n_updates)
    assert run.go_on()  # which has not harmed it


@of_every_kind
def test_runs_of_one_estimator_are_their_own(name):
    """And they have the parameters that it had."""
    model, X, y, weights = with_data(name)
    other = model.begin(X, y, weights)
    run = model.begin(X, y)
    model.set_params(cv=4)
    another = model.begin(X, y)
    for n_updates in (1, 3, None):
        for each in (run, other, another):
            each.go_on(n_updates)
    for each, settings, params in (
        (run, {"cv": 3}, {}),
        (other, {"cv": 3}, {"sample_weight": weights}),
        (another, {"cv": 4}, {}),
    ):
        alone = clone(model).set_params(**settings).fit(X, y, **params)
        assert_same_run(each.end(), alone.record_)


@of_every_kind
def test_a_run_that_an_error_has_left_half_done_does_not_go_on(name, monkeypatch):
    model, X, y, _ = with_data(name)
    run = model.begin(X, y)
    run.go_on(2)
    record = run.record()
    expected = clone(model).take(record).predict(X)
    # Some of the fits side by side have then been updated, others have not.
    owner, method = LiveRun, "_n_until_converged"
    if name == "staged":
        owner, method = HistGradientBoostingRegressor, "fit"
    n_calls, called = [], getattr(owner, method)

    def interrupted(self, *args, **params):
        n_calls.append(1)
        if len(n_calls) == 2:
            raise KeyboardInterrupt
        return called(self, *args, **params)

    monkeypatch.setattr(owner, method, interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.go_on(4)
    monkeypatch.undo()
    for goes_on in (run.go_on, run.record, run.end):
        with pytest.raises(RuntimeError, match=ENDED):
            goes_on()
    np.testing.assert_array_equal(clone(model).take(record).predict(X), expected)


@pytest.mark.parametrize("name", ["lasso", "logistic", "kernel"])
def test_a_run_that_has_ended_does_not_go_on(name):
    model, X, y, _ = with_data(name)
    run = model.begin(X, y)
    run.go_on(3)
    record = run.end()
    with pytest.raises(RuntimeError, match=ENDED):
        run.go_on()
    assert run.record() is run.end() is record
