"""Data that every file of this folder draws."""

import pytest


@pytest.fixture
def data(rng):
    X = rng.standard_normal((60, 6)) + 0.5
    y = X @ rng.standard_normal(6) + rng.standard_normal(60)
    return X, y, rng.uniform(0.3, 3, 60)
