"""Predictors of iterates: read in any way, as the whole record has them."""

import numpy as np
import pytest

from skacv.optim.array_path import Predictors, iterates_per_block
from skacv.optim.arrays import design_of
from skacv.optim.fits import WeightedFits, Weights
from skacv.optim.problem import Problem

LARGEST_BLOCK = iterates_per_block(1)
# Blocks of few rows are the largest, those of many the smallest.
FEW, MANY = 5, 4000


def recorded(rng, n_rows, n_iterates, n_outputs=2):
    X = rng.standard_normal((n_rows, 3))
    coef = rng.standard_normal((n_iterates, 3, n_outputs))
    return Predictors(design_of(X), coef), np.einsum("ij,tjk->tik", X, coef)


@pytest.mark.parametrize("n_rows", [FEW, MANY])
@pytest.mark.parametrize(
    "iterates",
    [
        slice(None),
        slice(7, 7),
        slice(3, 30),
        slice(14, 140, 3),
        slice(None, None, LARGEST_BLOCK + 1),
    ],
)
def test_slices(iterates, n_rows, rng):
    found, expected = recorded(rng, n_rows, LARGEST_BLOCK + 20)
    np.testing.assert_allclose(found[iterates], expected[iterates], atol=1e-12)


@pytest.mark.parametrize("n_rows", [FEW, MANY])
def test_iterates_are_to_the_last_digit_those_of_a_longer_run(n_rows, rng):
    whole, _ = recorded(rng, n_rows, LARGEST_BLOCK + 20)
    for n_iterates in (1, 17, LARGEST_BLOCK + 1):
        np.testing.assert_array_equal(whole.first(n_iterates), whole[:n_iterates])


def test_arrays_of_several_outputs_lie_in_memory_as_predictors_do(rng):
    """Elementwise work on arrays that lie otherwise takes several times as long."""
    n_rows, n_outputs, n_fits = 30, 4, 3
    X, target = rng.standard_normal((n_rows, 5)), rng.standard_normal((n_rows, 4))
    weights = rng.random((n_rows, n_fits))
    problem = Problem(design_of(X), target, weights[:, :1])
    fits = WeightedFits(problem, Weights(weights))
    predictor = fits.predictor(rng.standard_normal((5, n_outputs, n_fits)))
    assert predictor.strides[0] == predictor.itemsize
    for array in (fits.target, fits.row_weights, fits.slopes(predictor)):
        assert array.strides[0] == array.itemsize
