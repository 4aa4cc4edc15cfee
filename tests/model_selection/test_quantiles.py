"""Several quantiles: stopped each by its pinball loss, sorted, corrected on folds."""

import pickle
from math import ceil

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import d2_pinball_score, mean_pinball_loss
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    IterativeRidge,
    RiskPathDisplay,
    SelfStoppingQuantileRegressor,
    SelfStoppingRegressor,
    Staged,
    TableEncoder,
    TrajectoryEarlyStoppingCV,
    TrajectoryQuantileRegressor,
    TrajectoryRegressor,
)
from skacv.optim.losses import Expectile, Pinball, SmoothedQuantile

from ..oracles import least_with_mass

FOLDS = KFold(4, shuffle=True, random_state=0)


def trees(**settings):
    settings = {"max_iter": 12, "min_samples_leaf": 5, "random_state": 0, **settings}
    return HistGradientBoostingRegressor(**settings)


def linear(**settings):
    return TrajectoryQuantileRegressor(smoothing=0.2, max_iter=30, **settings)


def drawn(rng, n_rows):
    """Targets whose noise grows with a column that does not move their mean."""
    X = rng.random((n_rows, 3))
    return X, X[:, 0] + (0.1 + X[:, 1]) * rng.standard_normal(n_rows)


def of_level(level, **settings):
    return trees(loss="quantile", quantile=level, **settings)


def held_out_by_hand(model, X, y, folds):
    """Held-out predictions of the chosen stages, row by row, sorted in a loop."""
    columns = []
    for level, fitted in zip(model.levels_, model.models_):
        path = Staged(of_level(level), cv=folds).fit(X, y)
        order = np.argsort(np.hstack(path.cv_indices_))
        columns.append(np.asarray(path.cv_prediction_path_)[fitted.best_iter_][order])
    return np.array([sorted(row) for row in zip(*columns)])


# ------------------------------------------------------------------ levels


def test_each_level_is_stopped_by_its_own_pinball_loss(rng):
    X, y = drawn(rng, 80)
    model = SelfStoppingQuantileRegressor(trees(), levels=[0.9, 0.2], cv=FOLDS)
    model.fit(X, y)
    np.testing.assert_array_equal(model.levels_, [0.2, 0.9])
    for level, fitted in zip(model.levels_, model.models_):
        path = Staged(of_level(level), cv=FOLDS).fit(X, y)
        order = np.hstack(path.cv_indices_)
        by_hand = [
            mean_pinball_loss(y[order], stage, alpha=level)
            for stage in path.cv_prediction_path_
        ]
        np.testing.assert_allclose(fitted.path_, by_hand, rtol=1e-10)
        assert fitted.best_iter_ == np.argmin(by_hand)
    assert model.models_[0].best_iter_ != model.models_[1].best_iter_


def test_levels_are_sorted_and_do_not_cross(rng):
    """Where trees of noise do; together they have the smaller pinball loss."""
    X, y = drawn(rng, 120)
    levels = [0.4, 0.5, 0.6]
    model = SelfStoppingQuantileRegressor(trees(), levels=levels, cv=FOLDS)
    model.fit(X[:60], y[:60])
    alone = np.stack([each.predict(X[60:]) for each in model.models_], axis=1)
    found = model.predict_quantiles(X[60:])
    assert (np.diff(alone, axis=1) < 0).any()
    assert (np.diff(found, axis=1) >= 0).all()
    np.testing.assert_array_equal(found, [sorted(row) for row in alone])
    sums = []
    for quantiles in (found, alone):
        losses = [
            mean_pinball_loss(y[60:], column, alpha=level)
            for level, column in zip(levels, quantiles.T)
        ]
        sums.append(sum(losses))
    assert sums[0] < sums[1]
    np.testing.assert_array_equal(model.predict(X[60:]), found[:, 1])
    np.testing.assert_array_equal(
        model.predict_quantiles(X[60:], [0.6, 0.4]), found[:, [2, 0]]
    )


