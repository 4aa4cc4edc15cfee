"""Every loss: what all have in common, and what is its own."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import nbinom
from sklearn.metrics import mean_tweedie_deviance

from skacv.optim.losses import (
    LOSSES,
    Expectile,
    Gamma,
    Logistic,
    LogLink,
    Loss,
    Multinomial,
    NegativeBinomial,
    Poisson,
    SmoothedQuantile,
    SquaredError,
    Tweedie,
)
from skacv.testing import check_loss

N_ROWS, N_OUTPUTS = 60, 3


def labels(rng):
    return rng.integers(0, 2, (N_ROWS, N_OUTPUTS)).astype(float)


def one_hot(rng):
    return np.eye(N_OUTPUTS)[rng.integers(0, N_OUTPUTS, N_ROWS)]


def signs(rng):
    return 2 * labels(rng) - 1


def counts(rng):
    return rng.poisson(2.0, (N_ROWS, N_OUTPUTS)).astype(float)


def amounts(rng):
    return rng.gamma(2.0, 1.5, (N_ROWS, N_OUTPUTS))


def amounts_or_nothing(rng):
    return np.where(labels(rng) > 0, amounts(rng), 0)


def real(rng):
    return rng.standard_normal((N_ROWS, N_OUTPUTS))


# Targets that a loss takes; real numbers where nothing is said here.
TARGETS = {
    "Logistic": labels,
    "Multinomial": one_hot,
    "SquaredHinge": signs,
    "SmoothedHinge": signs,
    "Poisson": counts,
    "Gamma": amounts,
    "Tweedie": amounts_or_nothing,
    "NegativeBinomial": counts,
}


def target_of(loss, rng):
    return TARGETS.get(type(loss).__name__, real)(rng)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_loss_is_what_it_says(loss, rng):
    check_loss(loss, target_of(loss, rng))


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


def test_log_loss_to_the_last_digits():
    predictor = np.concatenate([np.linspace(-800, 800, 4001), [-40.0, 1e-300, 40.0]])
    found, expected = Logistic().value(0.0, predictor), np.logaddexp(0, predictor)
    np.testing.assert_allclose(found, expected, rtol=4e-15)
    # A difference that rounds as 800 does.
    found = Logistic().value(1.0, predictor)
    np.testing.assert_allclose(found, expected - predictor, rtol=4e-15, atol=1e-12)


DEVIANCES = [(Poisson(), 1), (Tweedie(1.3), 1.3), (Gamma(), 2)]


@pytest.mark.parametrize(("loss", "power"), DEVIANCES, ids=str)
def test_a_log_link_has_half_the_deviance_of_scikit_learn(loss, power, rng):
    target, predictor = amounts(rng), real(rng)
    found = 2 * loss.value(target, predictor).mean()
    mean = loss.mean(predictor)
    expected = mean_tweedie_deviance(target.ravel(), mean.ravel(), power=power)
    assert found == pytest.approx(expected, rel=1e-12)


def test_negative_binomial_has_half_the_deviance_of_its_likelihood(rng):
    loss, target, predictor = NegativeBinomial(0.7), counts(rng), real(rng)

    def log_likelihood(mean):
        n = 1 / loss.theta
        return nbinom.logpmf(target, n, n / (n + mean))

    # At a mean of zero only counts of zero have a likelihood, of one.
    with np.errstate(invalid="ignore", divide="ignore"):
        best = np.where(target > 0, log_likelihood(target), 0)
    expected = best - log_likelihood(np.exp(predictor))
    np.testing.assert_allclose(loss.value(target, predictor), expected, atol=1e-12)
    mean = np.exp(predictor)
    n = 1 / loss.theta
    expected = nbinom.std(n, n / (n + mean))
    np.testing.assert_allclose(loss.spread(mean), expected)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.8])
def test_smoothed_quantile_is_the_pinball_loss_of_larger_residuals(level, rng):
    target, predictor = 3 * real(rng), real(rng)
    found = SmoothedQuantile(level, 0.25).value(target, predictor)
    residual = target - predictor
    pinball = np.maximum(level * residual, (level - 1) * residual)
    inside = np.abs(residual) < 0.25
    assert inside.any()
    np.testing.assert_allclose(found[~inside], pinball[~inside], rtol=1e-12)
    excess = found[inside] - pinball[inside]
    assert (excess > 0).all()
    assert (excess <= 0.25 / 4).all()
    # The mean of the pinball loss over uniform shifts.
    shifts = np.linspace(-0.25, 0.25, 20_001)
    shifted = residual[inside][:, None] + shifts
    mean = np.maximum(level * shifted, (level - 1) * shifted).mean(axis=1)
    np.testing.assert_allclose(found[inside], mean, atol=1e-4)


def test_expectile_of_a_half_is_half_the_squared_error(rng):
    target, predictor = real(rng), real(rng)
    for method in ("value", "derivative", "curvature"):
        found = getattr(Expectile(0.5), method)(target, predictor)
        expected = getattr(SquaredError(), method)(target, predictor)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


STARTED = [SmoothedQuantile(0.3), Expectile(0.7), Poisson(), Gamma(), Tweedie(1.5)]


@pytest.mark.parametrize("loss", STARTED, ids=str)
def test_a_run_starts_near_the_best_constant(loss, rng):
    target = 1000 * rng.gamma(4.0, 1.0, (N_ROWS, 2))
    weights = np.full((N_ROWS, 1), 1 / N_ROWS)
    start = loss.null_predictor(target, weights)
    if isinstance(loss, LogLink):  # a power of 16, or for gamma the next one of 4
        ratio = np.exp(start) / target.mean(axis=0)
        least, most = (1, 4) if isinstance(loss, Gamma) else (1 / 4, 4)
        assert (ratio >= least).all()
        assert (ratio <= most).all()
    else:
        lower, quantile, upper = np.quantile(
            target, [0.25, loss.level, 0.75], axis=0, method="inverted_cdf"
        )
        assert (np.abs(start - quantile) <= upper - lower).all()


@pytest.mark.parametrize("loss", STARTED, ids=str)
def test_a_row_that_is_left_out_hardly_ever_moves_the_start(loss, rng):
    target = 1000 * rng.gamma(4.0, 1.0, (N_ROWS, 300))
    weights = np.full((N_ROWS, 1), 1 / N_ROWS)
    start = loss.null_predictor(target, weights)
    without = loss.null_predictor(target[1:], weights[1:])
    assert np.mean(without != start) < 0.1


INVALID = [
    (lambda: Tweedie(2.5), "power must be between 1 and 2, got 2.5"),
    (lambda: NegativeBinomial(0.0), "theta must be positive, got 0.0"),
    (lambda: SmoothedQuantile(1.0), "level must be between 0 and 1, got 1.0"),
    (lambda: SmoothedQuantile(0.5, 0.0), "smoothing must be positive, got 0.0"),
    (lambda: Expectile(0.0), "level must be between 0 and 1, got 0.0"),
]


@pytest.mark.parametrize(("make", "message"), INVALID)
def test_numbers_of_a_loss_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if isinstance(loss, LogLink)])
def test_targets_of_a_log_link_are_checked(loss, rng):
    target = 1 + counts(rng)
    loss.check_target(target)
    target[3, 0] = -1
    with pytest.raises(ValueError, match=f"negative.* the {loss.name}"):
        loss.check_target(target)
    message = "zero or negative" if isinstance(loss, Gamma) else "All of y is zero"
    with pytest.raises(ValueError, match=message):
        loss.check_target(np.zeros((5, 1)))


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if isinstance(loss, LogLink)])
def test_predictions_of_zero_have_a_loss(loss):
    """Trees predict zero where a leaf has no event."""
    target, prediction = np.array([[1e-300], [0.0], [2.0]]), np.zeros((3, 1))
    if isinstance(loss, Gamma):
        target[1] = 1e-300
    value = loss.value(target, loss.predictor(prediction))
    assert np.isfinite(value[:2]).all()
    assert value[2] > 100
    if not isinstance(loss, Gamma):
        np.testing.assert_allclose(value[:2], 0, atol=1e-12)


HAVE_OFFSETS = [
    loss for loss in LOSSES if loss.is_of_residual or getattr(loss, "power", None)
]


def test_which_losses_have_offsets():
    without = {type(loss).__name__ for loss in LOSSES if loss not in HAVE_OFFSETS}
    assert without == {
        "Logistic",
        "Multinomial",
        "SquaredHinge",
        "SmoothedHinge",
        "NegativeBinomial",
    }
    for loss in HAVE_OFFSETS:
        loss.without_offset(np.ones(2), np.ones(2), np.zeros(2))
    for loss in set(LOSSES) - set(HAVE_OFFSETS):
        with pytest.raises(ValueError, match=f"not available for the {loss.name}"):
            loss.without_offset(np.ones(2), np.ones(2), np.zeros(2))
