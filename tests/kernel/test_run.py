"""The run: against its dual form as published, and its limits."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from skacv import KernelEigenProRegressor
from skacv.optim.design import top_eigenvalue
from skacv.optim.preconditioner import (
    batch_step,
    critical_batch_size,
    full_batch_step,
    top_eigenpairs,
)
from tests.cases import covering
from tests.internals import batches_of
from tests.kernel.brute_force import dual_path, kernel_matrix, preconditioned

KERNELS = ["rbf", "laplacian", "cauchy", "polynomial"]


def drawn(rng, n_rows=60, n_targets=None):
    X = rng.standard_normal((n_rows, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(n_rows)
    if n_targets:
        y = y[:, None] + rng.standard_normal((n_rows, n_targets))
    return X, y


def fitted(X, y, **params):
    settings = {"max_iter": 12, "patience": None, "loo": False, "random_state": 0}
    settings["fit_intercept"] = False
    return KernelEigenProRegressor(**{**settings, **params}).fit(X, y)


@covering(
    kernel=KERNELS,
    n_components=[0, 6],
    batch_size=["full", 13],
    memory_budget=[1000, 0.001],
)
def test_run_is_eigenpro_in_its_dual_form(
    kernel, n_components, batch_size, memory_budget, rng
):
    X, y = drawn(rng, n_targets=2)
    model = fitted(
        X,
        y,
        kernel=kernel,
        n_components=n_components,
        batch_size=batch_size,
        memory_budget=memory_budget,
    )
    assert model.n_components_ == n_components
    K = kernel_matrix(kernel, X, X, model.gamma_)
    expected = dual_path(K, y, model, 12)
    np.testing.assert_allclose(model.dual_coef_path_, expected, rtol=1e-7, atol=1e-8)
    predictions = K @ expected
    staged = np.array(list(model.staged_predict(X)))
    np.testing.assert_allclose(staged, predictions, atol=1e-8)
    train = np.mean((predictions - y) ** 2, axis=(1, 2))
    np.testing.assert_allclose(model.train_path_, train, atol=1e-8)
    norm = np.sqrt(np.einsum("tik,tik->t", expected, predictions))
    np.testing.assert_allclose(model.rkhs_norm_path_, norm, rtol=1e-7, atol=1e-8)


def test_without_directions_it_is_gradient_descent(rng):
    X, y = drawn(rng)
    model = fitted(X, y, n_components=0, batch_size="full")
    assert not len(model.subsample_indices_)
    K = kernel_matrix("rbf", X, X, model.gamma_)
    alpha = np.zeros(len(y))
    for t in range(13):
        np.testing.assert_allclose(model.dual_coef_path_[t], alpha, atol=1e-10)
        alpha = alpha - model.step_size_ / len(y) * (K @ alpha - y)


def test_all_rows_in_a_batch_is_full_batch(rng):
    X, y = drawn(rng)
    full, batch = (fitted(X, y, batch_size=size) for size in ("full", len(y)))
    np.testing.assert_array_equal(full.dual_coef_path_, batch.dual_coef_path_)
    assert full.step_size_ == batch.step_size_


@pytest.mark.parametrize("batch_size", ["full", 20])
def test_limit_is_the_interpolant(batch_size, rng):
    X, y = drawn(rng)
    # So narrow that the kernel matrix of any draw is well-conditioned: a run is there
    # after some hundred epochs.
    settings = {"kernel": "laplacian", "gamma": 1.0, "batch_size": batch_size}
    model = fitted(X, y, **settings, max_iter=700, store_every=700)
    K = kernel_matrix("laplacian", X, X, 1.0)
    ridge = KernelRidge(alpha=1e-14, kernel="precomputed").fit(K, y)
    Z = rng.standard_normal((30, 4))
    expected = kernel_matrix("laplacian", Z, X, 1.0) @ ridge.dual_coef_
    np.testing.assert_allclose(model.predict(Z), expected, atol=1e-7)


@pytest.mark.parametrize("n_targets", [None, 2])
def test_precomputed_and_callable_kernels_are_the_same(n_targets, rng):
    X, y = drawn(rng, n_targets=n_targets)
    Z = rng.standard_normal((5, 4))
    named = fitted(X, y, gamma=0.2, batch_size=17)

    def kernel(X, Z):
        return kernel_matrix("rbf", X, Z, 0.2)

    called = fitted(X, y, kernel=kernel, batch_size=17)
    given = fitted(kernel(X, X), y, kernel="precomputed", batch_size=17)
    for model, rows in ((called, Z), (given, kernel(Z, X))):
        np.testing.assert_allclose(model.dual_coef_, named.dual_coef_, atol=1e-8)
        np.testing.assert_allclose(model.predict(rows), named.predict(Z), atol=1e-8)


@pytest.mark.parametrize("batch_size", ["full", 7])
def test_step_and_spectrum(batch_size, rng):
    X, y = drawn(rng)
    model = fitted(X, y, n_components=5, batch_size=batch_size)
    K = kernel_matrix("rbf", X, X, model.gamma_)
    P = preconditioned(K, model.subsample_indices_, 5)
    # Batches of 6 and 7 rows: each is averaged over its own.
    largest = max(
        np.linalg.eigvalsh(P[np.ix_(rows, rows)])[-1] / len(rows)
        for rows in model.batch_indices_
    )
    assert model.top_eigenvalue_ == pytest.approx(largest)
    assert sorted(np.concatenate(model.batch_indices_)) == list(range(len(y)))
    beta = np.diagonal(P).max()
    expected = full_batch_step(largest)
    if batch_size != "full":
        sizes = model.batch_size_, model.critical_batch_size_
        expected = batch_step(beta, largest, *sizes)
    assert model.step_size_ == pytest.approx(expected)
    assert model.step_size_ < 2 / largest


def test_batches_are_even():
    found = [rows.tolist() for rows in batches_of(10, 4)]
    assert found == [[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]]
    assert batches_of(3, 5) == ()


def test_published_steps():
    assert critical_batch_size(1.0, 0.25) == 5
    assert batch_step(2.0, 0.01, 8, 100) == 4
    beyond = batch_step(1.0, 0.5, 9, 3)
    assert beyond == pytest.approx(0.99 * 2 * 9 / (1 + 8 * 0.5))
    assert full_batch_step(0.5) == 2
    assert batch_step(1.0, 0.5, 900, 3) < 2 / 0.5  # stable, whatever m


def test_top_of_a_spectrum(rng):
    X = rng.standard_normal((400, 300)) * np.geomspace(1, 1e-3, 300)
    matrix = X @ X.T
    exact = np.linalg.eigvalsh(matrix)[::-1]
    state = np.random.RandomState(0)
    values, vectors = top_eigenpairs(matrix, 20, state)
    np.testing.assert_allclose(values, exact[:20], rtol=1e-3)
    # Exact in this respect, which the preconditioned kernel's sign rests on.
    np.testing.assert_allclose(
        vectors.T @ matrix @ vectors, np.diag(values), atol=1e-10 * values[0]
    )
    start = state.standard_normal(len(matrix))
    largest = top_eigenvalue(lambda v: matrix @ v, start, tolerance=0.01)
    assert exact[0] <= largest <= 1.03 * exact[0]


@pytest.mark.slow
def test_automatic_sizes_and_batch_of_many_rows(rng):
    X, y = drawn(rng, n_rows=3200)
    model = fitted(X, y, max_iter=3, n_centers=None)
    assert model.dual_coef_.dtype == np.float32
    assert model.batch_size_ <= model.critical_batch_size_ < 3200
    assert len(model.subsample_indices_) == 500
    assert model.n_components_ == 50
    full = fitted(X[:300], y[:300], max_iter=3)
    assert full.batch_size_ == 300
    assert full.dual_coef_.dtype == np.float64
