"""Intervals of rows in groups: folds of whole groups, each of which counts as one."""

from math import ceil

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import GroupKFold, RepeatedKFold

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    SelfStoppingRegressor,
    Staged,
    TrajectoryEarlyStoppingCV,
)

from ...oracles import scaled_ends

MODELS = {
    "ridge": IterativeRidge(0.0, max_iter=10, loo=True, keep_data=True),
    "kernel": KernelEigenProRegressor(max_iter=4, gamma=0.1),
    "trees": Staged(HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=2)),
}


def width_by_units(residuals, units, coverage):
    """Sorted residuals, one mass for every unit, one more beyond them all."""
    labels, counts = np.unique(units, return_counts=True)
    share = 1 / counts[np.searchsorted(labels, units)]
    order = np.argsort(np.abs(residuals))
    wanted = ceil(coverage * (len(labels) + 1) - 1e-9)
    place = np.flatnonzero(np.cumsum(share[order]) >= wanted - 1e-9)[0]
    return np.abs(residuals)[order[place]]


@pytest.fixture
def grouped(rng):
    groups = rng.permutation(np.repeat(np.arange(14), rng.integers(1, 9, 14)))
    X = rng.standard_normal((len(groups), 3))
    y = X[:, 0] + rng.standard_normal(14)[groups] + 0.3 * rng.standard_normal(len(X))
    return X, y, groups


@pytest.mark.parametrize("name", MODELS)
def test_auto_takes_folds_and_counts_groups(name, grouped):
    X, y, groups = grouped
    model = MODELS[name].set_params(cv=GroupKFold(4)).fit(X, y, groups=groups)
    rows = np.hstack(model.cv_indices_)
    residuals = y[rows] - model.cv_prediction_path_[model.iteration_]
    width = width_by_units(residuals, groups[rows], 0.8)
    expected = model.predict(X)[:, None] + width * np.array([-1, 1])
    found = model.predict_interval(X, 0.8, "cv")
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    if name == "trees":
        held_out = model.cv_prediction_path_[model.iteration_]
        expected = scaled_ends(held_out, residuals, model.predict(X), 0.8, groups[rows])
    found = model.predict_interval(X, 0.8)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    with pytest.raises(ValueError, match=r"at least 19 .* there are 14"):
        model.predict_interval(X, 0.95)


@pytest.mark.parametrize("method", ["loo", "jackknife+", "risk"])
def test_rows_held_out_without_their_groups_are_refused(method, grouped):
    X, y, groups = grouped
    model = MODELS["ridge"].set_params(cv=4, risk=True).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match=r"would ignore the groups .* method='cv'"):
        model.predict_interval(X, 0.8, method)
    assert np.isfinite(model.predict_interval(X, 0.8, "scaled")).all()
    again = model.fit(X, y)  # without groups
    assert np.isfinite(again.predict_interval(X, 0.8, method)).all()


def test_a_row_that_is_held_out_often_counts_once(grouped):
    X, y, _ = grouped
    cv = RepeatedKFold(n_splits=3, n_repeats=4, random_state=0)
    model = IterativeRidge(0.0, max_iter=5, loo=False, cv=cv).fit(X[:20], y[:20])
    rows = np.hstack(model.cv_indices_)
    residuals = y[rows] - model.cv_prediction_path_[5]
    width = width_by_units(residuals, rows, 0.9)
    found = model.predict_interval(X, 0.9)
    np.testing.assert_allclose(np.diff(found)[:, 0], 2 * width, rtol=1e-6)
    with pytest.raises(ValueError, match=r"at least 99 rows .* but there are 20"):
        model.predict_interval(X, 0.99)


@pytest.mark.parametrize("rule", ["min", "blend"])
def test_of_a_chosen_model_and_of_a_blend(rule, grouped):
    X, y, groups = grouped
    members = [(name, MODELS[name].set_params(cv=None)) for name in ("ridge", "trees")]
    model = TrajectoryEarlyStoppingCV(members, rule=rule, random_state=0)
    model.fit(X, y, groups=groups)
    fitted = model.members_.items()
    rows = np.hstack(next(iter(fitted))[1].cv_indices_)
    held_out = sum(
        model.weights_[name] * each.cv_prediction_path_[each.iteration_]
        for name, each in fitted
    )
    width = width_by_units(y[rows] - held_out, groups[rows], 0.8)
    found = model.predict_interval(X, 0.8, "cv")
    np.testing.assert_allclose(np.diff(found)[:, 0], 2 * width, rtol=1e-6)


def test_with_nothing_set(grouped, few_trees):
    X, y, groups = grouped
    model = SelfStoppingRegressor(random_state=0).fit(X, y, groups=groups)
    assert np.isfinite(model.predict_interval(X, 0.9)).all()
    with pytest.raises(ValueError, match=r"at least 19 .* there are 14"):
        model.predict_interval(X, 0.95)


@pytest.mark.parametrize("name", ["ridge", "trees"])
def test_groups_count_where_residuals_alone_are_kept(name, grouped, set_limits):
    X, y, groups = grouped
    model = clone(MODELS[name]).set_params(cv=GroupKFold(4))
    if name == "ridge":
        model.set_params(keep_data=False, loo=False)
    expected = model.fit(X, y, groups=groups).predict_interval(X, 0.8)
    set_limits(MOST_KEPT=1, MEMORY_BYTES=1)
    again = model.fit(X, y, groups=groups)
    assert not hasattr(again, "cv_prediction_path_")
    np.testing.assert_allclose(again.predict_interval(X, 0.8), expected, rtol=1e-12)
