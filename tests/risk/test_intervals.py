"""Ranks and ends of prediction intervals, against their definitions."""

import re
from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest

from skacv.optim.losses import Poisson, SquaredError
from skacv.risk.held_out_rows import HeldOutResiduals
from skacv.risk.intervals import (
    INTERVALS,
    QUANTILES,
    above_replicas,
    around_predictions,
    checked_coverage,
    checked_levels,
    jackknife_plus,
    rank_of,
    sizes_by_prediction,
    sizes_nearby,
)

from ..oracles import least_with_mass, scaled_ends, size_nearby

COVERAGES = ["0.01", "0.3", "0.5", "0.6", "0.7", "0.8", "0.9", "0.95", "0.99", "0.999"]


@pytest.mark.parametrize("coverage", COVERAGES)
def test_rank_is_that_of_exact_arithmetic(coverage):
    """Such as .9 with 9 or 99 rows, where the product is a whole number."""
    for n_rows in range(1, 3000):
        exact = ceil(Fraction(coverage) * (n_rows + 1))
        if exact <= n_rows:
            assert rank_of(float(coverage), n_rows) == exact


@pytest.mark.parametrize(
    ("coverage", "n_rows", "rank"),
    [(0.9, 9, 9), (0.9, 10, 10), (0.9, 19, 18), (0.9, 99, 90), (0.9, 100, 91)],
)
def test_ranks_by_hand(coverage, n_rows, rank):
    assert rank_of(coverage, n_rows) == rank


@pytest.mark.parametrize("coverage", [1e-12, 1e-3])
def test_the_smallest_value_is_the_least_that_covers(coverage):
    assert rank_of(coverage, 5) == 1


@pytest.mark.parametrize("coverage", [0.3, 0.5, 0.8, 0.9, 0.95, 0.975, 0.99, 0.9999])
def test_too_few_rows_name_how_many_suffice(coverage):
    with pytest.raises(ValueError, match=r"at least .* there are 0") as found:
        rank_of(coverage, 0)
    needed = int(re.search(r"at least (\d+) rows", str(found.value)).group(1))
    assert rank_of(coverage, needed) == needed
    with pytest.raises(ValueError, match=f"at least {needed} rows"):
        rank_of(coverage, needed - 1)


@pytest.mark.parametrize("n_rows", [9, 20, 99])
@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_width_is_the_smallest_that_so_many_residuals_keep_to(coverage, n_rows, rng):
    residuals = rng.standard_normal(n_rows)
    predictions = rng.standard_normal(4)
    rank = rank_of(coverage, n_rows)
    found = around_predictions(predictions, residuals, rank)
    level = rank / n_rows
    width = np.quantile(np.abs(residuals), level, method="inverted_cdf")
    np.testing.assert_array_equal(
        found, np.c_[predictions - width, predictions + width]
    )
    assert np.sum(np.abs(residuals) <= width) == rank


def test_every_target_has_a_width_of_its_own(rng):
    residuals, predictions = rng.standard_normal((30, 2)), rng.standard_normal((5, 2))
    found = around_predictions(predictions, residuals, 27)
    assert found.shape == (5, 2, 2)
    for k in range(2):
        alone = around_predictions(predictions[:, k], residuals[:, k], 27)
        np.testing.assert_array_equal(found[:, k], alone)


@pytest.mark.parametrize("n_rows", [9, 20, 99])
@pytest.mark.parametrize("coverage", ["0.5", "0.8", "0.9"])
def test_jackknife_plus_is_the_published_formula(coverage, n_rows, rng):
    predictions = rng.standard_normal((n_rows, 6))
    residuals = rng.standard_normal(n_rows)
    rank = rank_of(float(coverage), n_rows)
    found = jackknife_plus(predictions, residuals, rank)
    alpha = 1 - Fraction(coverage)
    for sample, ends in enumerate(found):
        below = sorted(predictions[:, sample] - abs(residuals))
        above = sorted(predictions[:, sample] + abs(residuals))
        # The floor(alpha (n + 1))-th and the ceil((1 - alpha)(n + 1))-th smallest.
        lower = below[floor(alpha * (n_rows + 1)) - 1]
        upper = above[ceil((1 - alpha) * (n_rows + 1)) - 1]
        np.testing.assert_array_equal(ends, [lower, upper])


