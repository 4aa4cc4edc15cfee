"""Models of survival times stop where held-out rows, pooled, are the likeliest."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from skacv import IterativeRidge, TrajectoryCoxRegressor, TrajectoryEarlyStoppingCV
from skacv._estimator.prediction.survival_scores import integrated_brier_score

SETTINGS = {"penalty": "l1", "max_iter": 20, "standardize": True}


@pytest.fixture
def X(rng):
    return rng.standard_normal((150, 30))


@pytest.fixture
def y(X, rng):
    time, end = rng.exponential(np.exp(-X[:, 0])), rng.exponential(2.0, 150)
    pairs = np.empty(150, [("cens", bool), ("t", float)])
    pairs["cens"], pairs["t"] = time <= end, np.minimum(time, end)
    return pairs


@pytest.mark.parametrize("criterion", ["auto", "cox", "cv"])
def test_folds_choose_by_pooled_likelihoods(criterion, X, y):
    model = TrajectoryCoxRegressor("path", **SETTINGS)
    stopping = TrajectoryEarlyStoppingCV(
        model, criterion=criterion, cv=KFold(5), patience=None
    ).fit(X, y)
    alone = TrajectoryCoxRegressor("path", cv=KFold(5), **SETTINGS).fit(X, y)
    assert stopping.best_iter_ == alone.cv_path_.argmin()
    np.testing.assert_allclose(stopping.best_score_, alone.cv_path_.min())
    np.testing.assert_allclose(stopping.best_score_se_ > 0, True)
    assert stopping.criterion_ == "cv"
    best = alone.at_iteration(alone.cv_path_.argmin())
    np.testing.assert_allclose(stopping.coef_, best.coef_)
    assert stopping.score(X, y) == best.score(X, y) > 0.6
    for method in ("survival", "cumulative_hazard"):
        found, expected = (
            getattr(each, f"predict_{method}_function")(X[:3], return_array=True)
            for each in (stopping.drop_record(), best)
        )
        np.testing.assert_allclose(found, expected)
    # The choice has made the score too good.
    assert stopping.best_score_corrected_ > stopping.best_score_


def test_default_folds_have_events_in_proportion(X, y, rng):
    rare = y.copy()
    rare["cens"] &= np.arange(150) % 10 == 0
    stopping = TrajectoryEarlyStoppingCV(TrajectoryCoxRegressor(**SETTINGS))
    held_out = stopping.fit(X, rare).estimator_.cv_indices_
    counts = [rare["cens"][rows].sum() for rows in held_out]
    assert len(counts) == 5
    assert np.ptp(counts) <= 1
    many = TrajectoryEarlyStoppingCV(TrajectoryCoxRegressor(max_iter=2))
    # A fold of so many rows would be enough of other targets.
    rows = np.arange(6000) % 150
    more = X[rows] + 0.1 * rng.standard_normal((6000, 30))
    assert len(many.fit(more, y[rows]).estimator_.cv_indices_) == 5


def test_concordance_of_all_held_out_rows(X, y):
    model = TrajectoryCoxRegressor("path", cv=4, **SETTINGS)
    stopping = TrajectoryEarlyStoppingCV(model, criterion="concordance")
    stopping.fit(X, (y["cens"], y["t"]))
    path = []
    held_out = np.concatenate(stopping.estimator_.cv_indices_)
    whole = TrajectoryCoxRegressor("path", cv=4, **SETTINGS).fit(X, y)
    event, time = y["cens"][held_out], y["t"][held_out]
    for risk in np.asarray(whole.cv_prediction_path_)[: len(stopping.path_)]:
        agree, n = 0.0, 0
        for i in np.flatnonzero(event):
            later = time > time[i]
            agree += np.sum(risk[i] > risk[later]) + np.sum(risk[i] == risk[later]) / 2
            n += later.sum()
        path.append(agree / n)
    np.testing.assert_allclose(stopping.path_, path)
    assert stopping.best_score_ == max(stopping.path_)
    assert stopping.best_iter_ == stopping.path_.argmax()


def test_the_integrated_brier_score_of_all_held_out_rows(X, y):
    model = TrajectoryCoxRegressor("path", cv=4, **SETTINGS)
    stopping = TrajectoryEarlyStoppingCV(model, criterion="ibs", patience=None)
    stopping.fit(X, y)
    whole = TrajectoryCoxRegressor("path", cv=4, **SETTINGS).fit(X, y)
    held_out = y[np.concatenate(whole.cv_indices_)]
    held_out.dtype.names = "event", "time"
    path = [-integrated_brier_score(held_out, z) for z in whole.cv_prediction_path_]
    np.testing.assert_allclose(stopping.path_, path)
    assert stopping.best_iter_ == np.argmax(path) > 0
    assert stopping.criterion_ == "ibs"
    assert stopping.best_score_se_ > 0


def test_members_grids_and_weights(X, y, rng):
    members = [
        ("lasso", TrajectoryCoxRegressor("path", **SETTINGS)),
        ("ridge", TrajectoryCoxRegressor("path", max_iter=20, ties="efron")),
    ]
    weights = rng.integers(0, 3, 150).astype(float)
    stopping = TrajectoryEarlyStoppingCV(members, rule="one_se")
    assert stopping.fit(X, y, sample_weight=weights).best_member_ in dict(members)
    for search in ("all", "race"):
        grid = TrajectoryEarlyStoppingCV(
            TrajectoryCoxRegressor(**SETTINGS),
            param_grid={"alpha": [0.1, 100.0]},
            search=search,
        )
        assert grid.fit(X, y).best_params_ == {"alpha": 0.1}


@pytest.mark.parametrize("criterion", ["loo", "risk"])
def test_estimates_of_single_rows_are_refused(criterion, X, y):
    model = TrajectoryCoxRegressor()
    with pytest.raises(ValueError, match="compares rows with each other"):
        TrajectoryEarlyStoppingCV(model, criterion=criterion).fit(X, y)


def test_what_cannot_be_compared_is_refused(X, y):
    cox, ridge = TrajectoryCoxRegressor(), IterativeRidge()
    with pytest.raises(ValueError, match="'b' are not"):
        TrajectoryEarlyStoppingCV([("a", cox), ("b", ridge)]).fit(X, y)
    with pytest.raises(ValueError, match="no common unit"):
        TrajectoryEarlyStoppingCV([("a", cox), ("b", cox)], rule="blend").fit(X, y)
    for criterion in ("cox", "concordance", "ibs"):
        with pytest.raises(ValueError, match="models of survival times"):
            TrajectoryEarlyStoppingCV(ridge, criterion=criterion).fit(X, y["t"])
    with pytest.raises(ValueError, match="TrajectoryCoxRegressor is fitted to these"):
        TrajectoryEarlyStoppingCV(ridge).fit(X, y)
    with pytest.raises(ValueError, match="times 'cox', 'concordance' or 'ibs'"):
        TrajectoryEarlyStoppingCV(cox, criterion="c_index").fit(X, y)
    with pytest.raises(ValueError, match="negative"):
        TrajectoryEarlyStoppingCV(cox).fit(X, (y["cens"], -y["t"]))
