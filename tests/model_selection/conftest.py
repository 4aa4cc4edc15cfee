"""Data that most files of this folder draw."""

import pytest


@pytest.fixture
def data(rng):
    X = rng.standard_normal((80, 40))
    return X, X[:, :3].sum(axis=1) + rng.standard_normal(80)
