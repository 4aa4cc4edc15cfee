"""Kernel ridge regressions of every strength, against brute force and each other."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.internals import (
    RADIAL_KERNELS,
    DiagonalInverse,
    EveryRow,
    FewerCenters,
    KernelRidge,
    ShiftedInverse,
)

GAUSSIAN, LAPLACIAN = RADIAL_KERNELS["rbf"](0.1), RADIAL_KERNELS["laplacian"](0.3)


def rows(rng, n=60, noise=0.1):
    """Rows, two outputs and uneven weights."""
    X = rng.standard_normal((n, 3))
    y = np.column_stack([X[:, 0] * X[:, 1], np.sin(X[:, 2])])
    return X, y + noise * rng.standard_normal(y.shape), rng.uniform(0.5, 2, n)


def refitted(kernel, X, y, weights, strength, fitted, new):
    """Predictions for new rows by the minimum of a sum over rows that are fitted."""
    # sum_i w_i |y_i - f(x_i)|^2 + s |f|^2, whose weights and s do not depend on what is
    # left out; by the conditions of the minimum, with a column for the intercept.
    shares, n = weights / weights.sum(), len(fitted)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = kernel(X[fitted], X[fitted])
    system[:n, :n] += strength * np.diag(1 / shares[fitted])
    system[:n, n] = system[n, :n] = 1
    right = np.concatenate([y[fitted], np.zeros((1, y.shape[1]))])
    solution = np.linalg.solve(system, right)
    return kernel(new, X[fitted]) @ solution[:n] + solution[n]


@pytest.mark.parametrize("kernel", [GAUSSIAN, LAPLACIAN])
@pytest.mark.parametrize("strength", [1e-4, 1e-2])
def test_rows_left_out_by_refits_without_them(kernel, strength, rng, set_limits):
    X, y, weights = rows(rng)
    set_limits(STRENGTHS=[strength])
    fit = KernelRidge.of(kernel, X, y, weights, np.arange(60))
    data, new = (kernel, X, y, weights, strength), rng.standard_normal((7, 3))
    expected = [refitted(*data, np.delete(np.arange(60), i), X[[i]]) for i in range(60)]
    expected = np.clip(np.concatenate(expected), fit.lowest, fit.highest)
    assert_allclose(fit.loo_prediction, expected, rtol=1e-7, atol=1e-7)
    missed = np.sum((y - expected) ** 2, axis=1)
    assert_allclose(fit.loo_error, np.average(missed, weights=weights), rtol=1e-7)
    predicted = refitted(*data, np.arange(60), new)
    predicted = np.clip(predicted, fit.lowest, fit.highest)
    assert_allclose(fit.predict(new), predicted, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kernel", [GAUSSIAN, LAPLACIAN])
def test_every_row_as_a_center_is_as_features_of_all_centers(kernel, rng):
    X, y, weights = rows(rng)
    shares, left_out = weights / weights.sum(), np.array([3, 17, 42])
    order = rng.permutation(60)
    gram = kernel(X[order], X[order])
    data = X, y, shares, order, left_out
    of_all = EveryRow(kernel(X, X), y, shares, left_out, is_smooth=False)
    of_some = FewerCenters(kernel, X[order], gram, *data)
    found = [
        (of_all, ShiftedInverse(of_all.matrix, 1e-3, np.float64), X),
        (of_some, DiagonalInverse(of_some.matrix, 1e-3), X[order]),
    ]
    residuals, values = [], []
    for fits, inverse, centers in found:
        solution = inverse.solve(fits.right)
        residuals.append(fits.residuals_left_out(inverse, solution))
        dual_coef, intercept = fits.function(solution)
        values.append(kernel(X, centers) @ dual_coef + intercept)
    assert_allclose(*residuals, rtol=1e-6)
    assert_allclose(*values, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 130, 301])
def test_inverses(n, dtype, rng):
    factor = rng.standard_normal((n, n)) / np.sqrt(n)
    matrix = factor @ factor.T
    exact = np.linalg.inv(matrix + 0.1 * np.eye(n))
    inverse = ShiftedInverse(matrix, 0.1, dtype)
    vectors = rng.standard_normal((n, 2)) * [1e-60, 1e60]
    precision = {"rtol": 1e3 * np.finfo(dtype).eps}
    assert inverse.root.dtype == dtype
    assert_allclose(inverse.diagonal(), np.diagonal(exact), **precision)
    forms = np.einsum("ij,jk,ik->i", factor, exact, factor)
    assert_allclose(inverse.forms(factor), forms, **precision)
    sizes = np.abs(exact @ vectors).max(axis=0)
    for found, share in ((inverse.times, precision["rtol"]), (inverse.solve, 1e-11)):
        error = np.abs(found(vectors) - exact @ vectors).max(axis=0)
        assert np.all(error <= share * sizes)


def test_single_precision_chooses_and_double_precision_solves(rng, set_limits):
    X, y, weights = rows(rng)
    data = GAUSSIAN, X, y, weights, np.arange(60)
    double, new = KernelRidge.of(*data), rng.standard_normal((7, 3))
    set_limits(SINGLE_COLUMNS=1)
    single = KernelRidge.of(*data)
    assert single.strength == double.strength >= 1e-5
    assert_allclose(single.loo_error, double.loo_error, rtol=1e-3)
    assert_allclose(single.predict(new), double.predict(new), rtol=1e-8)
    derivatives = [
        fit.mean_squared_derivatives(X, fit.centers, weights, X)
        for fit in (single, double)
    ]
    assert_allclose(*derivatives, rtol=1e-3)


def test_pivots_of_a_smooth_kernel(rng, set_limits):
    X, y, weights = rows(rng, 200, noise=1e-3)
    smooth, new = RADIAL_KERNELS["rbf"](0.02), rng.standard_normal((100, 3))
    data = smooth, X, y, weights, np.arange(200)
    # Of a weaker strength rounding errors, which grow by its inverse, have five digits.
    set_limits(STRENGTHS=[1e-6])
    exactly = KernelRidge.of(*data)
    set_limits(STRENGTHS=[1e-8])
    of_all = KernelRidge.of(*data)
    set_limits(LEAST_PIVOTED=100)
    of_pivots = KernelRidge.of(*data)
    assert len(of_all.centers) == 200
    assert len(of_pivots.index) < 120
    assert_array_equal(of_pivots.centers, X[of_pivots.index])
    assert_allclose(of_pivots.loo_error, of_all.loo_error, rtol=0.02)
    difference = of_pivots.predict(new) - of_all.predict(new)
    assert np.mean(np.sum(difference**2, axis=1)) < 0.02 * of_all.loo_error
    # All of them are exact; and of a rough kernel they are too many.
    set_limits(LEFT_BY_PIVOTS=0.0, MOST_PIVOTS=1.0, STRENGTHS=[1e-6])
    exact = KernelRidge.of(*data)
    assert_allclose(exact.loo_error, exactly.loo_error, rtol=1e-5)
    assert_allclose(exact.predict(new), exactly.predict(new), rtol=1e-5, atol=1e-6)
    set_limits(LEFT_BY_PIVOTS=0.005, MOST_PIVOTS=0.6)
    assert len(KernelRidge.of(LAPLACIAN, *data[1:]).index) == 200


@pytest.mark.parametrize("noise", [0.0, 0.1, 3.0])
def test_strengths_are_tried_on_both_sides_of_the_first(
    noise, rng, set_limits, note_calls
):
    X, y, weights = rows(rng, 80, noise)
    data, fits = (LAPLACIAN, X, y, weights, np.arange(80)), []
    strengths = 10.0 ** np.arange(-9, 1.1, 0.5)
    for strength in strengths:
        set_limits(STRENGTHS=[strength])
        fits.append(KernelRidge.of(*data))
    least = min(fits, key=lambda fit: fit.loo_error)
    set_limits(STRENGTHS=strengths)
    tried = note_calls(ShiftedInverse, "__init__", size=lambda self, *args: args[1])
    for first in (1e-6, 1e-3, 1.0):
        found = KernelRidge.of(*data, first)
        # Weaker ones have to be better by a certain share.
        assert found.loo_error <= 1.02 * least.loo_error
        tried.clear()
        again = KernelRidge.of(*data, found.strength)
        assert again.strength == found.strength
        assert len(tried) <= 3


@pytest.mark.parametrize("noise", [0.0, 0.1, 3.0])
def test_of_fewer_centers_all_strengths_are_compared(noise, rng, set_limits):
    X, y, weights = rows(rng, 80, noise)
    data, fits = (GAUSSIAN, X, y, weights, np.arange(30)), []
    best = KernelRidge.of(*data)
    strengths = 10.0 ** np.arange(-9, 1.1, 0.5)
    for strength in strengths:
        set_limits(STRENGTHS=[strength])
        fits.append(KernelRidge.of(*data))
    least = min(fits, key=lambda fit: fit.loo_error)
    assert best.strength == least.strength
    assert_allclose(best.loo_error, least.loo_error)
    assert_allclose(best.predict(X), least.predict(X))


@pytest.mark.parametrize("kernel", [GAUSSIAN, LAPLACIAN])
def test_conjugate_gradients_reach_the_fit_to_all_rows(kernel, rng, set_limits):
    """From one to a part of the rows, whose moments are their preconditioner."""
    X, y, weights = rows(rng, 600)
    data, index = (kernel, X, y, weights, np.arange(20)), np.arange(20)
    set_limits(STRENGTHS=[1e-3], MOST_LEFT_OUT=100)
    exact = KernelRidge.of(*data)
    # (K'WK + s k(C, C)) a = K'Wy, with an intercept that is not penalised.
    shares, values = weights / weights.sum(), kernel(X, X[index])
    columns = np.column_stack([values, np.ones(600)])
    system = columns.T @ (shares[:, None] * columns)
    system[:20, :20] += 1e-3 * kernel(X[index], X[index])
    solution = np.linalg.solve(system, columns.T @ (shares[:, None] * y))
    assert_allclose(exact.predict(X), columns @ solution, rtol=1e-6, atol=1e-6)
    limits = {"LEAST_ROWS_OF_MOMENTS": 150, "ROWS_OF_MOMENTS": 2}
    set_limits(**limits, LEFT_OF_VARIANCE=1e-20, MOST_PRODUCTS=30)
    found = KernelRidge.of(*data)
    assert_allclose(found.predict(X), exact.predict(X), rtol=1e-6, atol=1e-6)
    # Leverages are those of the part.
    difference = np.abs(found.loo_prediction - exact.loo_prediction)
    assert np.median(difference) < 1e-3
    assert_allclose(found.loo_error, exact.loo_error, rtol=0.05)
    # As many steps as are usual leave little of what the draw has added.
    set_limits(LEFT_OF_VARIANCE=0.05, MOST_PRODUCTS=6)
    usual, drawn = KernelRidge.of(*data), KernelRidge.of(*data, of_all=False)
    distances = [
        np.average((fit.predict(X) - exact.predict(X)) ** 2)
        for fit in (usual, found, drawn)
    ]
    assert distances[0] < 0.1 * distances[2]


def test_many_rows_have_the_strength_of_all(rng, set_limits):
    """Not that of the part of them that strengths are compared on."""
    X, y, weights = rows(rng, 2000, noise=1.0)
    data = GAUSSIAN, X, y, weights, np.arange(100)
    expected = KernelRidge.of(*data)
    set_limits(LEAST_ROWS_OF_MOMENTS=300, ROWS_OF_MOMENTS=2, MOST_LEFT_OUT=300)
    of_part, of_all = KernelRidge.of(*data, of_all=False), KernelRidge.of(*data)
    assert of_part.strength > of_all.strength
    assert np.abs(np.log10(of_all.strength / expected.strength)) < 0.6


def test_where_errors_are_flat_few_strengths_are_tried(rng, note_calls):
    """A rough kernel goes through the targets as the strength goes to zero."""
    X, y, weights = rows(rng, 80, 0.0)
    tried = note_calls(ShiftedInverse, "__init__", size=lambda self, *args: args[1])
    kernel = RADIAL_KERNELS["laplacian"](5.0)
    KernelRidge.of(kernel, X, y, weights, np.arange(80))
    assert min(tried) > 1e-8
