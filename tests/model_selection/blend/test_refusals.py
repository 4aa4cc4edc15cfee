"""What cannot be blended."""

import numpy as np
import pytest

from skacv import (
    IterativeRidge,
    RowSummary,
    TrajectoryEarlyStoppingCV,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
)
from tests.model_selection.cases import NestedLeastSquares

from .cases import blended, classifiers, members


@pytest.mark.parametrize(
    ("estimator", "settings", "message"),
    [
        (
            [("ridge", IterativeRidge()), ("huber", TrajectoryHuberRegressor())],
            {},
            "'ridge': squared error, 'huber': Huber loss",
        ),
        (
            [("ridge", IterativeRidge()), ("lasso", TrajectoryLasso())],
            {"criterion": "risk"},
            "which criterion='risk' does not provide: use criterion='cv' or 'loo'",
        ),
        (
            [("a", NestedLeastSquares()), ("b", NestedLeastSquares())],
            {},
            "'a': another loss",
        ),
    ],
)
def test_members_that_cannot_be_blended_are_refused(estimator, settings, message, data):
    model = TrajectoryEarlyStoppingCV(estimator, rule="blend", **settings)
    with pytest.raises(ValueError, match=message):
        model.fit(*data)
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize("criterion", ["auto", "accuracy"])
def test_classifiers_without_probabilities_are_refused(criterion, data, advances):
    X, y = data
    pairs = [("svm", TrajectoryLinearSVC()), *classifiers()]
    with pytest.raises(ValueError, match=r"'svm' \(TrajectoryLinearSVC\) has no pred"):
        blended(pairs, X, y > 0, criterion=criterion)
    assert not advances  # before anything is run


def test_summaries_are_refused(data):
    X, y = data
    summary = RowSummary(n_folds=3).partial_fit(X, y)
    with pytest.raises(ValueError, match="which a RowSummary does not have"):
        blended(members()[:2], summary, None)
    one = blended([members()[1]], summary, None, patience="auto")
    assert type(one.estimator_) is IterativeRidge


def test_collections_are_refused(data):
    array = pytest.importorskip("dask.array")
    X, y = (array.from_array(each, chunks=40) for each in data)
    with pytest.raises(ValueError, match="stay on their workers with Dask input"):
        blended(members()[:2], X, y)


def test_scores_that_are_undefined(data):
    def undefined(estimator, X, y):
        return np.nan

    with pytest.raises(ValueError, match="undefined"):
        blended(members(), *data, criterion=undefined)


def test_a_member_without_a_score_has_no_weight(data):
    def no_kernel(estimator, X, y):
        found = estimator.predict(X)
        alike = getattr(estimator, "kernel", None) is not None
        return np.nan if alike else -np.mean((found - y) ** 2)

    model = blended(members(), *data, criterion=no_kernel)
    assert model.weights_["kernel"] == 0
    assert sum(model.weights_.values()) == pytest.approx(1)
