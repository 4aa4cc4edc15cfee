"""Warnings of kept stages that are worse than a constant, with the cause."""

import warnings

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import TrajectoryEarlyStoppingCV, TrajectoryLasso


def unscaled(n_rows=40):
    rng = np.random.default_rng(0)
    X = rng.uniform([3, 5, 3], [8, 50, 9], size=(n_rows, 3))
    return X, 20 + 2 * X[:, 0] + 0.3 * X[:, 1] + rng.normal(size=n_rows)


def warned(model, X, y, **params):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, **params)
    texts = [str(one.message) for one in caught]
    return [text for text in texts if "worse than a constant" in text]


def stopped(estimator, **settings):
    return TrajectoryEarlyStoppingCV(estimator, cv=KFold(4), **settings)


def test_passes_over_unscaled_columns():
    X, y = unscaled()
    model = stopped(SGDRegressor(random_state=0))
    (message,) = warned(model, X, y)
    assert model.best_score_ > 1e6 * model.path_[0]
    assert f"held-out loss is {model.best_score_:.3g}" in message
    assert f"that of the constant {model.path_[0]:.3g}" in message
    sizes = np.sqrt(np.mean(X**2, axis=0))
    assert f"range from {sizes.min():.3g} to {sizes.max():.3g}" in message
    assert "make_pipeline(StandardScaler(), SGDRegressor())" in message
    scaled = make_pipeline(StandardScaler(), SGDRegressor(random_state=0))
    assert not warned(stopped(scaled), X, y)
    # Where the columns are scaled already, steps are too large.
    large = SGDRegressor(eta0=5.0, learning_rate="constant", random_state=0)
    (message,) = warned(stopped(large), StandardScaler().fit_transform(X), y)
    assert "steps may be too large" in message
    (message,) = warned(stopped(make_pipeline(StandardScaler(), large)), X, y)
    assert "StandardScaler" not in message


def test_classes_members_and_scorers():
    X, y = unscaled()
    labels = y > np.median(y)
    passes = SGDClassifier(loss="log_loss", random_state=0)
    (message,) = warned(stopped(passes), X, labels)
    assert "the class shares" in message
    # A scorer may rank stages otherwise.
    assert not warned(stopped(passes, criterion="roc_auc"), X, labels)
    # Nothing is said of a member that is not kept.
    members = [("passes", SGDRegressor(random_state=0)), ("lasso", TrajectoryLasso())]
    assert not warned(stopped(members), X, y)


def test_nothing_is_said_of_good_stages():
    X, y = unscaled(200)
    trees = HistGradientBoostingRegressor(max_iter=30)
    assert not warned(stopped(trees), X, y)
    assert not warned(stopped(trees), X, y, sample_weight=np.arange(200.0))


def test_catboost_begins_far_from_large_counts():
    catboost = pytest.importorskip("catboost")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    claims = np.where(rng.random(120) < 0.6, 0, np.exp(2 * rng.normal(size=120) + 3))
    trees = catboost.CatBoostRegressor(
        loss_function="Tweedie:variance_power=1.6",
        iterations=400,
        verbose=0,
        allow_writing_files=False,
        thread_count=1,
    )
    model = TrajectoryEarlyStoppingCV(trees, random_state=0)
    (message,) = warned(model, X, claims)
    assert "starts from the prediction 1, which is far from the mean" in message
    assert "divide y by its mean" in message
    assert not warned(model, X, claims / claims.mean())