def test_jackknife_plus_is_symmetric(rng):
    predictions, residuals = rng.standard_normal((50, 6)), rng.standard_normal(50)
    found = jackknife_plus(predictions, residuals, 46)
    mirrored = jackknife_plus(-predictions, residuals, 46)
    np.testing.assert_array_equal(found, -mirrored[:, ::-1])


def test_jackknife_plus_with_one_prediction_is_centred_on_it(rng):
    """Rows that change nothing leave the quantile of the residuals."""
    predictions, residuals = rng.standard_normal(6), rng.standard_normal(50)
    found = jackknife_plus(np.tile(predictions, (50, 1)), residuals, 46)
    np.testing.assert_array_equal(found, around_predictions(predictions, residuals, 46))


def test_ends_cross_at_low_coverage_only(rng):
    predictions, residuals = rng.standard_normal((49, 6)), np.zeros(49)
    for rank in range(1, 50):
        lower, upper = jackknife_plus(predictions, residuals, rank).T
        assert ((lower <= upper) == (rank >= 25)).all()


# ------------------------------------------------------------------------ groups


def hierarchical_width(sizes, groups, coverage):
    """The least w at or below which a share of coverage is, groups of mass one each.

    One more group has its mass beyond all residuals.
    """
    labels = np.unique(groups)
    wanted = ceil(coverage * (len(labels) + 1) - 1e-9)
    for w in np.sort(sizes):
        below = sum(np.mean(sizes[groups == k] <= w) for k in labels)
        if below >= wanted - 1e-9:
            return w


@pytest.mark.parametrize("coverage", [0.2, 0.5, 0.9])
def test_groups_count_the_same_whatever_their_size(coverage, rng):
    groups = rng.permutation(np.repeat(np.arange(15), rng.integers(1, 9, 15)))
    residuals, predictions = rng.standard_normal((len(groups), 2)), np.zeros((1, 2))
    rank = rank_of(coverage, 15)
    found = around_predictions(predictions, residuals, rank, 1.0, groups)
    for k in range(2):
        width = hierarchical_width(np.abs(residuals[:, k]), groups, coverage)
        np.testing.assert_array_equal(found[0, k], [-width, width])


def test_groups_of_one_row_are_rows(rng):
    residuals, predictions = rng.standard_normal(50), rng.standard_normal(3)
    rank = rank_of(0.9, 50)
    found = around_predictions(predictions, residuals, rank, 1.0, np.arange(50))
    np.testing.assert_array_equal(
        found, around_predictions(predictions, residuals, rank)
    )


def test_a_row_of_a_new_group_is_covered(rng):
    """Ten groups of rows that are nearly alike: by rows it would be too few."""
    n_groups, size, n_repeats = 10, 20, 2000
    covered = np.zeros(2)
    groups = np.repeat(np.arange(n_groups), size)
    for _ in range(n_repeats):
        scales = np.exp(rng.standard_normal(n_groups + 1))
        residuals = scales[:-1][groups] * rng.standard_normal(len(groups))
        new = scales[-1] * rng.standard_normal()
        by_groups = around_predictions(
            np.zeros(1), residuals, rank_of(0.8, n_groups), 1.0, groups
        )
        by_rows = around_predictions(np.zeros(1), residuals, rank_of(0.8, len(groups)))
        covered += [found[0, 1] >= abs(new) for found in (by_groups, by_rows)]
    assert covered[0] / n_repeats > 0.8 - 0.02
    assert covered[1] < covered[0]


# ------------------------------------------------- widths that follow the prediction


def scaled(held_out, new, coverage, loss=None):
    sizes, loss = sizes_by_prediction(held_out, new), loss or SquaredError()
    return INTERVALS.of_rows(new, held_out, checked_coverage(coverage), loss, sizes)


@pytest.mark.parametrize("n_rows", [12, 20, 21, 150])
@pytest.mark.parametrize("decimals", [9, 0])  # with 0 many predictions are equal
def test_sizes_are_a_running_mean(n_rows, decimals, rng):
    predictions = rng.standard_normal(n_rows).round(decimals)
    residuals = rng.standard_normal(n_rows)
    new = np.r_[-9.0, predictions, rng.standard_normal(9), 9.0]
    found = sizes_nearby(predictions, residuals)(new)
    expected = [size_nearby(predictions, residuals, value) for value in new]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_sizes_do_not_depend_on_the_order_of_rows(rng):
    predictions, residuals = rng.integers(5, size=80), rng.standard_normal(80)
    order = rng.permutation(80)
    found = sizes_nearby(predictions[order], residuals[order])(np.arange(5))
    expected = sizes_nearby(predictions, residuals)(np.arange(5))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_sizes_of_equal_predictions_are_the_mean(rng):
    residuals = rng.standard_normal(50)
    found = sizes_nearby(np.full(50, 0.1), residuals)(np.array([-1.0, 0.1, 2.0]))
    np.testing.assert_allclose(found, np.abs(residuals).mean(), rtol=1e-12)


