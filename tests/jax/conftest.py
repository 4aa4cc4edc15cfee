from importlib.util import find_spec

import pytest

if find_spec("jax"):
    import jax

    jax.config.update("jax_enable_x64", True)


@pytest.fixture
def logistic_data(rng):
    X = rng.standard_normal((40, 5))
    return X, (X[:, 0] + rng.standard_normal(40) > 0).astype(float)
