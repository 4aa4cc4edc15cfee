"""Intervals between two quantile models, against the formula in loops."""

import pickle
from math import ceil

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import Staged
from skacv.model_selection import ConformalizedQuantiles

from ..oracles import least_with_mass

FOLDS = KFold(4, shuffle=True, random_state=0)


def trees(quantile, **settings):
    settings = {"max_iter": 12, "min_samples_leaf": 5, "random_state": 0, **settings}
    return HistGradientBoostingRegressor(loss="quantile", quantile=quantile, **settings)


def drawn(rng, n_rows):
    """Targets whose noise grows with a column that does not move their mean."""
    X = rng.random((n_rows, 3))
    return X, X[:, 0] + (0.1 + X[:, 1]) * rng.standard_normal(n_rows)


def held_out(estimator, X, y, t, folds):
    """Held-out predictions of t stages, row by row."""
    path = Staged(clone(estimator), cv=folds).fit(X, y)
    order = np.argsort(np.hstack(path.cv_indices_))
    return np.asarray(path.cv_prediction_path_)[t][order]


def by_hand(model, X, y, X_new, coverage, folds, units=None):
    """Intervals by the formula of Romano, Patterson and Candes, row by row."""
    units = range(len(y)) if units is None else list(units)
    ends = [
        held_out(part, X, y, fitted.best_iter_, folds)
        for part, fitted in ((model.lower, model.lower_), (model.upper, model.upper_))
    ]
    outside = [max(min(a, b) - t, t - max(a, b)) for a, b, t in zip(*ends, y)]
    wanted = ceil(coverage * (len(set(units)) + 1) - 1e-9)
    q = least_with_mass(outside, units, wanted)
    intervals = []
    for a, b in zip(model.lower_.predict(X_new), model.upper_.predict(X_new)):
        low, high = min(a, b) - q, max(a, b) + q
        intervals.append((low, high) if low <= high else ((a + b) / 2,) * 2)
    return np.array(intervals)


@pytest.mark.parametrize("quantiles", [(0.1, 0.9), (0.9, 0.1), (0.45, 0.55)])
@pytest.mark.parametrize("coverage", [0.2, 0.8])
def test_intervals_by_hand(quantiles, coverage, rng):
    X, y = drawn(rng, 90)
    model = ConformalizedQuantiles(*map(trees, quantiles), cv=FOLDS)
    model.fit(X[:80], y[:80])
    found = model.predict_interval(X[80:], coverage)
    expected = by_hand(model, X[:80], y[:80], X[80:], coverage, FOLDS)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert (found[:, 0] <= found[:, 1]).all()
    both = model.predict_interval(X[80:], [coverage, 0.9])
    assert both.shape == (10, 2, 2)
    np.testing.assert_array_equal(both[:, :, 0], found)


def test_intervals_that_would_cross_are_points(rng):
    X, y = drawn(rng, 80)
    model = ConformalizedQuantiles(trees(0.02), trees(0.98), cv=FOLDS).fit(X, y)
    found = model.predict_interval(X, 0.05)
    assert (found[:, 0] <= found[:, 1]).all()
    assert (found[:, 0] == found[:, 1]).any()


def test_groups_count_as_one(rng):
    X, y = drawn(rng, 80)
    groups = rng.permutation(np.repeat(np.arange(16), 5))
    model = ConformalizedQuantiles(trees(0.1), trees(0.9))
    model.fit(X, y, groups=groups)
    rows = model.lower_.estimator_.cv_indices_
    folds = [(np.setdiff1d(np.arange(80), part), part) for part in rows]
    found = model.predict_interval(X[:6], 0.8)
    expected = by_hand(model, X, y, X[:6], 0.8, folds, groups)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    with pytest.raises(ValueError, match=r"at least 19 .* there are 16"):
        model.predict_interval(X, 0.95)


@pytest.mark.slow
def test_noisy_rows_have_wider_intervals(rng):
    """The prediction does not tell noisy rows from quiet ones, but a column does.

    Of 600 held-out rows and 4000 new ones, a third of which are noisy: a standard error
    of .013 for all.
    """
    X, y = drawn(rng, 4600)
    settings = {"max_iter": 60, "min_samples_leaf": 20}
    model = ConformalizedQuantiles(*(trees(q, **settings) for q in (0.05, 0.95)))
    model.fit(X[:600], y[:600])
    one_width = Staged(trees(0.5, max_iter=15), cv=5).fit(X[:600], y[:600])
    intervals = {
        "quantiles": model.predict_interval(X[600:], 0.9),
        "one width": one_width.predict_interval(X[600:], 0.9, "cv"),
    }
    is_in = {
        name: (ends[:, 0] <= y[600:]) & (y[600:] <= ends[:, 1])
        for name, ends in intervals.items()
    }
    widths = {name: np.ptp(ends, axis=1) for name, ends in intervals.items()}
    noise = X[600:, 1]
    noisy, quiet = noise > 2 / 3, noise < 1 / 3
    assert abs(is_in["quantiles"].mean() - 0.9) < 0.04
    assert is_in["quantiles"][quiet].mean() < is_in["one width"][quiet].mean()
    assert widths["quantiles"].mean() < 0.97 * widths["one width"].mean()
    assert widths["quantiles"][noisy].mean() > 1.5 * widths["quantiles"][quiet].mean()


