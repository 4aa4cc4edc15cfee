"""Data that every file of this folder draws."""

import numpy as np
import pytest


@pytest.fixture
def data(rng):
    X = rng.standard_normal((60, 3))
    return X, np.exp(0.4 * X[:, 0] + 0.2 * rng.standard_normal(60))


@pytest.fixture
def labelled(data):
    X, y = data
    return X, np.where(y > np.quantile(y, 0.7), "yes", "no")
