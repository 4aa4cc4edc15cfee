"""Intervals after pickling, copying, continuing and changing what was fitted."""

import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import IterativeRidge, TrajectoryEarlyStoppingCV

from .refits import EXACT, ITERATES, METHODS, by_refits, drawn, model_of


def test_data_frames_at_the_end_of_a_pipeline(rng):
    pd = pytest.importorskip("pandas")
    X, y, X_new = drawn((40, 6), rng)
    names = [f"x{j}" for j in range(6)]
    X, X_new = pd.DataFrame(X, columns=names), pd.DataFrame(X_new, columns=names)
    ridge = IterativeRidge(alpha=0.0, max_iter=30, tol=0, keep_data=True, loo=True)
    stopped = TrajectoryEarlyStoppingCV(ridge)
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), stopped)
    pipeline.fit(X, pd.Series(y))
    assert 0 < stopped.best_iter_
    scaled, scaled_new = (pipeline[:-1].transform(part) for part in (X, X_new))
    expected = by_refits(
        stopped.estimator_, scaled.to_numpy(), y, scaled_new.to_numpy(), 0.9
    )
    found = pipeline[-1].predict_interval(scaled_new)
    np.testing.assert_allclose(found, expected[stopped.best_iter_], **EXACT)
    with pytest.raises(ValueError, match="feature names"):
        pipeline[-1].predict_interval(scaled_new[names[::-1]])


def test_pickles(rng):
    X, y, X_new = drawn((30, 6), rng)
    kept = model_of("gd").fit(X, y)
    stored = pickle.dumps(kept)
    assert X.tobytes() in stored
    found = pickle.loads(stored).predict_interval(X_new)
    np.testing.assert_array_equal(found, kept.predict_interval(X_new))
    found = pickle.loads(pickle.dumps(kept)).predict_interval(X_new)
    np.testing.assert_array_equal(found, kept.predict_interval(X_new))
    without = model_of("gd").set_params(keep_data=False).fit(X, y)
    assert X.tobytes() not in pickle.dumps(without)


@pytest.mark.parametrize("name", ["gd", "fista"])
def test_a_refit_forgets_the_fit_before(name, rng):
    X, y, X_new = drawn((30, 6), rng)
    other_X, other_y, _ = drawn((20, 6), rng)
    model = model_of(name).fit(other_X, other_y)
    former = model.predict_interval(X_new)
    model.fit(X, y)
    expected = model_of(name).fit(X, y).predict_interval(X_new)
    np.testing.assert_array_equal(model.predict_interval(X_new), expected)
    assert not np.allclose(former, expected)
    model.set_params(keep_data=False).fit(X, y)
    with pytest.raises(ValueError, match="keep_data=True"):
        model.predict_interval(X_new, method="jackknife+")


@pytest.mark.parametrize("name", ["gd", "nesterov", "fista"])
def test_a_continued_run_is_one_longer_run(name, rng):
    X, y, X_new = drawn((30, 6), rng)
    model = model_of(name, max_iter=13, warm_start=True).fit(X, y)
    model.predict_interval(X_new)
    model.set_params(max_iter=30).fit(X, y)
    whole = model_of(name, step_size=model.step_size_).fit(X, y)
    for t in (13, 30):
        found = model.at_iteration(t).predict_interval(X_new)
        expected = whole.at_iteration(t).predict_interval(X_new)
        np.testing.assert_allclose(found, expected, **EXACT)


@pytest.mark.parametrize("name", ["gd", "fista"])
def test_copies_at_other_iterates_keep_apart(name, rng):
    X, y, X_new = drawn((30, 6), rng)
    fresh = partial(model_of(name).fit, X, y)
    expected = {t: fresh().at_iteration(t).predict_interval(X_new) for t in ITERATES}
    model = fresh()
    copies = {t: model.at_iteration(t) for t in ITERATES}
    for t in (30, 0, 3, 30):
        np.testing.assert_array_equal(copies[t].predict_interval(X_new), expected[t])
        of_copy = copies[3].at_iteration(t).predict_interval(X_new)
        np.testing.assert_array_equal(of_copy, expected[t])
        np.testing.assert_array_equal(model.predict_interval(X_new), expected[30])


def test_intervals_change_nothing_that_is_fitted(rng):
    X, y, X_new = drawn((30, 6), rng)
    model = model_of("fista", risk=True, cv=3).fit(X, y)
    before = {key: value for key, value in vars(model).items() if key[-1] == "_"}
    for method in METHODS:
        model.predict_interval(X_new, method=method)
    assert all(vars(model)[key] is value for key, value in before.items())


def test_parameters_set_after_the_fit_change_nothing(rng):
    X = rng.standard_normal((30, 5)) + 1
    y = X[:, 0] + rng.standard_normal(30)
    model = IterativeRidge(0.0, keep_data=True, max_iter=10).fit(X, y)
    before = model.predict_interval(X)
    again = IterativeRidge(0.0, keep_data=True, max_iter=10).fit(X, y)
    again.set_params(fit_intercept=False, max_iter=3, alpha=7.0)
    np.testing.assert_array_equal(again.predict_interval(X), before)


@pytest.mark.parametrize("change", ["X", "y"])
def test_data_changed_in_place_are_those_of_the_fit(change, rng):
    X, y = rng.standard_normal((30, 4)), rng.standard_normal(30)
    model = IterativeRidge(0.0, fit_intercept=False, max_iter=10, keep_data=True)
    model.fit(X, y).predict_interval(X[:2])
    early, X_new = model.at_iteration(5), X[:2].copy()
    expected = model.at_iteration(5).predict_interval(X_new)
    {"X": X, "y": y}[change][3:6] *= 5
    np.testing.assert_array_equal(early.predict_interval(X_new), expected)