def test_held_out_rows_by_hand(rng):
    X, y = drawn(rng, 70)
    model = SelfStoppingQuantileRegressor(trees(), levels=[0.3, 0.6], cv=FOLDS)
    held_out = held_out_by_hand(model.fit(X, y), X, y, FOLDS)
    np.testing.assert_allclose(model.held_out_prediction_, held_out, rtol=1e-10)
    shares = [np.mean(y <= column) for column in held_out.T]
    np.testing.assert_allclose(model.held_out_coverage_, shares, rtol=1e-12)
    losses = [
        mean_pinball_loss(y, column, alpha=level)
        for level, column in zip(model.levels_, held_out.T)
    ]
    np.testing.assert_allclose(model.held_out_loss_, losses, rtol=1e-10)


def test_predict_is_the_level_nearest_to_the_median(rng):
    X, y = drawn(rng, 60)
    for levels, nearest in (([0.4, 0.6, 0.9], 0.4), ([0.1, 0.55, 0.9], 0.55)):
        model = SelfStoppingQuantileRegressor(trees(), levels=levels, cv=FOLDS)
        found = model.fit(X, y).predict(X)
        np.testing.assert_array_equal(found, model.predict_quantiles(X, nearest)[:, 0])


# ------------------------------------------------------------------ corrections


