"""Every loss: its derivatives against finite differences."""

from dataclasses import dataclass

import numpy as np
import pytest

from skacv.optim.losses import (
    LOSSES,
    Logistic,
    Loss,
    Multinomial,
    Poisson,
    SquaredError,
)

STEP = 1e-6
N_ROWS, N_OUTPUTS = 60, 3


def labels(rng):
    return rng.integers(0, 2, (N_ROWS, N_OUTPUTS)).astype(float)


def one_hot(rng):
    return np.eye(N_OUTPUTS)[rng.integers(0, N_OUTPUTS, N_ROWS)]


def signs(rng):
    return 2 * labels(rng) - 1


def counts(rng):
    return rng.poisson(2.0, (N_ROWS, N_OUTPUTS)).astype(float)


def real(rng):
    return rng.standard_normal((N_ROWS, N_OUTPUTS))


# Targets that a loss takes; real numbers where nothing is said here.
TARGETS = {
    "Logistic": labels,
    "Multinomial": one_hot,
    "SquaredHinge": signs,
    "SmoothedHinge": signs,
    "Poisson": counts,
}


def target_of(loss, rng):
    return TARGETS.get(type(loss).__name__, real)(rng)


def differences(function, predictor):
    """Central differences in every output, stacked along a last axis."""
    shifts = STEP * np.eye(N_OUTPUTS)
    return np.stack(
        [
            (function(predictor + h) - function(predictor - h)) / (2 * STEP)
            for h in shifts
        ],
        axis=-1,
    )


def every_output(loss, array):
    """A derivative per output as what :func:`differences` of a row's sum gives."""
    return array if loss.is_coupled else array[:, :, None] * np.eye(N_OUTPUTS)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_derivative(loss, rng):
    target, predictor = target_of(loss, rng), 1.5 * real(rng)
    expected = differences(lambda z: loss.value(target, z).sum(axis=1), predictor)
    np.testing.assert_allclose(loss.derivative(target, predictor), expected, atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_curvature(loss, rng):
    target, predictor = target_of(loss, rng), 1.5 * real(rng)
    expected = differences(lambda z: loss.derivative(target, z), predictor)
    found = every_output(loss, loss.curvature(target, predictor))
    # A difference across a kink of the derivative is no curvature.
    above = every_output(loss, loss.curvature(target, predictor + STEP))
    below = every_output(loss, loss.curvature(target, predictor - STEP))
    smooth = np.abs(above - below) < 1e-3
    assert smooth.mean() > 0.99
    np.testing.assert_allclose(found[smooth], expected[smooth], atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_curvature_is_bounded_and_not_negative(loss, rng):
    target, predictor = target_of(loss, rng), 10 * real(rng)
    if isinstance(loss, Poisson):  # its bound is of means that the data show
        predictor = np.minimum(predictor, np.log(target.max()))
    eigenvalues = np.linalg.eigvalsh(
        every_output(loss, loss.curvature(target, predictor))
    )
    assert eigenvalues.max() <= loss.curvature_bound(target) + 1e-12
    assert eigenvalues.min() >= -1e-12


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_curvature_matrix_is_the_curvature_of_outputs_that_belong_together(loss, rng):
    n_outputs = N_OUTPUTS if loss.is_coupled else 1
    target = target_of(loss, rng)[:, :n_outputs]
    predictor = real(rng)[:, :n_outputs]
    found = loss.curvature_matrix(target, predictor)
    assert found.shape == (N_ROWS, n_outputs, n_outputs)
    curvature = loss.curvature(target, predictor)
    np.testing.assert_array_equal(found.ravel(), curvature.ravel())


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_replicas_are_further_axes(loss, rng):
    target = target_of(loss, rng)
    predictors = rng.standard_normal((N_ROWS, N_OUTPUTS, 4))
    for function in (loss.value, loss.derivative):
        together = function(target[:, :, None], predictors)
        for r in range(4):
            one = function(target, predictors[:, :, r])
            # NumPy's exp may round by where arrays lie, and values are differences.
            np.testing.assert_allclose(together[:, :, r], one, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_nothing_overflows_far_out(loss, rng):
    target = target_of(loss, rng)
    far = -800.0 * np.ones_like(target)
    for predictor in (far, -far) if not isinstance(loss, Poisson) else (far,):
        for function in (loss.value, loss.derivative, loss.curvature):
            assert np.isfinite(function(target, predictor)).all()


def test_a_loss_may_have_its_scale_as_a_field():
    @dataclass(frozen=True)
    class Scaled(Loss):
        scale: float

    assert Scaled(2.0).scale == 2.0


def test_cost_is_the_value_but_for_the_squared_error(rng):
    target, predictor = labels(rng), real(rng)
    loss = Logistic()
    np.testing.assert_array_equal(
        loss.reported(target, predictor), loss.value(target, predictor)
    )
    np.testing.assert_allclose(
        SquaredError().reported(target, predictor), (target - predictor) ** 2
    )


def test_two_classes_of_the_multinomial_are_the_logistic(rng):
    label, z = labels(rng)[:, :1], real(rng)[:, :1]
    both, scores = np.hstack([1 - label, label]), np.hstack([0 * z, z])
    found = Multinomial().value(both, scores)
    np.testing.assert_allclose(found, Logistic().value(label, z))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_predictor_is_the_inverse_of_the_mean(loss, rng):
    predictor = rng.standard_normal((20, 3))
    np.testing.assert_allclose(loss.predictor(loss.mean(predictor)), predictor)


def test_log_loss_to_the_last_digits():
    predictor = np.concatenate([np.linspace(-800, 800, 4001), [-40.0, 1e-300, 40.0]])
    found, expected = Logistic().value(0.0, predictor), np.logaddexp(0, predictor)
    np.testing.assert_allclose(found, expected, rtol=4e-15)
    # A difference that rounds as 800 does.
    found = Logistic().value(1.0, predictor)
    np.testing.assert_allclose(found, expected - predictor, rtol=4e-15, atol=1e-12)