def test_sizes_are_positive(rng):
    predictions = rng.standard_normal(100)
    none = sizes_nearby(predictions, np.zeros(100))(predictions)
    np.testing.assert_array_equal(none, 1.0)
    few = np.where(predictions > 1, 1.0, 0.0)
    assert sizes_nearby(predictions, few)(predictions).min() == 0.1 * few.mean()


@pytest.mark.parametrize("with_units", [False, True])
def test_scaled_intervals_by_hand(with_units, rng):
    predictions, residuals = rng.standard_normal((2, 90))
    units = rng.permutation(np.repeat(np.arange(30), 3)) if with_units else None
    if with_units:  # numbered as they come
        units = np.unique(units, return_index=True)[1].argsort().argsort()[units]
    held_out = HeldOutResiduals(residuals * np.exp(predictions), predictions, units)
    new = rng.standard_normal(7)
    expected = scaled_ends(predictions, held_out.residuals, new, 0.8, units)
    np.testing.assert_allclose(scaled(held_out, new, 0.8), expected, rtol=1e-10)


def test_scaled_targets_have_sizes_of_their_own(rng):
    predictions, residuals = rng.standard_normal((2, 60, 2))
    new = rng.standard_normal((5, 2))
    found = scaled(HeldOutResiduals(residuals, predictions, None), new, [0.5, 0.8])
    assert found.shape == (5, 2, 2, 2)
    for k in range(2):
        alone = HeldOutResiduals(residuals[:, k], predictions[:, k], None)
        expected = scaled(alone, new[:, k], [0.5, 0.8])
        np.testing.assert_allclose(found[:, k], expected, rtol=1e-12)


