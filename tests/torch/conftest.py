import pytest


@pytest.fixture
def logistic_data(rng):
    X = rng.standard_normal((40, 5))
    return X, (X[:, 0] + rng.standard_normal(40) > 0).astype(float)
