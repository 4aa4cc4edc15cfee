"""Gradients of the squared error from second moments of groups of rows."""

import numpy as np
import pytest

from skacv.optim.arrays import design_of
from skacv.optim.column_maps import ColumnMaps
from skacv.optim.fits import WeightedFits, Weights
from skacv.optim.losses import SquaredError
from skacv.optim.moments import GradientByMoments, second_moments
from skacv.optim.problem import Problem

N, P, N_FITS = 120, 4, 3
GROUPS = np.array([[1, 1, 1], [0, 2, 1], [1, 0, 1], [3, 1, 0]])


def fits_of(stays, rng, **settings):
    weights = rng.random((N, 1)) / N
    design = design_of(rng.standard_normal((N, P)) + 1)
    target = rng.standard_normal((N, 2))
    if settings.get("refits_intercept"):
        design = design.centered(weights)
        target -= np.average(target, axis=0, weights=weights[:, 0])
    problem = Problem(design, target, weights, SquaredError())
    return WeightedFits(problem, Weights(stays * problem.row_weights, **settings))


def columns(rng):
    shape = P, N_FITS
    return ColumnMaps(rng.random(shape) + 0.5, rng.standard_normal(shape))


@pytest.mark.parametrize("setting", ["plain", "recentred", "standardised"])
def test_gradients_are_those_of_rows(setting, rng):
    settings = {
        "plain": {},
        "recentred": {"refits_intercept": True},
        "standardised": {"columns": columns(rng)},
    }[setting]
    fits = fits_of(GROUPS[np.arange(N) % 4], rng, **settings)
    coef = rng.standard_normal((P, 2, N_FITS))
    by_moments = GradientByMoments(fits)
    by_moments.n_gradients_by_rows = 0
    expected = fits.gradient_of(fits.slopes(fits.predictor(coef)))
    found = by_moments.gradient(fits, coef)
    assert by_moments.moments is not None
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_rows_of_many_patterns_are_not_summed(rng):
    stays = (rng.random((N, 10)) < 0.5).astype(float)
    assert second_moments(fits_of(stays, rng)) is None


def test_rows_of_one_pattern_with_other_weights_are_not_summed(rng):
    assert second_moments(fits_of(rng.random((N, N_FITS)), rng)) is None


def test_moments_of_too_many_groups_are_not_made(rng, set_limits):
    fits = fits_of(GROUPS[np.arange(N) % 4], rng)
    set_limits(MEMORY_BYTES=8 * 4 * (P + 2) ** 2 - 1)
    assert second_moments(fits) is None


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_minimum_over_some_columns(n_outputs, rng):
    """As by least squares of weighted rows; predictors, so of dependent columns too."""
    X, y = rng.standard_normal((30, 6)), rng.standard_normal((30, n_outputs))
    X[:, 4] = X[:, 1]
    weights, index = rng.dirichlet(np.ones(30))[:, None], np.array([1, 2, 4])
    problem = Problem(design_of(X), y, weights)
    root = np.sqrt(weights)
    coef, *_ = np.linalg.lstsq(root * X[:, index], root * y, rcond=None)
    np.testing.assert_allclose(
        problem.least_squares_predictor(index), X[:, index] @ coef, atol=1e-10
    )
    assert not problem.least_squares_predictor(index[:0]).any()