def test_scaled_intervals_of_counts_are_in_units_of_their_spread(rng):
    means = 1 + 9 * rng.random(80)
    residuals = rng.standard_normal(80)
    found = scaled(HeldOutResiduals(residuals, means, None), means, 0.8, Poisson())
    plain = scaled_ends(means, residuals, means, 0.8)
    half = np.diff(plain)[:, 0] / 2 * np.sqrt(means)
    expected = np.stack([np.maximum(means - half, 0), means + half], axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_scaled_needs_two_units():
    held_out = HeldOutResiduals(np.ones(4), np.arange(4.0), np.zeros(4, dtype=int))
    with pytest.raises(ValueError, match="at least 2 held-out rows"):
        scaled(held_out, np.arange(3.0), 0.4)


def test_every_fifth_of_the_prediction_is_covered(rng):
    """Prices, whose errors grow with them; one width for all leaves the dear ones out.

    Fifths of 20 x 200 new rows: a standard error of .005 for the new rows, and .007 for
    the 300 held-out ones.
    """
    shares = []
    for _ in range(20):
        predictions = np.exp(rng.standard_normal(500))
        y = predictions * (1 + 0.3 * rng.standard_normal(500))
        new = slice(300, None)
        known = predictions[:300]
        held_out = HeldOutResiduals(y[:300] - known, known, None)
        plain = INTERVALS.of_rows(
            predictions[new], held_out, checked_coverage(0.9), SquaredError()
        )
        fifths = np.array_split(np.argsort(predictions[new]), 5)
        shares.append(
            [
                [is_in[rows].mean() for rows in fifths]
                for is_in in (
                    (ends[:, 0] <= y[new]) & (y[new] <= ends[:, 1])
                    for ends in (plain, scaled(held_out, predictions[new], 0.9))
                )
            ]
        )
    constant, follows = np.mean(shares, axis=0)
    assert constant[0] > 0.98
    assert constant[-1] < 0.7
    assert follows.min() > 0.84
    assert follows.max() < 0.95
    assert abs(follows.mean() - 0.9) < 0.02


@pytest.mark.parametrize(("n_rows", "most"), [(100, 1.08), (2000, 1.03)])
def test_rows_that_are_alike_cost_little(n_rows, most, rng):
    relative = []
    for _ in range(4000 // n_rows):
        predictions, residuals = rng.standard_normal((2, n_rows))
        held_out = HeldOutResiduals(residuals, predictions, None)
        new = rng.standard_normal(500)
        plain = INTERVALS.of_rows(new, held_out, checked_coverage(0.9), SquaredError())
        width = np.ptp(scaled(held_out, new, 0.9), axis=1).mean()
        relative.append(width / np.ptp(plain[0]))
    assert 0.97 < np.mean(relative) < most


# ------------------------------------------------------------------ quantiles


def quantiles_by_hand(predictions, ratios, widths, levels, units):
    """The residual of least size with enough mass, level by level and row by row."""
    n_units = len(set(units))
    found = []
    for prediction, width in zip(predictions, widths):
        ratio_at = [
            least_with_mass(ratios, units, max(1, ceil(level * (n_units + 1) - 1e-9)))
            for level in levels
        ]
        found.append([prediction + width * ratio for ratio in ratio_at])
    return np.array(found)


@pytest.mark.parametrize("with_units", [False, True])
def test_quantiles_by_hand(with_units, rng):
    predictions, residuals = rng.standard_normal((2, 90))
    residuals = np.exp(residuals)  # skew: its median is not zero
    units = np.repeat(np.arange(30), 3) if with_units else None
    labels = range(90) if units is None else units.tolist()
    new, levels = rng.standard_normal(7), np.array([0.9, 0.01, 0.5])
    held_out = HeldOutResiduals(residuals, predictions, units)
    found = QUANTILES.of_rows(new, held_out, levels, SquaredError())
    expected = quantiles_by_hand(new, residuals, np.ones(7), levels, labels)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    sizes = sizes_by_prediction(held_out, new)
    found = QUANTILES.of_rows(new, held_out, levels, SquaredError(), sizes)
    of_rows = residuals / sizes[0], sizes[1]
    expected = quantiles_by_hand(new, *of_rows, levels, labels)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_quantiles_of_counts_are_in_units_of_their_spread(rng):
    means, residuals = 1 + 9 * rng.random(80), rng.standard_normal(80)
    levels = np.array([0.05, 0.9])
    held_out = HeldOutResiduals(residuals, means, None)
    found = QUANTILES.of_rows(means, held_out, levels, Poisson())
    ranked = np.sort(residuals)[[ceil(0.05 * 81) - 1, ceil(0.9 * 81) - 1]]
    expected = np.maximum(means[:, None] + np.sqrt(means)[:, None] * ranked, 0)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_quantiles_without_single_rows_are_the_one_sided_jackknife_plus(rng):
    predictions, residuals = rng.standard_normal((40, 6)), rng.standard_normal(40)
    for level in (0.1, 0.5, 0.9):
        rank = rank_of(level, 40)
        found = above_replicas(predictions, residuals, rank)
        for sample, value in enumerate(found):
            column = predictions[:, sample] + residuals
            assert np.sum(column <= value) == rank
            assert value in column


def test_quantiles_cover_a_new_row_with_a_known_probability(rng):
    """k / (n + 1) of exchangeable residuals: 20,000 draws, three standard errors."""
    levels = np.array([0.05, 0.3, 0.9])
    draws = np.exp(rng.standard_normal((20_000, 20)))
    ranks = np.array([ceil(level * 20 - 1e-9) for level in levels])
    ordered = np.sort(draws[:, :19], axis=1)
    shares = (draws[:, 19:] <= ordered[:, ranks - 1]).mean(axis=0)
    known = ranks / 20
    assert (known >= levels - 1e-9).all()
    np.testing.assert_array_less(
        abs(shares - known), 3 * np.sqrt(known * (1 - known) / 20_000)
    )
    one = HeldOutResiduals(draws[0, :19], None, None)
    found = QUANTILES.of_rows(np.zeros(1), one, levels, SquaredError())
    np.testing.assert_array_equal(found[0], ordered[0, ranks - 1])


@pytest.mark.parametrize(
    "levels", [[], 0.0, [0.5, 1.0], "low", [[0.1], [0.9]], [np.nan], None]
)
def test_levels_are_between_0_and_1(levels):
    with pytest.raises(ValueError, match="levels must be numbers between 0 and 1"):
        checked_levels(levels)


def test_too_few_rows_for_a_level_name_how_many_suffice():
    held_out = HeldOutResiduals(np.arange(5.0), None, None)
    with pytest.raises(ValueError, match=r"level=0\.9 needs at least 9 rows"):
        QUANTILES.of_rows(np.zeros(1), held_out, np.array([0.9]), SquaredError())
