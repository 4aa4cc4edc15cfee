"""A run ends where the gain to expect of further stages is less than ``min_delta``."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.linear_model import SGDRegressor

from skacv import (
    IterativeRidge,
    SelfStoppingClassifier,
    SelfStoppingQuantileRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
)

PATIENCE = 50


@pytest.fixture
def data(rng):
    X = rng.standard_normal((200, 4))
    return X, X[:, 0] * (X[:, 1] > 0) + X[:, 2] + 0.5 * rng.standard_normal(200)


@pytest.fixture
def separable(rng):
    """Classes with a gap between them: the log loss of boosted trees falls for long."""
    X = rng.uniform(-1, 1, (120, 2))
    X[:, 0] += 0.5 * np.sign(X[:, 0])
    return X, (X[:, 0] > 0).astype(int)


def trees(**params):
    settings = {"n_estimators": 250, "max_depth": 2, "random_state": 0} | params
    return GradientBoostingRegressor(**settings)


def stopped(estimator, **params):
    return TrajectoryEarlyStoppingCV(estimator, random_state=0, **params)


def later_gain(path, n):
    """What iterates after n may gain, by the least losses of n / 4, n / 2 and n."""
    quarter, half, all_ = (path[1 : 1 + k].min() for k in (n // 4, n // 2, n))
    gain, former = half - all_, quarter - half
    if gain <= 0:
        return 0.0
    ratio = 2.0 if former <= 0 else min(max(gain / former, 0.5), 2.0)
    return sum(gain * ratio**doubling for doubling in range(1, 9))


def ends_at(path, least_gains):
    """Where a run of boosted trees pauses for the last time.

    ``path`` is that of a long run, ``least_gains`` the bound at every iterate.
    """
    n = PATIENCE
    while True:
        best = 1 + int(path[1 : n + 1].argmin())
        left = best + PATIENCE - n
        if left <= 0 or later_gain(path, n) < least_gains[best]:
            return n
        n = max(n + min(left, max(n // 4, 20)), int(np.ceil(1.1 * n)))


@pytest.mark.parametrize("min_delta", [1e-4, 0.003, 0.03])
def test_a_number_bounds_the_gain_to_expect(min_delta, data):
    whole = stopped(trees(learning_rate=0.06), patience=None).fit(*data)
    model = stopped(trees(learning_rate=0.06), min_delta=min_delta).fit(*data)
    n = ends_at(whole.path_, np.full(251, min_delta))
    np.testing.assert_array_equal(model.path_, whole.path_[: n + 1])
    assert model.best_iter_ == whole.path_[: n + 1].argmin()


def test_auto_is_a_tenth_of_the_standard_error(data):
    whole = stopped(trees(learning_rate=0.06), patience=None).fit(*data)
    model = stopped(trees(learning_rate=0.06)).fit(*data)
    n = ends_at(whole.path_, 0.1 * whole.estimator_.cv_se_path_)
    np.testing.assert_array_equal(model.path_, whole.path_[: n + 1])


def test_zero_leaves_it_to_patience(data):
    whole = stopped(trees(), patience=None).fit(*data)
    model = stopped(trees(), min_delta=0, patience=60).fit(*data)
    assert model.best_iter_ == whole.best_iter_
    assert len(model.path_) - 1 >= model.best_iter_ + 60


def test_the_log_loss_of_separable_classes_does_not_fall_for_ever(separable):
    booster = GradientBoostingClassifier(
        n_estimators=1000, learning_rate=0.05, max_depth=1, random_state=0
    )
    by_patience, model = (
        stopped(booster, min_delta=least).fit(*separable) for least in (0, "auto")
    )
    assert len(model.path_) < len(by_patience.path_) - 100
    assert model.best_score_ - by_patience.best_score_ < model.path_[0] / 120


@pytest.mark.parametrize(
    "estimator",
    [
        TrajectoryLasso("path", max_iter=5),
        IterativeRidge(0.0, max_iter=300),
        SGDRegressor(max_iter=60, random_state=0),
    ],
)
def test_auto_judges_trees_alone(estimator, data):
    settings = {"patience": 8, "criterion": "cv"}
    model = stopped(estimator, **settings).fit(*data)
    by_patience = stopped(estimator, min_delta=0, **settings).fit(*data)
    np.testing.assert_array_equal(model.path_, by_patience.path_)


def test_a_number_judges_every_run_with_patience(data):
    ridge = IterativeRidge(0.0, max_iter=300, step_size=0.02)
    settings = {"patience": 100, "criterion": "cv"}
    n_by_patience, n = (
        len(stopped(ridge, min_delta=least, **settings).fit(*data).path_)
        for least in (0, 0.01)
    )
    assert n < n_by_patience


def test_scores_are_judged_in_their_units(data):
    settings = {"criterion": "r2", "patience": 100}
    model = stopped(trees(), min_delta=0, **settings).fit(*data)
    ended = stopped(trees(), min_delta=0.5, **settings).fit(*data)
    assert len(ended.path_) < len(model.path_)
    np.testing.assert_array_equal(ended.path_, model.path_[: len(ended.path_)])


def test_members_of_a_blend_end_by_what_is_kept(separable):
    """No more is expected of them than one wrong row costs."""
    model = SelfStoppingClassifier(random_state=0).fit(*separable)
    ended = model.member_paths_["boosted trees"]
    assert len(ended) < 400
    assert model.best_score_ < ended[0] / 120 < ended.min()


def test_quantiles_have_it(data):
    settings = {"random_state": 0, "patience": 100, "min_delta": 0.5}
    model = SelfStoppingQuantileRegressor(trees(), levels=[0.1, 0.9], **settings)
    model.fit(*data)
    lower = trees(loss="quantile", alpha=0.1)
    alone = stopped(lower, min_delta=0.5, patience=100).fit(*data)
    np.testing.assert_array_equal(model.models_[0].path_, alone.path_)


@pytest.mark.parametrize("min_delta", [-1, None, "none", np.nan])
def test_it_is_a_number_that_is_not_negative(min_delta, data):
    with pytest.raises(ValueError, match="The 'min_delta' parameter"):
        stopped(trees(), min_delta=min_delta).fit(*data)
