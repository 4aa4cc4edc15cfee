"""Every penalty: what all have in common, and the identities that some obey."""

import numpy as np
import pytest

from skacv.optim.families import Weighted, except_last
from skacv.optim.penalties import (
    L1,
    MCP,
    PENALTIES,
    SCAD,
    ElasticNet,
    NonnegativeElasticNet,
    SquaredL2,
)
from skacv.testing import check_penalty

STEP_SIZE = 0.7
POINTS = np.linspace(-3, 3, 241)
PROXIMAL = [penalty for penalty in PENALTIES if not penalty.is_linear]
CONVEX = [penalty for penalty in PROXIMAL if not isinstance(penalty, MCP | SCAD)]


def single(penalty, value):
    return penalty.value(np.array([value]))


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_a_penalty_is_what_it_says(penalty):
    check_penalty(penalty)


@pytest.mark.parametrize("penalty", PROXIMAL, ids=str)
def test_coefficients_at_a_kink_are_not_free(penalty):
    coef = np.array([0.0, 0.1, -0.1, 2.0])
    np.testing.assert_array_equal(penalty.is_free(coef), [False, True, True, True])


@pytest.mark.parametrize("penalty", CONVEX, ids=str)
def test_prox_is_firmly_nonexpansive(penalty):
    out = penalty.prox(POINTS, STEP_SIZE)
    moved = out[:, None] - out[None, :]
    apart = POINTS[:, None] - POINTS[None, :]
    assert (moved**2 <= moved * apart + 1e-12).all()


@pytest.mark.parametrize("penalty", CONVEX, ids=str)
def test_moreau_identity(penalty):
    # u - prox(u) is a subgradient at prox(u): g lies above its tangent there.
    out = penalty.prox(POINTS, STEP_SIZE)
    slopes = (POINTS - out) / STEP_SIZE
    for b, slope in zip(out[::10], slopes[::10]):
        tangent = single(penalty, b) + slope * (POINTS - b)
        values = np.array([single(penalty, point) for point in POINTS])
        assert (values >= tangent - 1e-12).all()


@pytest.mark.parametrize(
    "limit",
    [ElasticNet(0.3, 1.0), MCP(0.3, 1e9), SCAD(0.3, 1e9)],
    ids=["l1_ratio=1", "gamma=inf", "a=inf"],
)
def test_limits_are_the_lasso(limit):
    lasso = L1(0.3)
    expected = lasso.prox(POINTS, STEP_SIZE)
    np.testing.assert_allclose(limit.prox(POINTS, STEP_SIZE), expected, atol=1e-8)
    np.testing.assert_allclose(
        limit.prox_derivative(expected, STEP_SIZE),
        lasso.prox_derivative(expected, STEP_SIZE),
        atol=1e-8,
    )
    assert limit.value(POINTS) == pytest.approx(lasso.value(POINTS))


@pytest.mark.parametrize("l1_ratio", [0.0, 0.6, 1.0])
def test_a_sign_is_restricted_at_any_strength(l1_ratio):
    penalty = NonnegativeElasticNet(0.0, l1_ratio)
    found = penalty.prox(POINTS, STEP_SIZE)
    np.testing.assert_array_equal(found, np.clip(POINTS, 0, None))
    np.testing.assert_array_equal(penalty.prox_derivative(found, STEP_SIZE), found > 0)
    np.testing.assert_array_equal(penalty.terms(POINTS) == 0, POINTS >= 0)


def test_a_sign_is_free_without_a_weight():
    coef, weights = np.array([-1.0, -1.0, 2.0]), np.array([0.0, 0.0, 1.0])
    penalty = Weighted(NonnegativeElasticNet(0.3, 0.6), weights)
    assert penalty.value(coef) == ElasticNet(0.3, 0.6).value(coef[2:])
    np.testing.assert_array_equal(penalty.prox(coef, STEP_SIZE)[:2], coef[:2])
    assert penalty.value(-coef) == np.inf


def test_a_gradient_that_only_rises_needs_no_strength():
    assert NonnegativeElasticNet(1.0).largest_strength(np.ones(3), 1.0) == 0


def test_largest_strength_of_a_ridge_is_the_curvature():
    assert SquaredL2(1.0).largest_strength(np.ones(3), 2.5) == 2.5


@pytest.mark.parametrize("penalty", [MCP(0.1, 0.5), SCAD(0.1, 1.5)], ids=str)
def test_prox_that_is_not_single_valued_is_refused(penalty):
    with pytest.raises(ValueError, match="single-valued"):
        penalty.prox(POINTS, STEP_SIZE)


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_all_but_the_last_coefficient(penalty, rng):
    """As the penalty itself on the others, and as none on the last."""
    coef = rng.standard_normal((6, 2))
    kept = coef.copy()
    spared = except_last(penalty, 6)
    assert spared.value(coef) == pytest.approx(penalty.value(coef[:-1]))
    for found, expected, last in (
        (spared.prox(coef, STEP_SIZE), penalty.prox(coef[:-1], STEP_SIZE), coef[-1]),
        (
            spared.prox_derivative(coef, STEP_SIZE),
            penalty.prox_derivative(coef[:-1], STEP_SIZE),
            1,
        ),
        (spared.smooth_gradient(coef), penalty.smooth_gradient(coef[:-1]), 0),
        (spared.gradient(coef), penalty.gradient(coef[:-1]), 0),
        (spared.hessian_diagonal(coef), penalty.hessian_diagonal(coef[:-1]), 0),
        (spared.is_free(coef), penalty.is_free(coef[:-1]), True),
    ):
        np.testing.assert_array_equal(found[:-1], expected)
        np.testing.assert_array_equal(found[-1], np.broadcast_to(last, 2))
    np.testing.assert_array_equal(coef, kept)
    strength = spared.largest_strength(coef, 2.0)
    assert strength == penalty.largest_strength(coef[:-1], 2.0)
