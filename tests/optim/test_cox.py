"""Cox's loss against the partial likelihood written out, event by event."""

import numpy as np
import pytest

from skacv.optim.cox import Cox

N_ROWS = 40
STEP = 1e-6


def partial_likelihood(target, z, weights, ties):
    """Half the deviance: minus the logarithm of the partial likelihood, shifted."""
    total, time, is_event = 0.0, np.abs(target), target > 0
    for t in np.unique(time[is_event & (weights > 0)]):
        tied = is_event & (time == t) & (weights > 0)
        at_risk, d, weight = time >= t, tied.sum(), weights[tied].sum()
        for already in range(d):
            share = already / d if ties == "efron" else 0.0
            risk = np.sum(weights[at_risk] * np.exp(z[at_risk]))
            risk -= share * np.sum(weights[tied] * np.exp(z[tied]))
            total += weight / d * np.log(risk / (weight * (1 - share)))
        total -= weights[tied] @ z[tied]
    return total


@pytest.fixture(params=["breslow", "efron"])
def loss(request):
    return Cox(request.param)


@pytest.fixture(params=["tied", "distinct"])
def target(request, rng):
    time = (
        rng.integers(1, 9, N_ROWS)
        if request.param == "tied"
        else rng.gamma(2, 3, N_ROWS)
    )
    return np.where(rng.random(N_ROWS) < 0.6, time, -time)[:, None].astype(float)


@pytest.fixture
def weights(rng):
    return (rng.gamma(2, 1, N_ROWS) * (rng.random(N_ROWS) < 0.8))[:, None]


def test_values_are_the_partial_likelihood(loss, target, weights, rng):
    z = rng.standard_normal((N_ROWS, 1))
    for w in weights, np.ones_like(weights):
        found = loss.weighted_values(target, z, w)
        expected = partial_likelihood(target[:, 0], z[:, 0], w[:, 0], loss.ties)
        np.testing.assert_allclose(found.sum(), expected, rtol=1e-12)
        assert not found[target < 0].any()


def test_slopes_are_its_derivatives(loss, target, weights, rng):
    z = rng.standard_normal((N_ROWS, 1))
    expected = np.zeros(N_ROWS)
    for i, h in enumerate(STEP * np.eye(N_ROWS)):
        above, below = (
            partial_likelihood(target[:, 0], z[:, 0] + s * h, weights[:, 0], loss.ties)
            for s in (1, -1)
        )
        expected[i] = (above - below) / (2 * STEP)
    found = loss.slopes(target, z, weights)
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-7)
    assert abs(found.sum()) < 1e-12


def test_rows_of_weight_zero_are_in_no_risk_set(loss, target, weights, rng):
    z, kept = rng.standard_normal((N_ROWS, 1)), weights[:, 0] > 0
    for function in (loss.weighted_values, loss.slopes):
        found, expected = (
            function(target[rows], z[rows], weights[rows])
            for rows in (slice(None), kept)
        )
        np.testing.assert_allclose(found[kept], expected, rtol=1e-12, atol=1e-15)
        assert not found[~kept].any()


def test_fits_side_by_side(loss, target, rng):
    z, weights = rng.standard_normal((2, N_ROWS, 1, 3))
    weights = np.maximum(weights, 0)
    for function in (loss.weighted_values, loss.slopes):
        together = function(target[:, :, None], z, weights)
        for r in range(3):
            one = function(target, z[:, :, r], weights[:, :, r])
            np.testing.assert_allclose(together[:, :, r], one, rtol=1e-12, atol=1e-15)


def test_a_weight_of_two_is_a_row_twice_with_ties_of_breslow(target, rng):
    loss, z = Cox(), rng.standard_normal((N_ROWS, 1))
    twice = rng.random(N_ROWS) < 0.3
    rows = np.concatenate([np.arange(N_ROWS), np.flatnonzero(twice)])
    ones = np.ones((len(rows), 1))
    expected = loss.weighted_values(target[rows], z[rows], ones).sum()
    found = loss.weighted_values(target, z, 1.0 + twice[:, None]).sum()
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_unit_of_the_weights_is_free(loss, target, weights, rng):
    z = rng.standard_normal((N_ROWS, 1))
    found = loss.weighted_values(target, z, 7 * weights).sum()
    expected = 7 * loss.weighted_values(target, z, weights).sum()
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("shift", [1e4, -1e4])
def test_a_constant_changes_nothing(loss, target, weights, rng, shift):
    z = rng.standard_normal((N_ROWS, 1))
    for function in (loss.weighted_values, loss.slopes):
        found, expected = (function(target, p, weights) for p in (z + shift, z))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def test_nothing_overflows_far_out(loss, target, weights):
    z = np.linspace(-3000, 3000, N_ROWS)[:, None]
    for predictor in z, -z:
        values = loss.weighted_values(target, predictor, weights)
        slopes = loss.slopes(target, predictor, weights)
        assert np.isfinite(values).all()
        assert np.isfinite(slopes).all()
        assert abs(slopes.sum()) < 1e-10


def test_the_perfect_order_has_no_deviance(loss, target, weights):
    time = np.abs(target)
    z = -1000.0 * np.searchsorted(np.unique(time), time) + 100.0 * (target > 0)
    found = loss.weighted_values(target, z.astype(float), weights).sum()
    np.testing.assert_allclose(found, 0, atol=1e-10)


def test_the_largest_curvature_bounds_second_derivatives(loss, target, weights, rng):
    z = rng.standard_normal((N_ROWS, 1))
    matrix = np.zeros((N_ROWS, N_ROWS))
    for i, h in enumerate(STEP * np.eye(N_ROWS)[:, :, None]):
        above, below = (loss.slopes(target, z + s * h, weights) for s in (1, -1))
        matrix[i] = (above - below)[:, 0] / (2 * STEP)
    bound = loss.largest_curvature(target, z, weights) * np.diag(weights[:, 0])
    assert np.linalg.eigvalsh(bound - matrix).min() > -1e-6


def test_at_the_start_it_is_the_hazard_of_nelson_and_aalen(target):
    time, is_event = np.abs(target), target > 0
    hazard = sum(1 / np.sum(time >= t) for t in time[is_event])
    ones = np.ones_like(target)
    found = Cox().largest_curvature(target, 0 * ones, ones)
    np.testing.assert_allclose(found, hazard, rtol=1e-12)


def test_rows_without_events_are_refused(loss):
    with pytest.raises(ValueError, match="censored"):
        loss.check_target(-np.ones((5, 1)))
    with pytest.raises(ValueError, match="ties"):
        Cox("exact")