def test_folds_from_an_iterator(rng):
    X, y = drawn(rng, 60)
    parts = trees(0.1), trees(0.9)
    found = ConformalizedQuantiles(*parts, cv=FOLDS.split(X)).fit(X, y)
    expected = ConformalizedQuantiles(*parts, cv=FOLDS).fit(X, y)
    np.testing.assert_array_equal(
        found.predict_interval(X, 0.8), expected.predict_interval(X, 0.8)
    )


def test_frames_pipelines_and_pickles(rng):
    X, y = drawn(rng, 60)
    X = pd.DataFrame(X, columns=list("abc"))
    parts = [
        make_pipeline(
            StandardScaler(),
            GradientBoostingRegressor(loss="quantile", alpha=q, n_estimators=5),
        )
        for q in (0.1, 0.9)
    ]
    model = ConformalizedQuantiles(*parts, random_state=0).fit(X, y)
    assert model.n_features_in_ == 3
    assert list(model.feature_names_in_) == list("abc")
    again = pickle.loads(pickle.dumps(model))
    found = model.predict_interval(X, 0.8)
    np.testing.assert_array_equal(again.predict_interval(X, 0.8), found)


def test_where_residuals_alone_are_kept(rng, set_limits):
    X, y = drawn(rng, 60)
    model = ConformalizedQuantiles(trees(0.1), trees(0.9), cv=FOLDS)
    expected = model.fit(X, y).predict_interval(X, 0.8)
    set_limits(MOST_OF_CHOICE=1, MEMORY_BYTES=1)
    found = model.fit(X, y).predict_interval(X, 0.8)
    assert not hasattr(model.lower_.estimator_, "cv_prediction_path_")
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("library", "name", "settings", "offset"),
    [
        ("lightgbm", "LGBMRegressor", {"verbose": -1}, "init_score"),
        ("xgboost", "XGBRegressor", {}, "base_margin"),
    ],
)
def test_offsets_are_refused_with_the_way_out(library, name, settings, offset, rng):
    cls = getattr(pytest.importorskip(library), name)
    X, noise = drawn(rng, 200)
    offsets = rng.uniform(5, 9, len(X))
    parts = []
    for quantile in (0.1, 0.9):
        loss = {"objective": "quantile", "alpha": quantile}
        if library == "xgboost":
            loss = {"objective": "reg:quantileerror", "quantile_alpha": quantile}
        parts.append(cls(n_estimators=20, max_depth=2, n_jobs=1, **loss, **settings))
    model = ConformalizedQuantiles(*parts, cv=FOLDS)
    with pytest.raises(ValueError, match=f"cannot add {offset}.* fit y - {offset}"):
        model.fit(X, noise + offsets, **{offset: offsets})
    assert not hasattr(model, "lower_")
    ends = model.fit(X[:150], noise[:150]).predict_interval(X[150:], 0.8)
    target = noise[150:] + offsets[150:]
    ends += offsets[150:, None]
    assert 0.6 < np.mean((ends[:, 0] <= target) & (target <= ends[:, 1])) < 0.95


def test_what_is_refused(rng):
    X, y = drawn(rng, 60)
    model = ConformalizedQuantiles(trees(0.1), trees(0.9))
    with pytest.raises(NotFittedError):
        model.predict_interval(X)
    with pytest.raises(ValueError, match="y has 2 columns"):
        model.fit(X, np.stack([y, y], axis=1))
    other = clone(model).set_params(cv=ShuffleSplit(3))
    with pytest.raises(ValueError, match=r"draws different folds .* its random_state"):
        other.fit(X, y)
    assert not hasattr(other, "lower_")
    # Also where targets differ by less than any absolute tolerance.
    with pytest.raises(ValueError, match=r"draws different folds"):
        other.fit(X, 1e-12 * y)
    with pytest.raises(ValueError, match="'lower' parameter"):
        ConformalizedQuantiles("trees", trees(0.9)).fit(X, y)
    model.fit(X, y)
    with pytest.raises(TypeError, match="no parameter alpha: use coverage="):
        model.predict_interval(X, alpha=0.1)
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.predict_interval(X, 1.0)
