"""Every penalty: its prox against brute force, and the identities it must obey."""

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
    Zero,
)

STEP_SIZE = 0.7
POINTS = np.linspace(-3, 3, 241)
PROXIMAL = [penalty for penalty in PENALTIES if not penalty.is_linear]
CONVEX = [penalty for penalty in PROXIMAL if not isinstance(penalty, MCP | SCAD)]


def single(penalty, value):
    return penalty.value(np.array([value]))


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_value_is_zero_at_zero_and_nowhere_negative(penalty):
    assert single(penalty, 0.0) == 0
    assert all(single(penalty, point) >= 0 for point in POINTS)
    total = sum(single(penalty, point) for point in POINTS)
    assert penalty.value(POINTS) == pytest.approx(total)


@pytest.mark.parametrize("penalty", PROXIMAL, ids=str)
def test_prox_minimises(penalty):
    grid = np.linspace(-3.2, 3.2, 64001)
    values = np.array([single(penalty, b) for b in grid[::20]])
    values = np.interp(grid, grid[::20], values)
    for point in POINTS[::6]:
        cost = (grid - point) ** 2 / 2 + STEP_SIZE * values
        found = penalty.prox(np.array([point]), STEP_SIZE)[0]
        assert found == pytest.approx(grid[np.argmin(cost)], abs=2e-3)


@pytest.mark.parametrize("penalty", PROXIMAL, ids=str)
def test_prox_derivative(penalty):
    width = 1e-6
    found = penalty.prox_derivative(penalty.prox(POINTS, STEP_SIZE), STEP_SIZE)
    above = penalty.prox(POINTS + width, STEP_SIZE)
    below = penalty.prox(POINTS - width, STEP_SIZE)
    expected = (above - below) / (2 * width)
    # A grid point may lie on a kink, where there is no derivative.
    smooth = (
        np.abs(
            penalty.prox_derivative(above, STEP_SIZE)
            - penalty.prox_derivative(below, STEP_SIZE)
        )
        < 1e-9
    )
    assert smooth.mean() > 0.95
    np.testing.assert_allclose(found[smooth], expected[smooth], atol=1e-6)


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_derivatives_where_coefficients_are_free(penalty):
    width = 1e-4
    allowed = POINTS[np.isfinite(penalty.terms(POINTS))]
    points = allowed[penalty.is_free(allowed)]
    assert len(points) >= len(allowed) - 1
    above, at, below = (
        np.array([single(penalty, point + shift) for point in points])
        for shift in (width, 0, -width)
    )
    np.testing.assert_allclose(
        penalty.gradient(points), (above - below) / (2 * width), atol=1e-4
    )
    found = penalty.hessian_diagonal(points)
    expected = (above - 2 * at + below) / width**2
    # A grid point may lie where the curvature jumps.
    sides = [penalty.hessian_diagonal(points + shift) for shift in (width, -width)]
    smooth = sides[0] == sides[1]
    assert smooth.mean() > 0.95
    np.testing.assert_allclose(found[smooth], expected[smooth], atol=1e-6)


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


@pytest.mark.parametrize("penalty", [Zero(), SquaredL2(0.3)], ids=str)
def test_smooth_penalties_act_through_the_gradient(penalty):
    np.testing.assert_array_equal(penalty.prox(POINTS, STEP_SIZE), POINTS)
    np.testing.assert_array_equal(penalty.prox_derivative(POINTS, STEP_SIZE), 1)
    width = 1e-5
    for b in POINTS[::20]:
        slope = (single(penalty, b + width) - single(penalty, b - width)) / (2 * width)
        assert penalty.curvature * b == pytest.approx(slope, abs=1e-8)


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


@pytest.mark.parametrize(
    "penalty", [L1(0.0), ElasticNet(0.0), MCP(0.0), SCAD(0.0)], ids=str
)
def test_no_strength_is_no_penalty(penalty):
    # The derivative of the identity is 1, at a zero coefficient too.
    np.testing.assert_array_equal(penalty.prox(POINTS, STEP_SIZE), POINTS)
    np.testing.assert_array_equal(penalty.prox_derivative(POINTS, STEP_SIZE), 1)


@pytest.mark.parametrize("kind", [type(each) for each in PROXIMAL])
def test_largest_strength_keeps_zero(kind, rng):
    gradient = rng.standard_normal(10)
    largest = kind(1.0).largest_strength(gradient, 1.0)
    zero = np.zeros(10)
    for factor, stays in ((1.001, True), (0.999, False)):
        moved = kind(factor * largest).prox(zero - 0.5 * gradient, 0.5)
        assert (moved == 0).all() == stays


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
def test_float32_is_kept(penalty):
    point = POINTS.astype(np.float32)
    assert penalty.prox(point, STEP_SIZE).dtype == np.float32
    assert penalty.prox_derivative(point, STEP_SIZE).dtype == np.float32


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


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_smooth_gradient(penalty):
    """It is that of the value where there is no prox."""
    gradient = penalty.smooth_gradient(POINTS)
    if penalty.is_linear:
        above = [single(penalty, point + 1e-6) for point in POINTS]
        below = [single(penalty, point - 1e-6) for point in POINTS]
        expected = np.subtract(above, below) / 2e-6
        np.testing.assert_allclose(gradient, expected, atol=1e-8)
    else:
        assert not gradient.any()
