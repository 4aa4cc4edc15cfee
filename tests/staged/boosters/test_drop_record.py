"""Boosters without their record are about as large as those of their libraries."""

import pickle

import numpy as np
import pytest

from skacv import TrajectoryEarlyStoppingCV
from tests.test_skops import from_skops

from .cases import PLAIN, answer, booster, by_hand, table


@pytest.mark.parametrize("name", [*PLAIN, "XGBClassifier", "LGBMClassifier"])
def test_boosters(name):
    X, y = table("three numbers" if "Classifier" in name else "values")
    # Longer than the chosen stage, as runs are that patience ends.
    estimator = booster(name, n_stages=40)
    model = TrajectoryEarlyStoppingCV(estimator, cv=3, random_state=0).fit(X, y)
    expected = answer(model, X)
    has_intervals = "Regressor" in name
    interval = model.predict_interval(X) if has_intervals else None
    before = len(pickle.dumps(model))
    small = model.drop_record()
    stored = pickle.dumps(small)
    alone = by_hand(estimator, model.best_iter_, X, y, np.arange(len(y)))
    assert len(stored) <= min(2 * len(pickle.dumps(alone)), before)
    for other in (small, pickle.loads(stored), from_skops(small)):
        np.testing.assert_array_equal(answer(other, X), expected)
        if has_intervals:
            np.testing.assert_array_equal(other.predict_interval(X), interval)
    other = 1 if model.best_iter_ > 1 else 2
    with pytest.raises(ValueError, match=r"drop_record\(\) has dropped the others"):
        small.at_iteration(other)
