"""Kernel functions and their matrices, kept or in blocks."""

import numpy as np
import pytest
from scipy import sparse

from skacv.kernel.kernels import CallableKernel, Precomputed, check_kernel
from skacv.optim.kernel_matrix import KernelMatrix
from tests.internals import KERNELS
from tests.kernel.brute_force import kernel_matrix


def kernel_of(name):
    return KERNELS[name](0.3, 3, 1.0)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_their_definition(name, storage, rng):
    X, Z = rng.standard_normal((7, 4)), rng.standard_normal((5, 4))
    found = kernel_of(name)(storage(X), storage(Z))
    np.testing.assert_allclose(found, kernel_matrix(name, X, Z, 0.3), atol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_diagonals(name, rng):
    X = rng.standard_normal((7, 4))
    kernel = kernel_of(name)
    np.testing.assert_allclose(kernel.diagonal(X), np.diagonal(kernel(X, X)))
    same = CallableKernel(lambda X, Z: kernel(X, Z))
    np.testing.assert_allclose(same.diagonal(X), kernel.diagonal(X))


@pytest.mark.parametrize("name", ["rbf", "laplacian", "cauchy"])
def test_single_precision_bears_rows_far_from_the_origin(name, rng):
    X = rng.standard_normal((50, 4))
    far = (X + 1000).astype(np.float32)
    exact = kernel_matrix(name, *[far.astype(np.float64)] * 2, 0.3)
    found = kernel_of(name)(far, far)
    assert found.dtype == np.float32
    off_diagonal = ~np.eye(len(X), dtype=bool)
    np.testing.assert_allclose(found[off_diagonal], exact[off_diagonal], atol=1e-5)


@pytest.mark.parametrize("budget", [1e9, 100])
@pytest.mark.parametrize("name", [*KERNELS, "precomputed"])
def test_matrix_in_blocks(name, budget, rng, set_limits):
    set_limits(LARGE_BYTES=1 << 11)  # three rows
    X = rng.standard_normal((20, 4))
    values = kernel_matrix("rbf" if name == "precomputed" else name, X, X, 0.3)
    if name == "precomputed":
        matrix = KernelMatrix(
            Precomputed(values), np.arange(20)[:, None], np.float64, budget
        )
    else:
        matrix = KernelMatrix(kernel_of(name), X, np.float64, budget)
    assert (matrix.values is None) == (budget == 100)
    coef = rng.standard_normal((20, 3))
    for columns in (slice(4, 11), slice(0, 20)):
        part = coef[columns]
        np.testing.assert_allclose(matrix.dot(columns, part), values[:, columns] @ part)
        product = matrix.square_product(columns)
        np.testing.assert_allclose(product(part), values[columns, columns] @ part)
    rows = np.array([3, 9, 2])
    np.testing.assert_allclose(matrix.square(rows), values[np.ix_(rows, rows)])


def test_kept_matrices_are_symmetric(rng):
    X = rng.standard_normal((40, 4)).astype(np.float32)
    values = KernelMatrix(kernel_of("rbf"), X, np.float32, 1e9).values
    np.testing.assert_array_equal(values, values.T)
    np.testing.assert_array_equal(np.diagonal(values), 1)


def test_what_is_no_kernel(rng):
    X = rng.standard_normal((30, 4))
    check_kernel(kernel_matrix("rbf", X, X, 0.3))
    check_kernel(X @ X.T)  # of rank 4
    with pytest.raises(ValueError, match="negative eigenvalues"):
        check_kernel(np.tanh(2 * X @ X.T - 1))
    with pytest.raises(ValueError, match="symmetric"):
        check_kernel(X[:4])
    with pytest.raises(ValueError, match="finite"):
        check_kernel(np.full((3, 3), np.nan))
    with pytest.raises(ValueError, match=r"shape \(2, 3\)"):
        CallableKernel(lambda X, Z: np.ones(3))(X[:2], X[:3])
