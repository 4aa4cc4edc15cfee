"""Small boosted trees, and that two fits of them are the same."""

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

SMALL = {"max_iter": 5, "min_samples_leaf": 5, "random_state": 0}


def boosted(**settings):
    return HistGradientBoostingRegressor(**{**SMALL, **settings})


def assert_same_fits(found, expected, X):
    for name in ("cv_path_", "cv_se_path_", "cv_fold_path_", "cv_prediction_path_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
