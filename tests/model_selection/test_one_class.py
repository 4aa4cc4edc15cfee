"""Folds whose training rows have one class do not end the fit of a classifier."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, KFold, TimeSeriesSplit

from skacv import (
    KernelEigenProClassifier,
    RecursiveFeatureMachineClassifier,
    SelfStoppingClassifier,
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryLogisticRegression,
)
from tests.internals import default_members

TREES = GradientBoostingClassifier(n_estimators=4, random_state=0)
CLASSIFIERS = {
    "trees": TREES,
    "AdaBoost": AdaBoostClassifier(n_estimators=3, random_state=0),
    "decisions": SGDClassifier(max_iter=3, random_state=0),
    "feature machine": RecursiveFeatureMachineClassifier(random_state=0),
    "kernel": KernelEigenProClassifier(random_state=0),
    "logistic": TrajectoryLogisticRegression("path", max_iter=3),
}
FOLDS = KFold(4)
# Rows are few.
pytestmark = pytest.mark.filterwarnings("ignore:The chosen stage is worse")


@pytest.fixture
def late(rng):
    """Rows in order of time, without an event in the first third."""
    X = rng.standard_normal((66, 3))
    return X, ((X[:, 0] + 0.3 * X[:, 1] > 0) & (np.arange(66) > 23)).astype(int)


@pytest.fixture
def single(rng):
    """Rows of which one is of the second class."""
    X = rng.standard_normal((60, 3))
    return X, np.where(np.arange(60) == 7, "yes", "no")


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_folds_of_one_class_are_left_out(name, late):
    X, y = late
    splits = list(TimeSeriesSplit(5).split(X))
    model = TrajectoryEarlyStoppingCV(CLASSIFIERS[name], random_state=0)
    with pytest.warns(UserWarning, match="Folds 0, 1 of cv .* one class.* left out"):
        model.set_params(cv=TimeSeriesSplit(5)).fit(X, y)
    expected = clone(model).set_params(cv=splits[2:]).fit(X, y)
    np.testing.assert_allclose(model.path_, expected.path_, rtol=1e-12)
    assert model.best_score_corrected_ == expected.best_score_corrected_
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_folds_that_alone_hold_out_a_class_stay(name, single):
    X, y = single
    model = TrajectoryEarlyStoppingCV(CLASSIFIERS[name], cv=FOLDS, random_state=0)
    with pytest.warns(UserWarning, match="Fold 0 of cv .* used nevertheless"):
        model.fit(X, y)
    assert "split3_test_score" in model.cv_results_
    assert np.isfinite(model.best_score_)
    assert not np.isnan(model.held_out_prediction_).any()


def test_stages_are_certain_of_the_only_class(single):
    X, y = single
    model = Staged(TREES, cv=FOLDS, keep="mean").fit(X, y)
    losses, certain = [], np.tile([1.0, 0.0], (15, 1))
    for t in range(5):
        of_folds = []
        for number, (fitted, held_out) in enumerate(FOLDS.split(X)):
            of_fold = certain
            if number > 0 and t > 0:
                fold = clone(TREES).set_params(n_estimators=t).fit(X[fitted], y[fitted])
                of_fold = fold.predict_proba(X[held_out])
            elif number > 0:
                shares = [(y[fitted] == label).mean() for label in ("no", "yes")]
                of_fold = np.tile(shares, (15, 1))
            of_folds.append(log_loss(y[held_out], of_fold, labels=["no", "yes"]))
        losses.append(of_folds)
    np.testing.assert_allclose(model.cv_fold_path_, losses, rtol=1e-9)
    # The mean over copies has that of this fold too.
    whole = TREES.fit(X, y).predict_proba(X)
    copies = [clone(TREES).fit(X[k], y[k]).predict_proba(X) for k, _ in folds_of_two(X)]
    expected = np.mean([whole, np.tile([1.0, 0.0], (60, 1)), *copies], axis=0)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-9)


def folds_of_two(X):
    """The folds whose training rows have both classes."""
    return list(FOLDS.split(X))[1:]


def test_rows_of_weight_zero_are_of_no_class(single):
    X, y = single
    y, weights = y.astype(object), np.ones(60)
    y[30], y[31], weights[30:32] = "yes", "maybe", 0.0
    with pytest.warns(UserWarning, match="Fold 0 of cv"):
        model = TrajectoryEarlyStoppingCV(TREES, cv=FOLDS, random_state=0).fit(
            X, y, sample_weight=weights
        )
    assert np.isfinite(model.best_score_)


@pytest.mark.parametrize("case", ["time", "groups", "row"])
def test_the_default_goes_on(case, late, single, few_trees):
    params, cv, (X, y) = {}, TimeSeriesSplit(4), late
    if case == "row":
        cv, (X, y) = None, single
    elif case == "groups":
        X, cv = single[0], GroupKFold(5)
        y, params = (
            (np.arange(60) // 6 == 3).astype(int),
            {"groups": np.arange(60) // 6},
        )
    with warnings.catch_warnings(action="ignore"):
        model = SelfStoppingClassifier(cv=cv, random_state=0).fit(X, y, **params)
    assert not any(model.results_["left_out"])
    assert set(model.weights_) == default_members("classification").keys()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_folds_that_are_no_folds_have_errors_of_their_own(single):
    X, y = single
    model = TrajectoryEarlyStoppingCV(TREES, cv=[(np.arange(30), np.array([99]))])
    with pytest.raises(ValueError, match="Fold 0 of cv has rows beyond the 60 samples"):
        model.fit(X, y)
