"""Penalties with weights of coefficients, and of groups: prox, derivatives, parts."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from skacv.optim.families import (
    Grouped,
    GroupL2,
    PenaltyOnColumns,
    Weighted,
    except_last,
)
from skacv.optim.penalties import L1, PENALTIES, Penalty, SquaredL2
from skacv.testing import check_penalty

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


@pytest.mark.parametrize("penalty", FAMILIES, ids=str)
def test_a_penalty_is_what_it_says(penalty):
    check_penalty(penalty, 6)


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


def test_curvature_of_a_weighted_ridge(point):
    weighted = Weighted(SquaredL2(0.3), WEIGHTS)
    assert weighted.curvature == pytest.approx(0.6)
    assert weighted.common_curvature() is None
    np.testing.assert_allclose(
        weighted.smooth_gradient(point), 0.3 * WEIGHTS * point, rtol=1e-15
    )


# -------------------------------------------------------------------- groups


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


def test_the_largest_strength_of_groups_is_of_any_strength(point):
    largest = GROUPED.largest_strength(point, 1.0)
    assert GROUPED.with_strength(0.0).largest_strength(point, 1.0) == largest
    alone = GroupL2(1.0, GROUPS, np.zeros(3))
    assert alone.largest_strength(point, 1.0) == 0


# ---------------------------------------------------------------- every family


@pytest.mark.parametrize("penalty", FAMILIES, ids=str)
def test_parts_are_made_once(penalty):
    index = np.array([0, 2, 3, 5])  # two whole groups
    columns = PenaltyOnColumns(index)
    assert columns(penalty) == penalty.on(index)
    assert columns(penalty) is columns(penalty)


def test_whole_groups_of_a_mask():
    mask = np.array([False, True, False, False, False, False])
    np.testing.assert_array_equal(GROUPED.expand_to_groups(mask), GROUPS == 0)
    np.testing.assert_array_equal(
        Weighted(L1(0.1), WEIGHTS).expand_to_groups(mask), mask
    )


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
