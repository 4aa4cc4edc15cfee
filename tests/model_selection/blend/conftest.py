"""Data that every file of this folder draws."""

import numpy as np
import pytest


@pytest.fixture
def data(rng):
    """A line that a lasso finds, and a wave that a kernel machine finds."""
    X = rng.standard_normal((120, 6))
    y = 1.5 * (X[:, 0] - X[:, 1] + np.sin(2 * X[:, 2]))
    return X, y + 0.7 * rng.standard_normal(120)


@pytest.fixture
def weights_of_all_rows(set_limits):
    """Weights are those of all held-out rows, and no means over draws of them."""
    set_limits(DRAWS_OF_WEIGHTS=0)