@pytest.mark.parametrize("grouped", [False, True])
def test_shifts_by_hand(grouped, rng):
    X, y = drawn(rng, 80)
    levels, params, units = [0.05, 0.5, 0.9], {}, range(80)
    folds = FOLDS
    if grouped:
        units = rng.permutation(np.repeat(np.arange(16), 5))
        params, folds = {"groups": units}, None
    model = SelfStoppingQuantileRegressor(
        trees(), levels=levels, cv=folds, conformalize=True
    ).fit(X, y, **params)
    if grouped:
        rows = model.models_[0].estimator_.cv_indices_
        folds = [(np.setdiff1d(np.arange(80), part), part) for part in rows]
    n_units = len(set(units))
    held_out = held_out_by_hand(model, X, y, folds)
    shifts = [
        least_with_mass(y - column, list(units), ceil(level * (n_units + 1) - 1e-9))
        for level, column in zip(levels, held_out.T)
    ]
    np.testing.assert_allclose(model.shifts_, shifts, rtol=1e-8)
    alone = np.sort([each.predict(X[:9]) for each in model.models_], axis=0).T
    found = model.predict_quantiles(X[:9])
    expected = np.sort(alone + np.array(shifts), axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_shifted_quantiles_cover_held_out_rows(rng):
    X, y = drawn(rng, 100)
    model = SelfStoppingQuantileRegressor(
        trees(max_iter=40), levels=[0.1, 0.5, 0.9], conformalize=True, cv=FOLDS
    ).fit(X, y)
    shifted = model.held_out_prediction_ + model.shifts_
    shares = (y[:, None] <= shifted).mean(axis=0)
    np.testing.assert_allclose(shares, [0.11, 0.51, 0.91], atol=1e-12)


@pytest.mark.parametrize("levels", [(0.1, 0.9), (0.45, 0.55)])
@pytest.mark.parametrize("coverage", [0.2, 0.8])
@pytest.mark.parametrize("conformalize", [False, True])
def test_intervals_by_hand(levels, coverage, conformalize, rng):
    """By the formula of Romano, Patterson and Candes, row by row."""
    X, y = drawn(rng, 90)
    model = SelfStoppingQuantileRegressor(
        trees(), levels=levels, cv=FOLDS, conformalize=conformalize
    ).fit(X[:80], y[:80])
    found = model.predict_interval(X[80:], coverage)
    held_out = held_out_by_hand(model, X[:80], y[:80], FOLDS)
    outside = [max(a - t, t - b) for (a, b), t in zip(held_out, y[:80])]
    q = sorted(outside)[ceil(coverage * 81 - 1e-9) - 1]
    intervals = []
    for a, b in zip(*(each.predict(X[80:]) for each in model.models_)):
        low, high = min(a, b) - q, max(a, b) + q
        intervals.append((low, high) if low <= high else ((a + b) / 2,) * 2)
    np.testing.assert_allclose(found, intervals, rtol=1e-10)
    assert (found[:, 0] <= found[:, 1]).all()
    both = model.predict_interval(X[80:], [coverage, 0.9])
    assert both.shape == (10, 2, 2)
    np.testing.assert_array_equal(both[:, :, 0], found)


def test_intervals_are_between_the_pair_nearest_to_the_coverage(rng):
    X, y = drawn(rng, 80)
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    model = SelfStoppingQuantileRegressor(linear(), levels=levels, cv=FOLDS).fit(X, y)
    for coverage, pair in ((0.5, [0.25, 0.75]), (0.8, [0.05, 0.95])):
        two = clone(model).set_params(levels=pair).fit(X, y)
        found, expected = (each.predict_interval(X, coverage) for each in (model, two))
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_intervals_that_would_cross_are_points(rng):
    X, y = drawn(rng, 80)
    model = SelfStoppingQuantileRegressor(trees(), levels=[0.02, 0.98], cv=FOLDS)
    found = model.fit(X, y).predict_interval(X, 0.05)
    assert (found[:, 0] <= found[:, 1]).all()
    assert (found[:, 0] == found[:, 1]).any()


def test_groups_count_as_one(rng):
    X, y = drawn(rng, 80)
    groups = rng.permutation(np.repeat(np.arange(16), 5))
    model = SelfStoppingQuantileRegressor(trees(), levels=[0.1, 0.9])
    model.fit(X, y, groups=groups)
    rows = model.models_[0].estimator_.cv_indices_
    for part in rows:
        assert not set(groups[part]) & set(np.delete(groups, part))
    folds = [(np.setdiff1d(np.arange(80), part), part) for part in rows]
    held_out = held_out_by_hand(model, X, y, folds)
    outside = [max(a - t, t - b) for (a, b), t in zip(held_out, y)]
    q = least_with_mass(outside, list(groups), ceil(0.8 * 17 - 1e-9))
    ends = np.sort([each.predict(X[:6]) for each in model.models_], axis=0).T
    expected = ends + np.array([-q, q])
    np.testing.assert_allclose(model.predict_interval(X[:6], 0.8), expected, rtol=1e-10)
    with pytest.raises(ValueError, match=r"coverage=0.95 .* at least 19 .* are 16"):
        model.predict_interval(X, 0.95)
    model.set_params(levels=[0.1, 0.95], conformalize=True)
    with pytest.raises(ValueError, match=r"level=0.95 needs at least 19 .* are 16"):
        model.fit(X, y, groups=groups)
    np.testing.assert_array_equal(model.levels_, [0.1, 0.9])


@pytest.mark.slow
def test_noisy_rows_have_wider_intervals(rng):
    """The prediction does not tell noisy rows from quiet ones, but a column does.

    Of 600 held-out rows and 4000 new ones, a third of which are noisy: a standard error
    of .013 for all.
    """
    X, y = drawn(rng, 4600)
    of_trees = trees(max_iter=60, min_samples_leaf=20)
    model = SelfStoppingQuantileRegressor(of_trees, conformalize=True)
    model.fit(X[:600], y[:600])
    one_width = Staged(of_level(0.5, max_iter=15), cv=5).fit(X[:600], y[:600])
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
    shares = (y[600:, None] <= model.predict_quantiles(X[600:])).mean(axis=0)
    np.testing.assert_allclose(shares, model.levels_, atol=0.04)


# ------------------------------------------------------------------ weights, rows


def test_weights_equal_repetition(rng):
    """Of rows in the same folds; rows of weight zero are absent."""
    X, y = drawn(rng, 60)
    weights = rng.integers(0, 4, 60).astype(float)
    folds = [
        (np.flatnonzero(np.arange(60) % 3 != k), np.arange(k, 60, 3)) for k in (0, 1, 2)
    ]
    times = np.repeat(np.arange(60), weights.astype(int))
    repeated = [
        (np.flatnonzero(np.isin(times, fitted)), np.flatnonzero(np.isin(times, judged)))
        for fitted, judged in folds
    ]
    members = [("ridge", linear()), ("strong", linear(alpha=1.0))]
    weighted, many = (
        SelfStoppingQuantileRegressor(members, levels=[0.2, 0.7], cv=cv, rule="min")
        for cv in (folds, repeated)
    )
    weighted.fit(X, y, sample_weight=weights)
    many.fit(X[times], y[times])
    for name in ("held_out_loss_", "held_out_coverage_"):
        found, expected = (getattr(each, name) for each in (weighted, many))
        np.testing.assert_allclose(found, expected, rtol=1e-8)
    np.testing.assert_allclose(
        weighted.predict_quantiles(X), many.predict_quantiles(X), rtol=1e-8
    )
    # Intervals count rows.
    assert len(weighted._residuals.residuals) == np.count_nonzero(weights)


def test_folds_from_an_iterator(rng):
    X, y = drawn(rng, 60)
    found = SelfStoppingQuantileRegressor(trees(), cv=FOLDS.split(X)).fit(X, y)
    expected = SelfStoppingQuantileRegressor(trees(), cv=FOLDS).fit(X, y)
    np.testing.assert_array_equal(
        found.predict_quantiles(X), expected.predict_quantiles(X)
    )


def test_offsets_are_added(rng):
    X, y = drawn(rng, 80)
    offset = rng.uniform(5, 9, 80)
    members = [("trees", trees()), ("ridge", linear())]
    without = SelfStoppingQuantileRegressor(members, levels=[0.1, 0.9], cv=FOLDS)
    model = clone(without).fit(X, y + offset, offset=offset)
    without.fit(X, y)
    for method in ("predict_quantiles", "predict_interval", "predict"):
        found = getattr(model, method)(X, offset=offset)
        by_row = offset if found.ndim == 1 else offset[:, None]
        np.testing.assert_allclose(found, getattr(without, method)(X) + by_row)
    np.testing.assert_allclose(model.held_out_coverage_, without.held_out_coverage_)
    with pytest.raises(ValueError, match="was fitted with an offset"):
        model.predict_quantiles(X)


# ------------------------------------------------------------------ members


def test_a_blend_of_trees_and_a_linear_model(rng):
    """Both are judged by the pinball loss, whose corner the linear one rounds."""
    X, y = drawn(rng, 150)
    members = [("trees", trees()), ("ridge", linear())]
    model = SelfStoppingQuantileRegressor(members, levels=[0.1, 0.8], cv=FOLDS)
    board = model.fit(X, y).leaderboard()
    assert board["level"].tolist() == sorted(board["level"])
    assert {"trees", "ridge"} <= set(board["member"])
    assert set(board["metric"]) == {"pinball loss"}
    for level, share, fitted in zip(
        model.levels_, model.held_out_coverage_, model.models_
    ):
        rows = board[board["level"] == level]
        assert set(rows["coverage"]) == {share}
        assert rows["score"].is_monotonic_increasing
        held_out = fitted.held_out_prediction_
        loss = mean_pinball_loss(y, held_out, alpha=level)
        assert fitted.best_score_ == pytest.approx(loss, rel=1e-10)
        for name, one in fitted.members_.items():
            order = np.hstack(one.cv_indices_)
            of_one = np.asarray(one.cv_prediction_path_[one.iteration_])
            loss = mean_pinball_loss(y[order], of_one, alpha=level)
            (row,) = rows.index[rows["member"] == name]
            assert rows.loc[row, "score"] == pytest.approx(loss, rel=1e-10)


def test_a_member_that_is_fitted_once(rng):
    """scikit-learn's quantile regression, judged by the pinball loss as trees are."""
    X, y = drawn(rng, 80)
    members = [("trees", trees()), ("exact", QuantileRegressor(alpha=0.01))]
    model = SelfStoppingQuantileRegressor(members, levels=[0.2, 0.7], cv=FOLDS)
    model.fit(X, y)
    for level, fitted in zip([0.2, 0.7], model.models_):
        losses = [
            len(judged)
            * mean_pinball_loss(
                y[judged],
                QuantileRegressor(alpha=0.01, quantile=level)
                .fit(X[rest], y[rest])
                .predict(X[judged]),
                alpha=level,
            )
            for rest, judged in FOLDS.split(X)
        ]
        expected = sum(losses) / len(y)
        assert fitted.member_paths_["exact"][-1] == pytest.approx(expected, rel=1e-8)
    members = [("exact", QuantileRegressor()), ("trees", trees())]
    with pytest.raises(ValueError, match="QuantileRegressor has no expectile loss"):
        SelfStoppingQuantileRegressor(members, loss="expectile").fit(X, y)


def test_the_default_takes_raw_tables(rng):
    X, y = drawn(rng, 150)
    table = pd.DataFrame(X, columns=list("abc"))
    table["kind"] = np.where(rng.random(150) < 0.5, "new", "old")
    table.loc[::9, "a"] = np.nan
    y = y + 2 * (table["kind"] == "new")
    model = SelfStoppingQuantileRegressor(random_state=0).fit(table, y)
    assert set(model.leaderboard()["member"]) == {"blend", "ridge", "boosted trees"} | (
        set(model.leaderboard()["member"]) & {"blend"}
    )
    quantiles = model.predict_quantiles(table)
    is_new = table["kind"] == "new"
    assert (quantiles[is_new].mean(axis=0) > quantiles[~is_new].mean(axis=0) + 1).all()
    one = SelfStoppingRegressor(loss=Pinball(0.95), criterion="cv", random_state=0)
    one.fit(table, y)
    np.testing.assert_allclose(model.models_[2].predict(table), one.predict(table))


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (HistGradientBoostingRegressor(), {"loss": "quantile", "quantile": 0.2}),
        (GradientBoostingRegressor(), {"loss": "quantile", "alpha": 0.2}),
        (linear(), {"quantile": 0.2}),
        (
            TrajectoryRegressor(loss=SmoothedQuantile(0.9, 0.3)),
            {"loss": SmoothedQuantile(0.2, 0.3)},
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_where_a_level_is_set(estimator, expected, rng):
    X, y = drawn(rng, 60)
    name = next(iter({"n_estimators", "max_iter"} & estimator.get_params().keys()))
    estimator.set_params(**{name: 4})
    model = SelfStoppingQuantileRegressor(estimator, levels=[0.2], cv=FOLDS).fit(X, y)
    fitted = model.models_[0].estimator_
    params = getattr(fitted, "estimator_", fitted).get_params()
    assert {key: params[key] for key in expected} == expected


def test_expectiles(rng):
    """Of a constant they are asymmetric means; of members, by their own loss."""
    X, y = drawn(rng, 90)
    model = TrajectoryRegressor("path", loss="expectile", max_iter=30)
    of_levels = SelfStoppingQuantileRegressor(
        model, levels=[0.2, 0.8], loss="expectile", cv=FOLDS
    ).fit(X, y)
    for level, fitted in zip([0.2, 0.8], of_levels.models_):
        alone = clone(model).set_params(loss=Expectile(level), cv=FOLDS).fit(X, y)
        shared = alone.cv_path_[: len(fitted.path_)]  # patience has ended it
        np.testing.assert_allclose(fitted.path_, shared, rtol=1e-10)
    found = of_levels.predict_expectiles(X)
    assert (found[:, 0] <= found[:, 1]).all()
    assert not hasattr(of_levels, "predict_quantiles")
    with pytest.raises(AttributeError, match="predict_interval"):
        of_levels.predict_interval(X)
    assert 0 < of_levels.score(X, y) < 1
    # A model without columns.
    constant = of_levels.score(X, y) - 1
    grid = np.linspace(y.min(), y.max(), 20_001)
    least, reached = 0.0, 0.0
    for level, column in zip([0.2, 0.8], found.T):
        losses = Expectile(level).value(y[:, None], grid[None]).mean(axis=0)
        least += losses.min()
        reached += Expectile(level).value(y, column).mean()
    assert constant == pytest.approx(-reached / least, rel=1e-6)
    default = SelfStoppingQuantileRegressor(loss="expectile", cv=FOLDS).fit(X, y)
    assert (np.diff(default.predict_expectiles(X), axis=1) >= 0).all()
    with pytest.raises(ValueError, match="has no expectile loss"):
        SelfStoppingQuantileRegressor(trees(), loss="expectile").fit(X, y)
    with pytest.raises(ValueError, match="conformalize=True is for loss='quantile'"):
        clone(of_levels).set_params(conformalize=True).fit(X, y)


# ------------------------------------------------------------------ as an estimator


@pytest.mark.parametrize("weighted", [False, True])
def test_the_score_is_that_of_scikit_learn(weighted, rng):
    X, y = drawn(rng, 80)
    weights = rng.uniform(0.5, 2, 80) if weighted else None
    model = SelfStoppingQuantileRegressor(trees(), levels=[0.3], cv=FOLDS).fit(X, y)
    expected = d2_pinball_score(y, model.predict(X), alpha=0.3, sample_weight=weights)
    # Its constant is a mean of two targets where they are equally good.
    assert model.score(X, y, weights) == pytest.approx(expected, rel=1e-3)


def test_frames_pipelines_searches_and_pickles(rng):
    X, y = drawn(rng, 80)
    X = pd.DataFrame(X, columns=list("abc"))
    inner = make_pipeline(StandardScaler(), GradientBoostingRegressor(n_estimators=5))
    model = SelfStoppingQuantileRegressor(inner, levels=[0.1, 0.9], random_state=0)
    model.fit(X, y)
    assert model.n_features_in_ == 3
    assert list(model.feature_names_in_) == list("abc")
    again = pickle.loads(pickle.dumps(model))
    small = pickle.loads(pickle.dumps(model.drop_record()))
    for method in ("predict_quantiles", "predict_interval"):
        found = getattr(model, method)(X[:7])
        np.testing.assert_array_equal(getattr(again, method)(X[:7]), found)
        np.testing.assert_array_equal(getattr(small, method)(X[:7]), found)
    assert len(pickle.dumps(small)) < len(pickle.dumps(model))
    with pytest.raises(AttributeError, match="after drop_record"):
        small.held_out_prediction_  # noqa: B018
    outer = make_pipeline(StandardScaler(), clone(model).set_params(estimator=trees()))
    scores = cross_val_score(outer, X, y, cv=2)
    assert np.isfinite(scores).all()
    search = GridSearchCV(outer, {"selfstoppingquantileregressor__rule": ["min"]}, cv=2)
    assert np.isfinite(search.fit(X, y).best_score_)
    nested = clone(model).set_params(estimator__standardscaler__with_mean=False)
    assert not nested.estimator[0].with_mean


def test_routed_metadata(rng):
    X, y = drawn(rng, 60)
    groups = np.repeat(np.arange(12), 5)
    plain = SelfStoppingQuantileRegressor(linear(), cv=GroupKFold(4))
    plain.fit(X, y, groups=groups)
    with config_context(enable_metadata_routing=True):
        routed = clone(plain).fit(X, y, groups=groups)
        rows = plain.models_[0].estimator_.cv_indices_
        for found, expected in zip(routed.models_[0].estimator_.cv_indices_, rows):
            np.testing.assert_array_equal(found, expected)


def test_where_residuals_alone_are_kept(rng, set_limits):
    X, y = drawn(rng, 60)
    model = SelfStoppingQuantileRegressor(trees(), levels=[0.1, 0.9], cv=FOLDS)
    expected = model.fit(X, y).predict_interval(X, 0.8)
    set_limits(MOST_OF_CHOICE=1, MEMORY_BYTES=1)
    model.fit(X, y)
    assert not hasattr(model.models_[0].estimator_, "cv_prediction_path_")
    np.testing.assert_allclose(model.predict_interval(X, 0.8), expected, rtol=1e-12)
    again = pickle.loads(pickle.dumps(model))
    with pytest.raises(AttributeError, match="loading a pickle of a fit to many rows"):
        again.held_out_prediction_  # noqa: B018


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("patience", 1),
        ("min_delta", 100.0),
        ("cv", 3),
        ("rule", "one_se"),
        ("encoder", TableEncoder()),
        ("random_state", 7),
    ],
)
def test_settings_are_those_of_every_level(name, value, rng):
    """As of a stopping estimator of the level."""
    X, y = drawn(rng, 120)
    boosted = GradientBoostingRegressor(
        n_estimators=90, subsample=0.7, max_leaf_nodes=4, learning_rate=0.2
    )
    settings = {"random_state": 0, "patience": 10, name: value}
    model = SelfStoppingQuantileRegressor(boosted, levels=[0.2, 0.7], **settings)
    model.fit(X, y)
    for level, fitted in zip([0.2, 0.7], model.models_):
        boosted.set_params(loss="quantile", alpha=level)
        alone = TrajectoryEarlyStoppingCV(boosted, criterion="cv", **settings)
        np.testing.assert_array_equal(fitted.path_, alone.fit(X, y).path_)
        assert fitted.best_iter_ == alone.best_iter_
        assert (fitted.encoder_ is None) == (name != "encoder")


