"""Penalties with weights of coefficients, and of groups: prox, derivatives, parts."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.optimize import minimize

from skacv.optim.families import (
    Grouped,
    GroupL2,
    PenaltyOnColumns,
    Weighted,
    except_last,
)
from skacv.optim.penalties import L1, PENALTIES, Penalty, SquaredL2, Zero

STEP_SIZE = 0.7
WEIGHTS = np.array([0.5, 2.0, 0.0, 1.0, 1.5, 0.7])
GROUPS = np.array([1, 0, 1, 2, 0, 1])
GROUP_WEIGHTS = np.array([1.0, 1.4, 0.0])
GROUPED = GroupL2(0.5, GROUPS, GROUP_WEIGHTS)
PROXIMAL = [penalty for penalty in PENALTIES if not penalty.is_linear]
FAMILIES = [*(Weighted(penalty, WEIGHTS) for penalty in PENALTIES), GROUPED]


@pytest.fixture
def point(rng):
    return 2 * rng.standard_normal(6)


# ------------------------------------------------------------------- weights


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_weights_of_one_are_the_uniform_penalty(penalty, point):
    weighted = Weighted(penalty, np.ones(6))
    assert weighted.value(point) == penalty.value(point)
    assert weighted.curvature == penalty.curvature
    assert weighted.common_curvature() == penalty.common_curvature()
    for found, expected in (
        (weighted.prox(point, STEP_SIZE), penalty.prox(point, STEP_SIZE)),
        (
            weighted.prox_derivative(point, STEP_SIZE),
            penalty.prox_derivative(point, STEP_SIZE),
        ),
        (weighted.smooth_gradient(point), penalty.smooth_gradient(point)),
        (weighted.gradient(point), penalty.gradient(point)),
        (weighted.hessian_diagonal(point), penalty.hessian_diagonal(point)),
        (weighted.support(point, STEP_SIZE), penalty.support(point, STEP_SIZE)),
        (weighted.largest_strength(point, 2.0), penalty.largest_strength(point, 2.0)),
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_a_weight_of_zero_is_no_penalty(penalty, point):
    weighted = Weighted(penalty, np.zeros(6))
    assert weighted.value(point) == 0
    assert weighted.curvature == 0
    assert weighted.unpenalized(6).all()
    point[0] = 0.0
    np.testing.assert_array_equal(weighted.prox(point, STEP_SIZE), point)
    np.testing.assert_array_equal(weighted.prox_derivative(point, STEP_SIZE), 1)
    for derivative in (weighted.smooth_gradient, weighted.gradient):
        np.testing.assert_array_equal(derivative(point), 0)
    assert Weighted(L1(0.3), np.zeros(6)).largest_strength(point, 1.0) == 0


@pytest.mark.parametrize("penalty", PROXIMAL, ids=str)
def test_the_prox_of_a_weighted_penalty_minimises(penalty, point):
    weighted = Weighted(penalty, WEIGHTS)
    found = weighted.prox(point, STEP_SIZE)
    grid = np.linspace(-8, 8, 160001)
    terms = penalty.terms(grid)
    for j in range(6):
        own = WEIGHTS[j] * terms if WEIGHTS[j] else 0  # terms may be infinite
        cost = (grid - point[j]) ** 2 / 2 + STEP_SIZE * own
        assert found[j] == pytest.approx(grid[np.argmin(cost)], abs=2e-4)


def test_curvature_of_a_weighted_ridge(point):
    weighted = Weighted(SquaredL2(0.3), WEIGHTS)
    assert weighted.curvature == pytest.approx(0.6)
    assert weighted.common_curvature() is None
    np.testing.assert_allclose(
        weighted.smooth_gradient(point), 0.3 * WEIGHTS * point, rtol=1e-15
    )


# -------------------------------------------------------------------- groups


def test_the_prox_of_groups_minimises(point):
    """Against a smooth solver: off zero the objective is smooth."""

    def cost(coef):
        return ((coef - point) ** 2).sum() / 2 + STEP_SIZE * GROUPED.value(coef)

    found = GROUPED.prox(point, STEP_SIZE)
    tries = [
        minimize(cost, start, method="BFGS", options={"gtol": 1e-9})
        for start in (point, point / 2)
    ]
    best = min(tries, key=lambda each: each.fun)
    assert cost(found) <= best.fun + 1e-12
    np.testing.assert_allclose(found, best.x, atol=1e-5)


def test_the_prox_of_groups_in_closed_form(point):
    found = GROUPED.prox(point, STEP_SIZE)
    for group, weight in enumerate(GROUP_WEIGHTS):
        own = point[group == GROUPS]
        share = max(0.0, 1 - STEP_SIZE * 0.5 * weight / np.linalg.norm(own))
        np.testing.assert_allclose(found[group == GROUPS], share * own, rtol=1e-14)


def test_a_group_within_its_threshold_is_zero():
    point = np.full(6, 0.1)
    found = GROUPED.prox(point, STEP_SIZE)
    assert not found[GROUPS < 2].any()
    np.testing.assert_array_equal(found[GROUPS == 2], 0.1)
    np.testing.assert_array_equal(GROUPED.support(found, STEP_SIZE), GROUPS == 2)
    np.testing.assert_array_equal(GROUPED.prox(np.zeros(6), STEP_SIZE), 0)


def test_groups_of_one_are_the_lasso(point):
    grouped, lasso = GroupL2(0.5, np.arange(6), WEIGHTS), Weighted(L1(0.5), WEIGHTS)
    assert grouped.value(point) == pytest.approx(lasso.value(point))
    expected = lasso.prox(point, STEP_SIZE)
    found = grouped.prox(point, STEP_SIZE)
    np.testing.assert_allclose(found, expected, atol=1e-14)
    np.testing.assert_array_equal(
        grouped.support(found, STEP_SIZE), lasso.support(expected, STEP_SIZE)
    )
    along = np.arange(1.0, 7.0)[:, None]
    np.testing.assert_allclose(
        grouped.prox_tangent(found[:, None], STEP_SIZE, along.copy()),
        lasso.prox_tangent(expected[:, None], STEP_SIZE, along.copy()),
        atol=1e-14,
    )
    largest = lasso.largest_strength(point, 1.0)
    assert grouped.largest_strength(point, 1.0) == pytest.approx(largest)


def test_the_prox_of_groups_is_firmly_nonexpansive(rng):
    points = 2 * rng.standard_normal((6, 50))
    out = GROUPED.prox(points, STEP_SIZE)
    moved = out[:, :, None] - out[:, None]
    apart = points[:, :, None] - points[:, None]
    assert ((moved**2).sum(axis=0) <= (moved * apart).sum(axis=0) + 1e-12).all()


def test_what_the_prox_of_groups_takes_is_a_subgradient(rng, point):
    """Moreau: the penalty lies above its tangent plane at the prox."""
    out = GROUPED.prox(point, STEP_SIZE)
    slope = (point - out) / STEP_SIZE
    for other in rng.standard_normal((100, 6)):
        tangent = GROUPED.value(out) + slope @ (other - out)
        assert GROUPED.value(other) >= tangent - 1e-12


@pytest.mark.parametrize("penalty", FAMILIES, ids=str)
def test_tangents_are_finite_differences(penalty, point, rng):
    width, along = 1e-6, rng.standard_normal((6, 3))
    expected = [
        penalty.prox(point + width * direction, STEP_SIZE)
        - penalty.prox(point - width * direction, STEP_SIZE)
        for direction in along.T
    ]
    coef = penalty.prox(point, STEP_SIZE)[:, None]
    found = penalty.prox_tangent(coef, STEP_SIZE, along.copy())
    np.testing.assert_allclose(found.T, np.array(expected) / (2 * width), atol=1e-7)


def test_the_largest_strength_of_groups_keeps_them_at_zero(point):
    largest = GROUPED.largest_strength(point, 1.0)
    held = GROUP_WEIGHTS[GROUPS] > 0
    for factor, stays in ((1.001, True), (0.999, False)):
        moved = GROUPED.with_strength(factor * largest).prox(-0.5 * point, 0.5)
        assert (moved[held] == 0).all() == stays
    assert GROUPED.with_strength(0.0).largest_strength(point, 1.0) == largest
    alone = GroupL2(1.0, GROUPS, np.zeros(3))
    assert alone.largest_strength(point, 1.0) == 0


# ---------------------------------------------------------------- every family


@pytest.mark.parametrize("penalty", FAMILIES, ids=str)
def test_parts_are_those_of_the_whole(penalty, point):
    index = np.array([0, 2, 3, 5])  # two whole groups
    part = penalty.on(index)
    part.check(len(index))
    np.testing.assert_allclose(
        part.prox(point[index], STEP_SIZE), penalty.prox(point, STEP_SIZE)[index]
    )
    np.testing.assert_array_equal(
        part.support(point[index], STEP_SIZE), penalty.support(point, STEP_SIZE)[index]
    )
    np.testing.assert_array_equal(part.unpenalized(4), penalty.unpenalized(6)[index])
    columns = PenaltyOnColumns(index)
    assert columns(penalty) == part
    assert columns(penalty) is columns(penalty)


@pytest.mark.parametrize("penalty", FAMILIES, ids=str)
def test_the_part_of_no_columns(penalty):
    """As readers have it that find no column to be looked at."""
    nothing = np.empty((0, 1))
    part = penalty.on(np.empty(0, int))
    assert part.prox(nothing, STEP_SIZE).shape == (0, 1)
    assert part.prox_tangent(nothing, STEP_SIZE, np.empty((0, 3))).shape == (0, 3)


def test_whole_groups_of_a_mask():
    mask = np.array([False, True, False, False, False, False])
    np.testing.assert_array_equal(GROUPED.expand_to_groups(mask), GROUPS == 0)
    np.testing.assert_array_equal(
        Weighted(L1(0.1), WEIGHTS).expand_to_groups(mask), mask
    )


@pytest.mark.parametrize("penalty", FAMILIES, ids=str)
def test_fits_side_by_side_have_steps_of_their_own(penalty, rng):
    points, steps = rng.standard_normal((6, 2, 3)), np.array([0.2, 0.5, 0.7])
    found = penalty.prox(points, steps)
    for r, step in enumerate(steps):
        for k in range(2):
            np.testing.assert_allclose(
                found[:, k, r], penalty.prox(points[:, k, r], step)
            )


@pytest.mark.parametrize("penalty", FAMILIES, ids=str)
def test_float32_is_kept(penalty, point):
    point = point.astype(np.float32)
    assert penalty.prox(point, STEP_SIZE).dtype == np.float32
    tangents = np.ones((6, 2), np.float32)
    coef = penalty.prox(point, STEP_SIZE)[:, None]
    assert penalty.prox_tangent(coef, STEP_SIZE, tangents).dtype == np.float32
    assert penalty.smooth_gradient(point).dtype == np.float32


@pytest.mark.parametrize("penalty", FAMILIES, ids=str)
def test_another_strength(penalty, point):
    other = penalty.with_strength(1.1)
    has_strength = penalty != Weighted(Zero(), WEIGHTS)
    assert other.strength == (1.1 if has_strength else 0.0)
    assert (other == penalty) == (not has_strength)
    assert penalty.with_strength(penalty.strength) == penalty
    if has_strength:
        inside = np.abs(point)  # where no term is infinite
        assert other.value(inside) > penalty.value(inside)


@pytest.mark.parametrize("penalty", FAMILIES, ids=str)
def test_all_but_the_last_coefficient(penalty, point):
    longer = np.append(point, 3.0)
    spared = except_last(penalty, 7)
    spared.check(7)
    assert spared.value(longer) == pytest.approx(penalty.value(point))
    found = spared.prox(longer, STEP_SIZE)
    np.testing.assert_array_equal(found[:-1], penalty.prox(point, STEP_SIZE))
    assert found[-1] == 3.0
    np.testing.assert_array_equal(
        spared.unpenalized(7), np.append(penalty.unpenalized(6), True)
    )


def test_a_penalty_of_no_family_cannot_spare_the_last():
    with pytest.raises(TypeError, match="to no family"):
        except_last(Penalty(), 7)


@pytest.mark.parametrize(
    ("penalty", "other"),
    [
        (FAMILIES[0], Weighted(PENALTIES[0], WEIGHTS + 1)),
        (Weighted(L1(0.1), WEIGHTS), Weighted(L1(0.2), WEIGHTS)),
        (GROUPED, replace(GROUPED, strength=0.6)),
        (GROUPED, replace(GROUPED, groups=GROUPS[::-1])),
        (GROUPED, replace(GROUPED, weights=GROUP_WEIGHTS + 1)),
        (GROUPED, FAMILIES[0]),
    ],
)
def test_equality(penalty, other):
    assert penalty == replace(penalty)
    assert penalty != other


def test_lists_serve_as_well():
    assert Weighted(L1(0.1), WEIGHTS.tolist()) == Weighted(L1(0.1), WEIGHTS)
    listed = GroupL2(0.5, GROUPS.tolist(), GROUP_WEIGHTS.tolist())
    assert listed == GROUPED


@dataclass(frozen=True, eq=False)
class WithAField(Grouped):
    gamma: float = 3.0


def test_fields_of_a_group_penalty_go_with_its_parts():
    penalty = WithAField(0.5, GROUPS, GROUP_WEIGHTS, 7.0)
    assert penalty.on(np.array([0, 2, 5])).gamma == 7.0
    assert except_last(penalty, 7).gamma == 7.0
    assert penalty != replace(penalty, gamma=8.0)


def test_an_expansion_of_groups_is_refused(point):
    with pytest.raises(ValueError, match="not a sum over coefficients"):
        GROUPED.gradient(point)
