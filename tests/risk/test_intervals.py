"""Ranks and ends of prediction intervals, against their definitions."""

import re
from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest

from skacv.risk.intervals import around_predictions, jackknife_plus, rank_of

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