def test_verbose_names_the_levels(rng, capsys):
    X, y = drawn(rng, 60)
    SelfStoppingQuantileRegressor(linear(), levels=[0.2, 0.7], verbose=1).fit(X, y)
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if line.startswith("quantile of level")] == [
        "quantile of level 0.2",
        "quantile of level 0.7",
    ]


def test_what_is_refused(rng):
    X, y = drawn(rng, 60)
    model = SelfStoppingQuantileRegressor(trees(), levels=[0.1, 0.9])
    with pytest.raises(NotFittedError):
        model.predict_interval(X)
    with pytest.raises(NotFittedError):
        model.leaderboard()
    with pytest.raises(ValueError, match="y has 2 columns"):
        model.fit(X, np.stack([y, y], axis=1))
    other = clone(model).set_params(cv=ShuffleSplit(3, test_size=0.2))
    with pytest.raises(ValueError, match=r"other rows at every level.* random_state"):
        other.fit(X, y)
    assert not hasattr(other, "models_")
    for levels in ([], [0.0, 0.5], [1.0], ["low"], [[0.1], [0.9]], [np.nan]):
        with pytest.raises(ValueError, match="levels must be numbers between 0 and 1"):
            clone(model).set_params(levels=levels).fit(X, y)
    with pytest.raises(ValueError, match="has a level several times"):
        clone(model).set_params(levels=[0.1, 0.5, 0.1]).fit(X, y)
    with pytest.raises(TypeError, match="has no parameter 'quantiles'"):
        SelfStoppingQuantileRegressor(quantiles=[0.1])
    for estimator in (RandomForestRegressor(3), IterativeRidge()):
        with pytest.raises(ValueError, match="has no pinball loss: use boosted trees"):
            SelfStoppingQuantileRegressor(estimator).fit(X, y)
    with pytest.raises(ValueError, match="is a classifier"):
        SelfStoppingQuantileRegressor(HistGradientBoostingClassifier()).fit(X, y)
    with pytest.raises(ValueError, match="which stops itself"):
        SelfStoppingQuantileRegressor(TrajectoryEarlyStoppingCV(trees())).fit(X, y)
    model.fit(X, y)
    with pytest.raises(TypeError, match="no parameter alpha: use coverage="):
        model.predict_interval(X, alpha=0.1)
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.predict_interval(X, 1.0)
    with pytest.raises(ValueError, match=r"levels=\[0.5\] are not all among"):
        model.predict_quantiles(X, [0.5])
    with pytest.raises(AttributeError, match="predict_expectiles"):
        model.predict_expectiles(X)
    one_sided = clone(model).set_params(levels=[0.1, 0.5]).fit(X, y)
    with pytest.raises(ValueError, match=r"two levels that are symmetric about 0\.5"):
        one_sided.predict_interval(X)


def test_figures_name_the_pinball_loss(rng):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, y = drawn(rng, 60)
    for estimator in (trees(), linear()):
        model = SelfStoppingQuantileRegressor(estimator, levels=[0.2], cv=FOLDS)
        display = RiskPathDisplay.from_estimator(model.fit(X, y).models_[0])
        assert "pinball loss" in display.ax_.get_ylabel()
        assert "smoothed" not in display.ax_.get_ylabel()
        plt.close("all")
