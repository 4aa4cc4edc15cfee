"""Data that every file of this folder draws."""

import numpy as np
import pytest


@pytest.fixture
def data(rng):
    X = rng.standard_normal((80, 3))
    return X, X[:, 0] + np.abs(X[:, 1]) + 0.5 * rng.standard_normal(80)


@pytest.fixture
def labelled(data):
    X, y = data
    return X, np.where(y > np.median(y), "yes", "no")
