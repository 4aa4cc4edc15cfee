"""Every loss: its derivatives against finite differences."""

import numpy as np
import pytest

from skacv.optim.losses import LOSSES

STEP = 1e-6


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_derivatives(loss, rng):
    target, predictor = rng.standard_normal((2, 20, 3))
    above, below = predictor + STEP, predictor - STEP
    np.testing.assert_allclose(
        loss.derivative(target, predictor),
        (loss.value(target, above) - loss.value(target, below)) / (2 * STEP),
        atol=1e-7,
    )
    np.testing.assert_allclose(
        loss.curvature(target, predictor),
        (loss.derivative(target, above) - loss.derivative(target, below)) / (2 * STEP),
        atol=1e-7,
    )


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_curvature_is_bounded(loss, rng):
    target, predictor = 10 * rng.standard_normal((2, 50, 1))
    assert (loss.curvature(target, predictor) <= loss.curvature_bound).all()
    assert (loss.curvature(target, predictor) >= 0).all()
