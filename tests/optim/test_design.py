"""A Design is the matrix it stands for, and never forms it."""

import numpy as np
import pytest
from scipy import sparse

from skacv.optim.design import EXACT_EIGENVALUE_SIZE, Design

CASES = [
    (kind, centre, scaled)
    for kind in ("dense", "csr")
    for centre in (False, True)
    for scaled in (False, True)
]


def make(kind, centre, scaled, rng, shape=(13, 7), dtype=np.float64):
    """A design, and the matrix that it stands for."""
    X = rng.standard_normal(shape)
    X[rng.random(shape) < 0.5] = 0
    center = rng.standard_normal((shape[1], 1)) if centre else None
    scale = rng.uniform(0.5, 2, (shape[0], 1)) if scaled else None
    stored = sparse.csr_matrix(X) if kind == "csr" else X
    explicit = X if center is None else X - center.T
    explicit = explicit if scale is None else explicit * scale
    return Design(stored, center, scale), explicit


@pytest.mark.parametrize(("kind", "centre", "scaled"), CASES)
def test_products(kind, centre, scaled, rng):
    design, explicit = make(kind, centre, scaled, rng)
    coef, rows = rng.standard_normal((7, 3)), rng.standard_normal((13, 3))
    np.testing.assert_allclose(design.dot(coef), explicit @ coef)
    np.testing.assert_allclose(design.t_dot(rows), explicit.T @ rows)


@pytest.mark.parametrize(("kind", "centre", "scaled"), CASES)
def test_parts_and_inner_products(kind, centre, scaled, rng):
    design, explicit = make(kind, centre, scaled, rng)
    index, rows = np.array([0, 2, 5]), np.array([1, 4, 5, 8])
    identity = np.eye(3)
    part = design.columns(index, np.float64)
    np.testing.assert_allclose(part.dot(identity), explicit[:, index], atol=1e-12)
    part = design.rows(rows)
    np.testing.assert_allclose(part.dot(np.eye(7)), explicit[rows], atol=1e-12)
    np.testing.assert_allclose(design.gram(), explicit.T @ explicit, atol=1e-12)
    np.testing.assert_allclose(design.outer_gram(), explicit @ explicit.T, atol=1e-12)
    weights = rng.standard_normal((13, 1))
    weighted = explicit.T @ (weights * explicit)
    np.testing.assert_allclose(design.weighted_gram(weights), weighted, atol=1e-12)
    np.testing.assert_allclose(
        design.squared_row_norms(), (explicit**2).sum(axis=1), atol=1e-12
    )


@pytest.mark.parametrize("shape", [(13, 7), (7, 13), (300, 200), (200, 300)])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_eigenvalues(kind, shape, rng):
    design, explicit = make(kind, 1, True, rng, shape)
    expected = np.linalg.svd(explicit, compute_uv=False) ** 2 / shape[0]
    np.testing.assert_allclose(design.spectrum()[::-1], expected, atol=1e-12)
    top = design.top_eigenvalue()
    if min(shape) <= EXACT_EIGENVALUE_SIZE:
        assert top == pytest.approx(expected[0])
    else:  # a bound with a margin, from a few Lanczos iterations
        assert expected[0] * 0.999 <= top <= expected[0] * 1.021


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_float32_is_kept(kind, rng):
    X = rng.standard_normal((10, 4)).astype(np.float32)
    X = sparse.csr_matrix(X) if kind == "csr" else X
    design = Design.centered(X, np.full((10, 1), 0.1))
    coef = np.ones((4, 2), np.float32)
    scaled = design.scaled_rows(np.linspace(1, 2, 10)[:, None])
    for some in (design, scaled):
        assert some.dot(coef).dtype == np.float32
        assert some.t_dot(some.dot(coef)).dtype == np.float32


def test_no_copy_of_dense_data(rng):
    X = rng.standard_normal((10, 4))
    design = Design.centered(X, np.full((10, 1), 0.1))
    assert design.X is X
    assert design.scaled_rows(np.ones((10, 1))).X is X


def test_sparse_data_are_not_densified(rng, monkeypatch):
    X = sparse.random(50, 40, 0.1, format="csr", random_state=0)
    design = Design.centered(X, np.full((50, 1), 0.02)).scaled_rows(np.ones((50, 1)))

    def refuse(*args, **kwargs):
        raise AssertionError("X was made dense")

    monkeypatch.setattr(type(X), "toarray", refuse)
    monkeypatch.setattr(type(X), "todense", refuse)
    design.t_dot(design.dot(np.ones((40, 2))))
    design.columns(np.arange(10), np.float32).dot(np.ones((10, 1), np.float32))
    design.squared_row_norms()


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("shape", [(300, 20), (20, 300)])
def test_large_means_do_not_cancel_digits(shape, scaled, rng):
    X = rng.standard_normal(shape)
    weights = rng.random((shape[0], 1))
    weights /= weights.sum()
    far = (X + 1000).astype(np.float32)  # known to 6e-5
    near = Design.centered(X, weights)
    design = Design.centered(far, weights)
    if scaled:
        scale = rng.uniform(0.5, 2, (shape[0], 1))
        near, design = near.scaled_rows(scale), design.scaled_rows(scale)
    for name in ("gram", "outer_gram", "spectrum", "top_eigenvalue"):
        expected = getattr(near, name)()
        found = getattr(design, name)()
        np.testing.assert_allclose(found, expected, atol=1e-4 * np.max(expected))
    signed = rng.standard_normal((shape[0], 1)).astype(np.float32)
    expected = near.weighted_gram(signed)
    error = np.abs(design.weighted_gram(signed) - expected).max()
    assert error < 1e-4 * np.abs(expected).max()
    np.testing.assert_allclose(
        design.squared_row_norms(), near.squared_row_norms(), rtol=1e-3
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("shape", [(50, 3), (200, 150)])
@pytest.mark.parametrize("value", [0.0, 1.0, 1990.1])
def test_constant_columns_are_zero_when_centred(value, shape, kind, dtype, rng):
    X = np.full(shape, value, dtype)
    stored = sparse.csr_matrix(X) if kind == "csr" else X
    weights = rng.random((shape[0], 1))
    design = Design.centered(stored, weights / weights.sum())
    assert design.is_zero()
    assert design.top_eigenvalue() == 0
    X[0, 0] += 1
    stored = sparse.csr_matrix(X) if kind == "csr" else X
    assert not Design.centered(stored, weights / weights.sum()).is_zero()
